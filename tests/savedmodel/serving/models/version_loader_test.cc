// Tests savedmodel/serving/models/version_loader.cc and version_folder.cc.
#include <keel/savedmodel/serving/models/version_loader.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"

namespace keel::serving::version_loader_test {

using testing::HasSubstr;
using testing_support::TemporaryFolder;

namespace fs = std::filesystem;

void write_model(const std::string& path, float kernel) {
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  const Tensor y = layers::Dense(
      {.units = 1, .kernel_initializer = initializers::constant(kernel), .name = "y"})(x);
  save_model(Functional({.inputs = x, .outputs = y}), path);
}

// A base path with version 1, whose warm-up file has one line.
class LoadVersionTest : public testing::Test {
 protected:
  LoadVersionTest() {
    fs::create_directories((folder_ / "base/1/assets.extra"));
    write_model(file_, 1);
    std::ofstream((folder_ / "base/1/assets.extra/keel_warmup_requests.jsonl")) << "line\n";
    options_.run_warm_up = [this](const ModelVersion&, const std::string&) { while_loading(); };
  }

  VersionLoad load() {
    VersionLoad out = {.model = "m",
                       .base_path = folder_ / "base",
                       .folder = folder_ / "base/1",
                       .number = 1,
                       .metrics = std::make_shared<ModelMetrics>()};
    load_version(out, options_, unloader_);
    return out;
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_ / "base/1/model.keras";
  std::function<void()> while_loading = [] {};
  RepositoryOptions options_ = {.tables = "mapped"};
  const std::shared_ptr<VersionUnloader> unloader_ = std::make_shared<VersionUnloader>();
};

TEST_F(LoadVersionTest, LoadsAVersionWhoseFilesStay) {
  const VersionLoad done = load();
  EXPECT_NE(done.version, nullptr) << done.message;
}

// S-027, S-034: the reader opens the file several times, so it may have seen two models.
TEST_F(LoadVersionTest, RefusesAFileThatIsReplacedWhileItLoads) {
  const std::string next = folder_ / "next.keras";
  while_loading = [&] {
    write_model(next, 2);
    fs::rename(next, file_);
  };
  const VersionLoad refused = load();
  EXPECT_EQ(refused.version, nullptr);
  EXPECT_TRUE(refused.young) << "it is tried again at the next scan";
  EXPECT_THAT(refused.message, HasSubstr("1/model.keras: its files have changed"));
  while_loading = [] {};
  EXPECT_NE(load().version, nullptr);
}

}  // namespace keel::serving::version_loader_test
