#include <keel/framework/base/termination.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>

namespace keel::termination_test {

TEST(TerminationTest, TheFirstSignalIsRecorded) {
  {
    const TerminationSignals signals;
    EXPECT_FALSE(TerminationSignals::received());
    {
      const TerminationSignals nested;
      std::raise(SIGTERM);
    }
    EXPECT_EQ(TerminationSignals::received(), SIGTERM);
  }
  EXPECT_EQ(TerminationSignals::received(), SIGTERM);  // still available for the exit status
  const TerminationSignals again;
  EXPECT_FALSE(TerminationSignals::received());
}

TEST(TerminationTest, HandlersAreRestored) {
  struct sigaction before = {};
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &before);
  {
    const TerminationSignals signals;
  }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

// Runs `body` in a child process and returns its wait status.
template <class Body>
int status_of_child(Body body) {
  // ThreadSanitizer delivers no signals in the child of a process with other threads.
  const int workers = num_workers();
  set_num_workers(1);
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  set_num_workers(workers);
  return status;
}

TEST(TerminationTest, TheSecondSignalEndsTheProcess) {
  const int status = status_of_child([] {
    const TerminationSignals signals;
    std::raise(SIGINT);
    std::raise(SIGTERM);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(TerminationTest, ASignalThatIsIgnoredStaysIgnored) {
  const int status = status_of_child([] {
    std::signal(SIGINT, SIG_IGN);
    const TerminationSignals signals;
    std::raise(SIGINT);
    if (TerminationSignals::received()) _exit(1);
    std::raise(SIGTERM);
    _exit(TerminationSignals::received() == SIGTERM ? 0 : 2);
  });
  EXPECT_EQ(status, 0);
}

TEST(TerminationTest, NamesAndStatusAreThoseOfShells) {
  EXPECT_EQ(signal_name(SIGINT), "SIGINT");
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(exit_status(SIGTERM), 143);  // POSIX assigns SIGTERM the number 15
}

}  // namespace keel::termination_test
