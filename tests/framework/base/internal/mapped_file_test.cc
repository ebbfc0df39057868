#include <keel/framework/base/internal/mapped_file.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/temporary_folder.h"

namespace keel::mapped_file_test {

class MappedFileTest : public testing::Test {
 protected:
  void write(size_t bytes) {
    std::ofstream out(path_, std::ios::binary);
    for (size_t i = 0; i < bytes; ++i) out.put(byte_at(i));
  }
  static char byte_at(size_t i) { return static_cast<char>(i * 2654435761U >> 24); }
  static bool holds_the_bytes(const MappedFile& file) {
    for (size_t i = 0; i < file.bytes().size(); ++i) {
      if (static_cast<char>(file.bytes()[i]) != byte_at(i)) return false;
    }
    return true;
  }
  const testing_support::TemporaryFolder folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
  write(10001);
  const MappedFile file(path_);
  EXPECT_EQ(file.bytes().size(), 10001U);
  EXPECT_TRUE(holds_the_bytes(file));
  std::filesystem::remove(path_);
  EXPECT_TRUE(holds_the_bytes(file));
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  write(0);
  EXPECT_TRUE(MappedFile(path_).bytes().empty());
}

TEST_F(MappedFileTest, FoldersAndMissingFilesAreErrors) {
  EXPECT_THROW(MappedFile file(path_ + "/none"), IoError);
  EXPECT_THROW(MappedFile file(testing::TempDir()), IoError);
}

TEST_F(MappedFileTest, PromotionKeepsAddressesAndBytes) {
  constexpr size_t kBytes = (size_t{5} << 20) + 123;
  write(kBytes);
  const MappedFile file(path_);
  const std::byte* const data = file.bytes().data();
  const auto always = [] { return true; };
  EXPECT_GE(file.promote(4096 + 5, 3 << 20, always), size_t{3} << 20);
  EXPECT_TRUE(holds_the_bytes(file));
  EXPECT_GE(file.promote(0, kBytes, always), kBytes);  // ends in the last page, which is not full
  EXPECT_EQ(file.bytes().data(), data);
  EXPECT_TRUE(holds_the_bytes(file));
  EXPECT_GT(file.promoted_bytes(), kBytes);
  std::filesystem::resize_file(path_, 0);  // the bytes are no longer those of the file
  EXPECT_TRUE(holds_the_bytes(file));
}

TEST_F(MappedFileTest, PromotionStopsWhenTold) {
  write(size_t{40} << 20);
  const MappedFile file(path_);
  int pieces = 0;
  const size_t moved = file.promote(0, size_t{40} << 20, [&] { return ++pieces <= 1; });
  EXPECT_GT(moved, 0U);
  EXPECT_LE(moved, size_t{16} << 20);
}

using MappedFileDeathTest = MappedFileTest;

// S-059.
TEST_F(MappedFileDeathTest, ATruncatedFileIsNamed) {
  write(size_t{1} << 20);
  EXPECT_EXIT(
      {
        guard_mapped_files();
        const MappedFile file(path_);
        std::filesystem::resize_file(path_, 0);
        const auto last = static_cast<int>(file.bytes().back());
        std::exit(100 + last);
      },
      testing::ExitedWithCode(1), "ATruncatedFileIsNamed.*: the file was truncated");
}

}  // namespace keel::mapped_file_test
