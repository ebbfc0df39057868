#include <keel/layers/training/progbar_logger.h>

#include <absl/strings/str_cat.h>
#include <iostream>
#include <unistd.h>

#include <keel/distribute/process_group.h>
#include <keel/layers/training/internal/terminal_progress.h>

namespace keel {
namespace {

Verbose settled(Verbose verbose, bool standard_output) {
  if (distribute::processes().rank() != 0) return Verbose::kSilent;
  if (verbose != Verbose::kAuto) return verbose;
  return standard_output && isatty(STDOUT_FILENO) == 1 ? Verbose::kProgressBar : Verbose::kOneLine;
}

}  // namespace

ProgbarLoggerCallback::ProgbarLoggerCallback(Options options)
    : out_(options.output == nullptr ? std::cout : *options.output),
      verbose_(settled(options.verbose, options.output == nullptr)) {}

ProgbarLoggerCallback::~ProgbarLoggerCallback() = default;

void ProgbarLoggerCallback::begin(const std::string& head) {
  if (verbose_ == Verbose::kSilent) return;
  done_ = 0;
  if (params().steps) steps_ = params().steps;
  const auto style = verbose_ == Verbose::kProgressBar ? TerminalProgress::Style::kBar
                                                       : TerminalProgress::Style::kLine;
  progress_ = std::make_unique<TerminalProgress>(out_, style, head, steps_);
}

void ProgbarLoggerCallback::step(int64_t batch, const Logs& logs) {
  done_ = batch + 1;
  if (progress_ != nullptr) progress_->update(done_, logs);
}

void ProgbarLoggerCallback::end(const Logs& logs) {
  if (progress_ != nullptr) progress_->finish(done_, logs);
  progress_ = nullptr;
  // The next epoch shows the length counted in this one if the dataset does not report it.
  steps_ = done_;
}

void ProgbarLoggerCallback::on_train_begin() {
  training_ = true;
  steps_.reset();
}
void ProgbarLoggerCallback::on_train_end(const Logs&) { training_ = false; }
void ProgbarLoggerCallback::on_epoch_begin(int64_t epoch) {
  begin(absl::StrCat("Epoch ", epoch + 1, "/", params().epochs));
}
void ProgbarLoggerCallback::on_train_batch_end(int64_t batch, const Logs& logs) {
  step(batch, logs);
}
void ProgbarLoggerCallback::on_epoch_end(int64_t, Logs& logs) { end(logs); }

void ProgbarLoggerCallback::on_test_begin() {
  if (training_) return;
  steps_.reset();
  begin("");
}
void ProgbarLoggerCallback::on_test_batch_end(int64_t batch, const Logs& logs) {
  if (!training_) step(batch, logs);
}
void ProgbarLoggerCallback::on_test_end(const Logs& logs) {
  if (!training_) end(logs);
}

void ProgbarLoggerCallback::on_predict_begin() {
  steps_.reset();
  begin("");
}
void ProgbarLoggerCallback::on_predict_batch_end(int64_t batch) { step(batch, {}); }
void ProgbarLoggerCallback::on_predict_end() { end({}); }

}  // namespace keel
