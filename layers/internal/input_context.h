// throw_for_inputs: adds the inputs of a model to an error about an id.
#pragma once

#include <span>
#include <string>

#include <keel/framework/base/errors.h>

namespace keel {

// Throws `error` with the names of the inputs from which the ids were computed in front:
// "input 'user': Embedding users: ...".
[[noreturn]] inline void throw_for_inputs(std::span<const std::string> inputs,
                                          const InvalidIdError& error) {
  std::string names;
  for (const std::string& name : inputs) names += (names.empty() ? "'" : ", '") + name + "'";
  if (names.empty()) throw error;
  throw InvalidIdError(inputs.size() == 1 ? "input " : "inputs ", names, ": ", error.what());
}

}  // namespace keel
