#include <absl/strings/str_join.h>
#include <cmath>
#include <limits>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/text.h>
#include <keel/layers/training/callback.h>

namespace keel {
namespace {

void write_file(const std::filesystem::path& path, const std::string& text) {
  try {
    write_text_file(path.string(), text);
  } catch (const IoError& error) {
    throw IoError("History: cannot write the file ", error.what());
  }
}

}  // namespace

void History::append(int64_t epoch, const Logs& logs) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [name, value] : logs) {
    const auto it = values_.try_emplace(name, epochs_.size(), kMissing).first;
    it->second.push_back(value);
  }
  epochs_.push_back(epoch);
  last_ = logs;
  for (auto& [name, values] : values_) values.resize(epochs_.size(), kMissing);
}

const std::vector<double>& History::operator[](const std::string& name) const {
  const auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  throw ValueError("History: no values are named '", name,
                   "'; the names are: ", absl::StrJoin(names(), ", "));
}

std::vector<std::string> History::names() const {
  std::vector<std::string> out;
  for (const auto& [name, values] : values_) out.push_back(name);
  return out;
}

void History::save_csv(const std::filesystem::path& path) const {
  std::string text = "epoch";
  for (const auto& [name, values] : values_) text += "," + name;
  text += '\n';
  for (size_t i = 0; i < epochs_.size(); ++i) {
    text += std::to_string(epochs_[i]);
    for (const auto& [name, values] : values_) {
      text += "," + (std::isnan(values[i]) ? std::string("NA") : number_text(values[i]));
    }
    text += '\n';
  }
  write_file(path, text);
}

}  // namespace keel
