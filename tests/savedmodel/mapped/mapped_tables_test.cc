// Tests savedmodel/mapped/mapped_tables.cc and savedmodel/hdf5/hdf5_input.cc: models whose tables
// are read in place.
#include <keel/savedmodel/mapped/mapped_tables.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::mapped_tables_test {

using ::testing::HasSubstr;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

using layers::Dense;
using layers::Embedding;

constexpr int64_t kRows = 20000, kDim = 16;  // 1.25 MiB
constexpr int64_t kTableBytes = kRows * kDim * 4;
constexpr int64_t kPage = 4096;

Functional ranker() {
  const Tensor id = layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "id"});
  Tensor x = Embedding({.input_dim = kRows, .output_dim = kDim, .name = "table"})(id);
  x = layers::Flatten({})(x);
  return Functional({.inputs = id, .outputs = Dense({.units = 1, .name = "score"})(x)});
}

Tensor ids() {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < 200; ++i) out.push_back(i * 7919 % kRows);
  return Tensor::from(out, {100, 2});
}

std::vector<float> scores(const ModelHandle& model) {
  return model->predict(Tensors(ids()), {.verbose = Verbose::kSilent}).tensor().to_vector<float>();
}

struct Loaded {
  std::shared_ptr<MappedTables> tables = std::make_shared<MappedTables>();
  ModelHandle model;
  explicit Loaded(const std::string& path)
      : model(load_model(path, {.compile = false, .mapped_tables = tables})) {}
};

class MappedTablesTest : public testing::TestWithParam<const char*> {
 protected:
  std::string file() const { return folder_ / (std::string("m.") + GetParam()); }
  const TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Formats, MappedTablesTest, testing::Values("keras", "h5"));

// S-050, S-051.
TEST_P(MappedTablesTest, PredictsTheSameBitsFromTheFile) {
  const Functional model = ranker();
  save_model(model, file());
  const Loaded loaded(file());
  ASSERT_EQ(loaded.tables->tables().size(), 1U);
  EXPECT_EQ(loaded.tables->tables()[0].obstacle, "");
  EXPECT_EQ(loaded.tables->mapped_bytes(), kTableBytes);
  EXPECT_EQ(loaded.tables->copied_bytes(), 0);
  EXPECT_EQ(scores(loaded.model), scores(model));
}

TEST_P(MappedTablesTest, OutlivesItsFileNameAndTheReport) {
  const Functional model = ranker();
  save_model(model, file());
  const ModelHandle mapped = Loaded(file()).model;
  save_model(ranker(), folder_ / (std::string("new.") + GetParam()));
  std::filesystem::rename(folder_ / (std::string("new.") + GetParam()), file());
  EXPECT_EQ(scores(mapped), scores(model));
  std::filesystem::remove(file());
  EXPECT_EQ(scores(mapped), scores(model));
}

TEST_P(MappedTablesTest, AssigningCopiesAndLeavesTheFileAlone) {
  save_model(ranker(), file());
  const std::string before = read_bytes(file());
  const Loaded loaded(file());
  const std::vector<float> first = scores(loaded.model);
  for (const Variable& weight : loaded.model->weights()) {
    weight.update([](Tensor& value) {
      for (float& x : value.mutable_data<float>()) x += 1;
    });
  }
  EXPECT_NE(scores(loaded.model), first);
  EXPECT_EQ(read_bytes(file()), before);
  EXPECT_EQ(scores(Loaded(file()).model), first);
}

// S-056.
TEST_P(MappedTablesTest, PromotionKeepsTheBitsWhileOthersPredict) {
  const Functional model = ranker();
  save_model(model, file());
  const Loaded loaded(file());
  const std::vector<float> expected = scores(model);
  std::atomic<bool> done = false;
  int wrong = 0;
  std::thread reader([&] {
    while (!done) wrong += scores(loaded.model) == expected ? 0 : 1;
  });
  const int64_t moved = loaded.tables->promote();
  done = true;
  reader.join();
  EXPECT_GE(moved, kTableBytes);
  EXPECT_LT(moved, kTableBytes + 2 * kPage);
  EXPECT_TRUE(loaded.tables->tables()[0].promoted);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(scores(loaded.model), expected);
  EXPECT_EQ(loaded.tables->promote(), 0);  // nothing is left to move
}

