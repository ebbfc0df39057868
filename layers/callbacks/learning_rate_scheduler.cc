#include <absl/strings/str_cat.h>

#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/training/model.h>

namespace keel {

LearningRateSchedulerCallback::LearningRateSchedulerCallback(Options options)
    : options_(std::move(options)) {
  if (!options_.schedule)
    throw ValueError(
        "LearningRateScheduler: schedule is not set; pass a function of the epoch and the learning "
        "rate");
}

void LearningRateSchedulerCallback::on_epoch_begin(int64_t epoch) {
  Optimizer& optimizer = *model().optimizer();
  const double rate = options_.schedule(epoch, optimizer.learning_rate());
  optimizer.set_learning_rate(rate);
  if (options_.verbose > 0) {
    print_line(absl::StrCat("\nEpoch ", epoch + 1,
                            ": LearningRateScheduler setting learning rate to ", rate, "."));
  }
}

void LearningRateSchedulerCallback::on_epoch_end(int64_t, Logs& logs) {
  logs["learning_rate"] = model().optimizer()->learning_rate();
}

}  // namespace keel
