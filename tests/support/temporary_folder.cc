#include "tests/support/temporary_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <gtest/gtest.h>

namespace keel::testing_support {

TemporaryFolder::TemporaryFolder() {
  std::string name = "keel";
  if (const auto* test = ::testing::UnitTest::GetInstance()->current_test_info()) {
    name += std::string(".") + test->test_suite_name() + "." + test->name();
  }
  // The names of parameterized tests contain slashes.
  std::ranges::replace(name, '/', '.');
  std::string path = std::filesystem::temp_directory_path() / (name + ".XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace keel::testing_support
