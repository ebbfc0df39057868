// History: the logs of each epoch of fit (keras.callbacks.History).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

// Holds the values of each log name over the epochs that ran.
class History {
 public:
  // Adds the logs of an epoch. Epochs may have different names.
  void append(int64_t epoch, const Logs& logs);

  const std::vector<int64_t>& epochs() const { return epochs_; }  // numbers of the epochs that ran
  // Returns the values of `name` over the epochs; NaN for an epoch without that name. Throws
  // ValueError, listing the known names, if no epoch has it.
  const std::vector<double>& operator[](const std::string& name) const;
  bool contains(const std::string& name) const { return values_.contains(name); }
  // Returns all log names, sorted.
  std::vector<std::string> names() const;
  // Returns the logs of the last epoch; empty before the first.
  const Logs& last() const { return last_; }

  // Writes a CSV file with one line per epoch. The first column is "epoch", counted from 0 as
  // CSVLogger does; the others are the values, "NA" where one is missing. Throws IoError if the
  // file cannot be written.
  void save_csv(const std::filesystem::path& path) const;

 private:
  std::vector<int64_t> epochs_;
  std::map<std::string, std::vector<double>> values_;
  Logs last_;
};

}  // namespace keel
