#include "tests/support/temporary_folder.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace keel::temporary_folder_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::names_in;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

TEST(TemporaryFolderTest, IsEmptyAndNamedAfterTheTest) {
  const TemporaryFolder folder;
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
  EXPECT_THAT(folder.path(), HasSubstr("TemporaryFolderTest.IsEmptyAndNamedAfterTheTest"));
}

TEST(TemporaryFolderTest, EveryFolderIsAnother) {
  const TemporaryFolder first, second;
  EXPECT_NE(first.path(), second.path());
}

TEST(TemporaryFolderTest, IsRemovedWithItsContents) {
  std::optional<TemporaryFolder> folder(std::in_place);
  const std::string path = folder->path();
  write_bytes(*folder / "a", "1");
  std::filesystem::create_directories(*folder / "b/c");
  EXPECT_EQ(read_bytes(*folder / "a"), "1");
  EXPECT_THAT(names_in(path), ElementsAre("a", "b"));
  folder.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

class ParameterizedFolderTest : public testing::TestWithParam<int> {};

// The names of these tests contain slashes.
TEST_P(ParameterizedFolderTest, IsMade) {
  EXPECT_THAT(names_in(TemporaryFolder().path()), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Numbers, ParameterizedFolderTest, testing::Values(1, 2));

}  // namespace keel::temporary_folder_test
