#include "tests/conformance/keras_coverage.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/registry.h>
#include <keel/optimizers/internal/registry.h>
#include <keel/optimizers/schedules/internal/schedule_registry.h>

#include "tests/conformance/keras_api.h"
#include "tests/support/files.h"

namespace keel::conformance::keras_coverage_test {

using testing_support::read_bytes;

TEST(KerasCoverageTest, ThePageOfTheDocumentationIsUpToDate) {
  EXPECT_TRUE(read_bytes(KEEL_SOURCE_DIR "/docs/keras_coverage.md") == keras_coverage_page())
      << "docs/keras_coverage.md is out of date; run build/release/bin/keras_coverage --write "
         "docs/keras_coverage.md";
}

// Returns the callback classes that headers declare, with Keras's names.
std::set<std::string> declared_callbacks() {
  std::set<std::string> out = {"History"};
  const std::regex declaration(R"(class (\w+) final : public Callback)");
  for (const char* folder : {"/layers", "/savedmodel"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(KEEL_SOURCE_DIR + std::string(folder))) {
      if (entry.path().extension() != ".h") continue;
      const std::string text = read_bytes(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
        std::string name = (*it)[1];
        if (name != "LambdaCallback") name = name.substr(0, name.rfind("Callback"));
        out.insert(name);
      }
    }
  }
  out.erase("TerminateOnSignal");  // Keras does not have it
  return out;
}

TEST(KerasCoverageTest, DeclaredCallbacksAreListed) {
  const std::vector<std::string> offered = callback_names();
  EXPECT_EQ(std::set<std::string>(offered.begin(), offered.end()), declared_callbacks());
}

// Expects a class to be registered with the package "keras" exactly if Keras has it.
template <class Base>
void expect_packages(const Registry<Base>& registry, const std::string& where) {
  std::set<std::string> names;
  for (const KerasSection& section : keras_api()) {
    // The layer registry also contains models.
    if (section.where != where && (where != "keras.layers" || section.where != "keras")) continue;
    for (const KerasNames& group : section.groups) {
      names.insert(group.names.begin(), group.names.end());
    }
  }
  for (const std::string& name : registry.class_names()) {
    const std::string package = registry.traits(name).package;
    EXPECT_EQ(package == "keras", names.contains(name))
        << where << "." << name << " is registered with the package '" << package
        << "'; correct the registration or the names in tests/conformance/keras_api.cc";
    EXPECT_TRUE(package == "keras" || package == "keras_rs" || package == "keel") << name;
  }
}

TEST(KerasCoverageTest, ClassesAreRegisteredWithTheirPackage) {
  expect_packages(layer_registry(), "keras.layers");
  expect_packages(loss_registry(), "keras.losses");
  expect_packages(metric_registry(), "keras.metrics");
  expect_packages(optimizers::optimizer_registry(), "keras.optimizers");
  expect_packages(optimizers::schedules::schedule_registry(), "keras.optimizers.schedules");
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
