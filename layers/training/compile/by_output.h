// ByOutput: a compile() argument for the outputs of a model: one value for all outputs, or one
// value per output by position or by name.
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/framework/base/errors.h>

namespace keel {

// Holds nothing, one value for all outputs, a list by position, or a dict by output name:
//   ByOutput<double> all = 0.5, two = {1.0, 0.2}, named = {{"click", 1.0}, {"stay", 0.2}};
template <class T>
class ByOutput {
 public:
  using Named = std::pair<const std::string, T>;

  ByOutput() = default;  // empty
  template <std::convertible_to<T> U>
    requires(!std::same_as<std::remove_cvref_t<U>, ByOutput>)
  ByOutput(U&& value)  // NOLINT: implicit
      : one_(std::forward<U>(value)) {}
  ByOutput(std::initializer_list<T> values) : list_(values) {}             // NOLINT: implicit
  ByOutput(std::vector<T> values) : list_(std::move(values)) {}            // NOLINT: implicit
  ByOutput(std::initializer_list<Named> values) : dict_(values) {}         // NOLINT: implicit
  ByOutput(std::map<std::string, T> values) : dict_(std::move(values)) {}  // NOLINT: implicit

  bool empty() const { return !one_ && !list_ && !dict_; }
  const std::optional<T>& one() const { return one_; }
  const std::optional<std::vector<T>>& list() const { return list_; }
  const std::optional<std::map<std::string, T>>& dict() const { return dict_; }

  // Returns all values, in the order of the list or of the dict's names.
  std::vector<T> values() const {
    if (one_) return {*one_};
    if (list_) return *list_;
    std::vector<T> out;
    if (!dict_) return out;
    for (const auto& [name, value] : *dict_) out.push_back(value);
    return out;
  }

  // Returns the value of each output, in the order of `outputs`. An output that a dict does not
  // name gets `otherwise`. Throws ValueError, prefixed with `caller`, if a list does not have one
  // value per output or if a dict names an unknown output.
  std::vector<T> resolve(const std::string& caller, const std::vector<std::string>& outputs,
                         const T& otherwise) const {
    if (list_) {
      if (list_->size() == outputs.size()) return *list_;
      throw ValueError(caller, ": a list must have one value for each of the ", outputs.size(),
                       " outputs, received ", list_->size());
    }
    std::vector<T> out(outputs.size(), one_.value_or(otherwise));
    if (!dict_) return out;
    for (const auto& [name, value] : *dict_) out[position(caller, outputs, name)] = value;
    return out;
  }

 private:
  static size_t position(const std::string& caller, const std::vector<std::string>& outputs,
                         const std::string& name) {
    std::string known;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == name) return i;
      known += (i == 0 ? "" : ", ") + outputs[i];
    }
    throw ValueError(caller, ": no output is named '", name,
                     "'; the outputs of the model are: ", known);
  }

  std::optional<T> one_;
  std::optional<std::vector<T>> list_;
  std::optional<std::map<std::string, T>> dict_;
};

}  // namespace keel
