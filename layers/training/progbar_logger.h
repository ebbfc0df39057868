// ProgbarLogger: prints the progress of fit, evaluate and predict.
#pragma once

#include <iosfwd>
#include <memory>

#include <keel/layers/training/training_options.h>

namespace keel {

class TerminalProgress;

// Options of ProgbarLogger.
struct ProgbarLoggerOptions {
  Verbose verbose = Verbose::kAuto;  // what to print
  std::ostream* output = nullptr;    // null: std::cout. Must outlive the callback
};

// Prints progress on rank 0. fit, evaluate and predict add one of these unless `verbose` is
// kSilent. kAuto means kProgressBar if the standard output is a terminal, and kOneLine otherwise or
// if `output` is set.
class ProgbarLoggerCallback final : public Callback {
 public:
  using Options = ProgbarLoggerOptions;
  explicit ProgbarLoggerCallback(Options options);
  ~ProgbarLoggerCallback() override;

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;
  void on_test_begin() override;
  void on_test_batch_end(int64_t batch, const Logs& logs) override;
  void on_test_end(const Logs& logs) override;
  void on_predict_begin() override;
  void on_predict_batch_end(int64_t batch) override;
  void on_predict_end() override;

 private:
  void begin(const std::string& head);
  void step(int64_t batch, const Logs& logs);
  void end(const Logs& logs);

  std::ostream& out_;
  const Verbose verbose_;  // never kAuto
  bool training_ = false;  // a validation inside fit is shown with its epoch
  int64_t done_ = 0;
  std::optional<int64_t> steps_;
  std::unique_ptr<TerminalProgress> progress_;
};

namespace callbacks {
using ProgbarLogger = Handle<ProgbarLoggerCallback>;
}

}  // namespace keel
