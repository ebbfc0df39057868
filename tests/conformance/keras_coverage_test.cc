#include "tests/conformance/keras_coverage.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/conformance/keras_api.h"

namespace keel::conformance::keras_coverage_test {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(KerasCoverageTest, ThePageOfTheDocumentationIsUpToDate) {
  EXPECT_TRUE(text_of(KEEL_SOURCE_DIR "/docs/keras_coverage.md") == keras_coverage_page())
      << "docs/keras_coverage.md is out of date; run build/release/bin/keras_coverage --write "
         "docs/keras_coverage.md";
}

// The classes of callbacks that headers declare, by Keras's names.
std::set<std::string> declared_callbacks() {
  std::set<std::string> out = {"History"};
  const std::regex declaration(R"(class (\w+) final : public Callback)");
  for (const char* folder : {"/layers", "/savedmodel"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(KEEL_SOURCE_DIR + std::string(folder))) {
      if (entry.path().extension() != ".h") continue;
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
        std::string name = (*it)[1];
        if (name != "LambdaCallback") name = name.substr(0, name.rfind("Callback"));
        out.insert(name);
      }
    }
  }
  out.erase("TerminateOnSignal");  // not one of Keras
  return out;
}

TEST(KerasCoverageTest, CallbacksThatAreDeclaredAreOffered) {
  const std::vector<std::string> offered = callback_names();
  EXPECT_EQ(std::set<std::string>(offered.begin(), offered.end()), declared_callbacks());
}

TEST(KerasCoverageTest, EveryNameIsListedOnce) {
  for (const KerasSection& section : keras_api()) {
    std::set<std::string> seen;
    for (const KerasNames& group : section.groups) {
      for (const std::string& name : group.names) {
        EXPECT_TRUE(seen.insert(name).second) << section.where << " " << name;
      }
    }
  }
}

}  // namespace keel::conformance::keras_coverage_test
