#include <keel/framework/base/internal/temporary_file.h>

#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/atomic_file.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::temporary_file_test {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::message_of;
using testing_support::names_in;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

// Runs `body` in another process, which exits without running destructors. Returns its process id.
template <class Fn>
pid_t in_other_process(Fn body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  return child;
}

TEST(TemporaryFileTest, HoldsWrittenBytesAndIsRemovedWithItsObject) {
  const TemporaryFolder folder;
  {
    const TemporaryFile file(folder / "a");
    file.write(0, "hello");
    file.write(7, "you");
    EXPECT_EQ(read_bytes(file.path()), std::string("hello\0\0you", 10));
    std::string text(20, '?');
    EXPECT_EQ(file.read(7, text.data(), text.size()), 3U);
    EXPECT_EQ(text.substr(0, 3), "you");
    file.resize(2);
    EXPECT_EQ(file.size(), 2);
    EXPECT_THAT(file.path(), StartsWith(folder / "a.tmp-"));
  }
  EXPECT_EQ(names_in(folder.path()).size(), 0U);
}

TEST(TemporaryFileTest, TheFileOfAnEndedProcessIsRemovedByTheNextOne) {
  const TemporaryFolder folder;
  const pid_t child = in_other_process([&] {
    new TemporaryFile(folder / "a");
    new TemporaryFile(folder / "ab");
  });
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(names_in(folder.path()).size(), 2U);
  const TemporaryFile file(folder / "a");
  EXPECT_EQ(names_in(folder.path()).size(), 2U) << "its own, and that of another target";
  const std::vector<TemporaryTarget> targets = temporary_targets(folder.path());
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets[0].target, "a");
  EXPECT_TRUE(targets[0].in_use);
  EXPECT_EQ(targets[1].target, "ab");
  EXPECT_FALSE(targets[1].in_use);
}

TEST(TemporaryFileTest, TheFileOfARunningProcessStaysUntilItIsKilled) {
  const TemporaryFolder folder;
  std::array<int, 2> ready;
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = in_other_process([&] {
    new TemporaryFile(folder / "a");
    [[maybe_unused]] const ssize_t ignored = ::write(ready[1], "x", 1);
    ::pause();
  });
  char text = 0;
  ASSERT_EQ(::read(ready[0], &text, 1), 1);
  AtomicFile(folder / "a");
  EXPECT_EQ(names_in(folder.path()).size(), 1U);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  AtomicFile(folder / "a");
  EXPECT_EQ(names_in(folder.path()).size(), 0U);
  ::close(ready[0]);
  ::close(ready[1]);
}

// Network file systems may not show the locks of other hosts.
TEST(TemporaryFileTest, AFileOfAnotherHostIsKeptForADay) {
  const TemporaryFolder folder;
  const std::string other = folder / "a.tmp-01234567-0123456789abcdef";
  write_bytes(other, "x");
  remove_stale_temporaries(folder / "a");
  EXPECT_TRUE(std::filesystem::exists(other));
  std::filesystem::last_write_time(
      other, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  remove_stale_temporaries(folder / "a");
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST(TemporaryFileTest, FilesWithOtherNamesAreNotTouched) {
  const TemporaryFolder folder;
  for (const char* name :
       {"a.tmp-notes", "a.tmp-0123456789abcdef", "a.tmp-01234567-0123456789abcdeg",
        "a.tmp-01234567-0123456789abcdef.old", "a"}) {
    write_bytes(folder / name, "x");
    std::filesystem::last_write_time(
        folder / name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  }
  remove_stale_temporaries(folder / "a");
  EXPECT_EQ(names_in(folder.path()).size(), 5U);
}

TEST(TemporaryFileTest, AFolderThatDoesNotExistIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  const std::string message = message_of<IoError>([&] { TemporaryFile file(folder / "none/a"); });
  EXPECT_THAT(message, HasSubstr(folder / "none/a"));
}

TEST(TemporaryFileTest, AFailedWriteIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 100;
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string message =
      message_of<IoError>([&] { write_file_atomically(folder / "a", std::string(200, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr((folder / "a") + ": cannot be written"));
  EXPECT_EQ(names_in(folder.path()).size(), 0U);
}

TEST(WriteTextFileTest, ReplacesFilesAndWritesSpecialOnesInPlace) {
  const TemporaryFolder folder;
  write_text_file(folder / "a", "old");
  std::filesystem::create_symlink("a", folder / "link");
  write_text_file(folder / "link", "new");
  EXPECT_EQ(read_bytes(folder / "a"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  write_text_file("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(write_text_file("/dev/full", "x"), IoError);
  }
  EXPECT_THROW(write_text_file(folder.path(), "x"), IoError);
}

}  // namespace keel::temporary_file_test
