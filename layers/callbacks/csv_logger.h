// CSVLogger: appends the logs of each epoch to a CSV file (keras.callbacks.CSVLogger).
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

// Options of CSVLogger.
struct CSVLoggerOptions {
  std::filesystem::path filename = {};
  char separator = ',';
  bool append = false;  // keep the file's content; the header is written only if the file is empty
};

// Writes one line per epoch. The columns are "epoch" and the names in the logs of the first epoch.
// If validation first runs in a later epoch, "val_" columns for these names follow. A value missing
// in an epoch is "NA". Numbers have as many digits as needed to read back the same value. Each line
// is flushed to the file when the epoch ends. In a job of several processes rank 0 writes. Throws
// IoError if the file cannot be written.
class CSVLoggerCallback final : public Callback {
 public:
  using Options = CSVLoggerOptions;
  explicit CSVLoggerCallback(Options options) : options_(std::move(options)) {}

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;

 private:
  const Options options_;
  bool header_written_ = false;
  std::vector<std::string> names_;
  std::ofstream file_;
};

namespace callbacks {
using CSVLogger = Handle<CSVLoggerCallback>;
}

}  // namespace keel
