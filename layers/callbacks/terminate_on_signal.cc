#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cstring>
#include <span>

#include <keel/distribute/process_group.h>
#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/training/model.h>

namespace keel {
namespace {

constexpr char kCaller[] = "TerminateOnSignal";

// Returns the largest signal number received by any process, or 0. Collective.
int signal_of_job(distribute::ProcessGroup& group, int local) {
  if (group.size() == 1) return local;
  int out = local;
  for (const auto& parts :
       distribute::all_gather(group, kCaller, {std::as_bytes(std::span(&local, 1))})) {
    int remote = 0;
    if (!parts.empty()) std::memcpy(&remote, parts[0].data(), sizeof(remote));
    out = std::max(out, remote);
  }
  return out;
}

}  // namespace

TerminateOnSignalCallback::TerminateOnSignalCallback(Options options) : options_(options) {
  if (options_.frequency < 1) {
    throw ValueError(kCaller, ": frequency must be at least 1, received ", options_.frequency);
  }
}

void TerminateOnSignalCallback::on_train_begin() {
  signals_.reset();  // in case the previous run ended with an error
  signals_.emplace();
  signal_.reset();
}

void TerminateOnSignalCallback::on_train_batch_end(int64_t batch, const Logs&) {
  distribute::ProcessGroup& group = distribute::processes();
  if (group.size() > 1 && (batch + 1) % options_.frequency != 0) return;
  const int signal = signal_of_job(group, TerminationSignals::received().value_or(0));
  if (signal == 0) return;
  signal_ = signal;
  print_line(absl::StrCat(signal_name(signal), ": training ends after batch ", batch + 1));
  model().set_stop_training(true);
}

}  // namespace keel
