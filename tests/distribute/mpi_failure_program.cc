// A job in which rank 1 fails in the way that the argument says, for mpi_failure_test.py.
#include <csignal>
#include <iostream>
#include <thread>

#include "autodiff/replica_context.h"
#include "distribute/tpu_strategy.h"

namespace keel::distribute {
namespace {

// In each replica, after some steps that succeed.
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

int run(const std::string& how) {
  TPUStrategy strategy({.num_hosts = processes().size(), .num_cores = 1});
  for (int step = 0; step < 3; ++step) {
    strategy.run([&] { strategy.communicator().barrier(); });
  }
  if (how == "main" && processes().rank() == 1) throw ValueError("outside of a run");
  strategy.run([&] { fail(how, strategy.communicator()); });
  if (how == "late" && processes().rank() == 1)
    std::this_thread::sleep_for(std::chrono::seconds(1));
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
