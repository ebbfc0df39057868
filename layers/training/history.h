// History: what fit returns: the logs of each epoch (keras.callbacks.History).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

class History {
 public:
  // An epoch may lack a name that others have.
  void append(int64_t epoch, const Logs& logs);

  const std::vector<int64_t>& epochs() const { return epochs_; }  // numbers of those that ran
  // Values of `name` over the epochs; NaN where an epoch lacks it. ValueError, listing the names,
  // if none has it.
  const std::vector<double>& operator[](const std::string& name) const;
  bool contains(const std::string& name) const { return values_.contains(name); }
  std::vector<std::string> names() const;
  // The values that the last epoch has; empty before the first.
  const Logs& last() const { return last_; }

  // A line for each epoch: "epoch", counted from 0 as CSVLogger does, and the values, "NA" for one
  // that is missing. IoError if the file cannot be written.
  void save_csv(const std::filesystem::path& path) const;

 private:
  std::vector<int64_t> epochs_;
  std::map<std::string, std::vector<double>> values_;
  Logs last_;
};

}  // namespace keel
