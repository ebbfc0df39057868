// CSVLogger: writes the logs of each epoch to a file as a line (keras.callbacks).
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

struct CSVLoggerOptions {
  std::filesystem::path filename = {};
  char separator = ',';
  bool append = false;  // keep what the file has; a header is written if it has nothing
};

// Columns: "epoch", then the names in the logs of the first epoch, and "val_" and those names if
// validation comes with later epochs only. A value that a later epoch
// lacks is "NA". Numbers have as many digits as it takes to read them back. Each line is on the
// disk when the epoch ends. In a job of several processes rank 0 writes. IoError if the file
// cannot be written.
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
