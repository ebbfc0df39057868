#include "layers/training/history.h"

#include <limits>

#include "framework/errors.h"

namespace keel {

void History::append(int64_t epoch, const Logs& logs) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [name, value] : logs) {
    const auto it = values_.try_emplace(name, epochs_.size(), kMissing).first;
    it->second.push_back(value);
  }
  epochs_.push_back(epoch);
  for (auto& [name, values] : values_) values.resize(epochs_.size(), kMissing);
}

const std::vector<double>& History::operator[](const std::string& name) const {
  const auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  std::string known;
  for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
  throw ValueError("History: no values of '", name, "', it has: ", known);
}

std::vector<std::string> History::names() const {
  std::vector<std::string> out;
  for (const auto& [name, values] : values_) out.push_back(name);
  return out;
}

Logs History::last() const {
  Logs out;
  for (const auto& [name, values] : values_) out[name] = values.back();
  return out;
}

}  // namespace keel
