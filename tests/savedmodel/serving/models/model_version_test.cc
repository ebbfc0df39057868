// Tests savedmodel/serving/models/model_version.cc and savedmodel/serving/base/memory_budget.cc.
#include <keel/savedmodel/serving/models/model_version.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/core.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/serving/base/memory_budget.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::serving::model_version_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;

// S-162: outputs of every dtype count, here 1000 integers in each row.
TEST(ModelVersionTest, LimitsTheBytesOfItsOutputs) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {1000}, .dtype = DType::kInt64, .name = "x"});
  save_model(Functional({.inputs = x, .outputs = layers::Identity({.name = "y"})(x)}),
             folder / "m.keras");
  const ModelVersion version("m", 1, folder / "m.keras", std::make_shared<ModelMetrics>());
  EXPECT_NO_THROW(version.check_output_size(100'000));
  EXPECT_THAT(message_of<ServeError>([&] { version.check_output_size(200'000); }),
              HasSubstr("outputs of 200000 rows"));
}

// S-162: the memory of a request's lists counts, and is free again after them.
TEST(MemoryBudgetTest, RefusesListsThatExceedIt) {
  constexpr int64_t kBytes = 1000;
  const MemoryBudget::Scope scope(kBytes);
  const auto fill = [](size_t count) { IntegerList(count, 0); };
  for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(fill(100));
  EXPECT_THAT(message_of<ServeError>([&] { fill(125); }), HasSubstr("1000 bytes"));
  {
    const MemoryBudget::Scope inner(MemoryBudget::kUnlimited);
    EXPECT_NO_THROW(fill(125));
  }
  EXPECT_THROW(fill(125), ServeError);
  EXPECT_NO_THROW(fill(100));
}

TEST(MemoryBudgetTest, GrowsWithTheBody) {
  EXPECT_EQ(MemoryBudget::of_body(0), MemoryBudget::kLeastBytes);
  constexpr size_t kBody = size_t{64} << 20;
  EXPECT_LT(MemoryBudget::of_body(kBody) + int64_t{3} * int64_t{kBody}, int64_t{8} * kBody + 1);
}

}  // namespace keel::serving::model_version_test
