#include <keel/framework/base/internal/atomic_file.h>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::atomic_file_test {

using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

TEST(AtomicFileTest, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    write_bytes(file.temporary_path(), "new");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    file.commit();
  }
  EXPECT_EQ(read_bytes(folder / "a"), "new");
}

TEST(AtomicFileTest, LeavesTheOldFileAndNoOtherWithoutCommit) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", "old");
  {
    const AtomicFile file(folder / "a");
    write_bytes(file.temporary_path(), "new");
  }
  EXPECT_EQ(read_bytes(folder / "a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFileTest, ConcurrentWritersDoNotInterfere) {
  const TemporaryFolder folder;
  AtomicFile a(folder / "a"), b(folder / "a");
  EXPECT_NE(a.temporary_path(), b.temporary_path());
}

TEST(AtomicFileTest, AMissingFolderIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(AtomicFile(folder / "none/a"), IoError);
  EXPECT_THROW(AtomicFile(folder.path()), IoError);
}

TEST(AtomicFileTest, TextRoundTrips) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "text\n");
  EXPECT_EQ(read_text_file(folder / "a", 5), "text\n");
  EXPECT_THROW(read_text_file(folder / "a", 4), IoError);
  EXPECT_THROW(read_text_file(folder / "none", 4), IoError);
}

TEST(AtomicFileTest, RemovingAMissingFileIsNoError) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", "x");
  remove_file(folder / "a");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  remove_file(folder / "a");
}

TEST(AtomicFileTest, FoldersAreExaminedAndCreated) {
  const TemporaryFolder folder;
  EXPECT_FALSE(path_exists(folder / "a/b"));
  create_folder(folder / "a/b");
  create_folder(folder / "a/b");
  EXPECT_TRUE(path_exists(folder / "a/b"));
  write_bytes(folder / "file", "");
  EXPECT_THROW(create_folder(folder / "file"), IoError);
  const std::string too_long = folder / std::string(300, 'x');
  EXPECT_THROW(path_exists(too_long), IoError);
  EXPECT_THROW(create_folder(too_long), IoError);
  EXPECT_THROW(AtomicFile{too_long}, IoError);
}

TEST(SealTest, MatchesTheSealedFile) {
  const TemporaryFolder folder;
  for (const size_t size : {0U, 1U, 31U, 32U, 33U, 100000U}) {
    write_bytes(folder / "a", std::string(size, 'x'));
    seal_file(folder / "a");
    EXPECT_NO_THROW(check_seal(folder / "a")) << size;
  }
}

TEST(SealTest, DetectsEveryFlippedBitAndEveryTruncation) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", "The quick brown fox jumps over the lazy dog, twice.");
  seal_file(folder / "a");
  const std::string good = read_bytes(folder / "a");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    write_bytes(folder / "b", bad);
    EXPECT_THROW(check_seal(folder / "b"), IoError) << i;
    write_bytes(folder / "b", good.substr(0, i));
    EXPECT_THROW(check_seal(folder / "b"), IoError) << i;
  }
}

}  // namespace keel::atomic_file_test
