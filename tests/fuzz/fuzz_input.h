// Helpers of all fuzz programs: the accepted outcomes, and files of inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <keel/framework/base/errors.h>

namespace keel::fuzz {

// Runs fn(). An error of ours is a right answer to a wrong file; anything else that fn throws ends
// the program, which is how libFuzzer learns of a defect. With KEEL_FUZZ_TELL set our errors are
// printed.
void tell(const Error& error);
template <class Fn>
void allow_own_errors(Fn fn) {
  try {
    fn();
  } catch (const Error& error) {
    tell(error);
  }
}

// Ends the program unless `holds`.
void require(bool holds, const char* what);

// Bytes of tensors that a model of an input may take, in the programs that make models of them.
inline constexpr size_t kTensorBytes = size_t{64} << 20;

// The path of a file of this process with this name and these bytes, in memory where the system
// has such a folder. The folder goes when the process ends; temporary files of the library are made
// in it too.
std::string scratch_file(const std::string& name, std::string_view bytes);

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace keel::fuzz
