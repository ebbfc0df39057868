// A temporary folder for one test, which is removed at the end of the test.
#pragma once

#include <filesystem>
#include <string>

namespace keel::testing_support {

// Creates an empty folder in the temporary folder of the system and removes it with its contents in
// the destructor. Its name starts with the name of the running test and differs from those of all
// other folders, also of those of other processes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_; }
  // Returns the path of a file or folder inside.
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace keel::testing_support
