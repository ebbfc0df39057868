#include <absl/strings/str_cat.h>
#include <cmath>

#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/training/model.h>

namespace keel {

void TerminateOnNaNCallback::on_train_batch_end(int64_t batch, const Logs& logs) {
  const auto loss = logs.find("loss");
  if (loss == logs.end() || std::isfinite(loss->second)) return;
  print_line(absl::StrCat("Batch ", batch, ": Invalid loss, terminating training"));
  model().set_stop_training(true);
}

}  // namespace keel
