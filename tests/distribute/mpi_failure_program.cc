// A job in which rank 1 fails in the way given by the argument, for mpi_failure_test.py.
#include <csignal>
#include <iostream>
#include <thread>
#include <unistd.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/tpu/tpu_strategy.h>

namespace keel::distribute {
namespace {

// Runs in each replica after some successful steps.
void fail(const std::string& how, Communicator& communicator) {
  const bool second = current_replica_context()->replica == 1;
  if (how == "throw" && second) throw ValueError("this replica is broken");
  if (how == "leave" && second) return;
  if (how == "other" && second) {
    communicator.all_to_all(std::vector<Bytes>(communicator.size()), "rows");
  }
  if (how == "kill" && second) std::raise(SIGKILL);
  if (how == "hang" && second) std::this_thread::sleep_for(std::chrono::seconds(3600));
  if (how == "exit" && second) std::exit(0);
  communicator.barrier("the last barrier");
}

// Makes an exchange that rank 1 completes, after which it leaves main, long before ranks 0 and 2:
// it stops rank 2, which has much data to send and receive, for a while.
void leave_others_in_an_exchange() {
  ProcessGroup& group = processes();
  const auto pids = gather_texts(group, "process ids", str(getpid()));
  const std::vector<std::byte> much(group.rank() == 1 ? 0 : 16 << 20);
  std::vector<ProcessGroup::Parts> send(group.size());
  if (group.rank() != 1) send[2 - group.rank()] = {much};
  group.exchange("the last exchange", send);
  if (group.rank() != 1) return;
  const pid_t slow = std::stoi(pids[2]);
  ::kill(slow, SIGSTOP);
  std::thread([slow] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    ::kill(slow, SIGCONT);
  }).detach();
}

// Rank 1 reports long work for three times the timeout of the others. After that it must reach the
// next exchange in less than the timeout.
void work(int seconds_after) {
  if (processes().rank() != 1) return;
  {
    const LongWork work(processes(), "an export");
    std::this_thread::sleep_for(std::chrono::seconds(6));
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds_after == 0 ? 3600 : seconds_after));
}

int run(const std::string& how) {
  TPUStrategy strategy({.num_hosts = processes().size(), .num_cores = 1});
  for (int step = 0; step < 3; ++step) {
    strategy.run([&] { strategy.communicator().barrier(); });
  }
  if (how == "main" && processes().rank() == 1) throw ValueError("outside of a run");
  if (how == "work" || how == "hang after work") work(how == "work" ? 1 : 0);
  strategy.run([&] { fail(how, strategy.communicator()); });
  if (how == "late" && processes().rank() == 1)
    std::this_thread::sleep_for(std::chrono::seconds(1));
  if (how == "early") leave_others_in_an_exchange();
  return 0;
}

}  // namespace
}  // namespace keel::distribute

int main(int count, char** arguments) {
  try {
    return keel::distribute::run(count > 1 ? arguments[1] : "nothing");
  } catch (const std::exception& error) {
    std::cerr << keel::str("rank ", keel::distribute::processes().rank(), ": ", error.what(), "\n");
    return 3;
  }
}