TEST_P(MappedTablesTest, PromotionStopsWhenTold) {
  save_model(ranker(), file());
  const Loaded loaded(file());
  EXPECT_EQ(loaded.tables->promote([] { return false; }), 0);
  EXPECT_FALSE(loaded.tables->tables()[0].promoted);
}

// S-054.
TEST_P(MappedTablesTest, WritersAlignLargeDatasets) {
  save_model(ranker(), file());
  FilePart part = {.path = file()};
  if (std::string(GetParam()) == "keras") {
    const auto stored = ZipFile(file()).stored("model.weights.h5");
    ASSERT_TRUE(stored.has_value());
    part = *stored;
    EXPECT_EQ(part.offset % kPage, 0);
  }
  const Hdf5File weights(part, file());
  const std::string dataset =
      part.bytes >= 0 ? "/layers/embedding/vars/0" : "/model_weights/table/table/embeddings:0";
  const auto at = weights.locate(dataset, DType::kFloat32);
  EXPECT_EQ(at.obstacle, "");
  EXPECT_EQ(at.offset % kPage, 0);
}

TEST_P(MappedTablesTest, Int8TablesAreMapped) {
  const Functional model = ranker();
  save_model(model, file(), {.table_dtype = "int8"});
  const ModelHandle resident = load_model(file(), {.compile = false});
  const Loaded loaded(file());
  EXPECT_EQ(scores(loaded.model), scores(resident));
}

TEST(MappedTablesTest, SmallTablesAreCopiedWithoutARecord) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  save_model(Functional({.inputs = x, .outputs = Dense({.units = 1})(x)}), folder / "m.keras");
  EXPECT_TRUE(Loaded(folder / "m.keras").tables->tables().empty());
}

// A file whose table cannot be mapped. The dataset is written by hand, so that a test controls how.
std::string obstacle_of(const Tensor& value, DType needed) {
  const TemporaryFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  writer.write("/t", value);
  writer.commit();
  Hdf5File file(folder / "a.h5");
  const auto tables = std::make_shared<MappedTables>();
  file.map_tables(tables);
  const Tensor read = file.read("/t", needed);
  EXPECT_EQ(read.cast(DType::kFloat64).to_vector<double>(),
            value.cast(DType::kFloat64).to_vector<double>());
  return tables->tables().empty() ? "" : tables->tables()[0].obstacle;
}

// S-052.
TEST(MappedTablesTest, OtherDtypesAreCopiedWithTheReason) {
  const Tensor doubles = Tensor::full<double>({1 << 18}, 0.5);
  EXPECT_THAT(obstacle_of(doubles, DType::kFloat32), HasSubstr("little-endian float32"));
  EXPECT_THAT(obstacle_of(doubles, DType::kFloat64), HasSubstr("float64 are not read in place"));
  EXPECT_EQ(obstacle_of(Tensor::full<float>({1 << 18}, 0.5F), DType::kFloat32), "");
}

// S-053.
TEST(MappedTablesTest, AShortFileIsAnError) {
  const TemporaryFolder folder;
  save_model(ranker(), folder / "m.h5");
  std::filesystem::resize_file(folder / "m.h5", std::filesystem::file_size(folder / "m.h5") / 2);
  EXPECT_THROW(Loaded(folder / "m.h5"), IoError);
  MappedTables tables;
  std::ofstream(folder / "short") << "0123456789";
  EXPECT_THROW(tables.map("/t", folder / "short", 4, {.shape = {2}, .dtype = DType::kFloat32}),
               IoError);
  EXPECT_THROW(tables.map("/t", folder / "missing", 0, {.shape = {2}}), IoError);
}

}  // namespace keel::mapped_tables_test
