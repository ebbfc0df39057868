#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/internal/int8_table.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/optimizers/adam.h>

#include "tests/layers/serving/models.h"
#include "tests/support/tensors.h"

namespace keel::int8_plan_test {

using testing_support::values_of;

using namespace serving_test;  // NOLINT: the models are what these tests are about

constexpr int64_t kRows = 50;

// Replaces the values of each table by their 8-bit approximation.
void round_tables(const Functional& model) {
  for (const Variable& v : model->trainable_variables()) {
    if (v.shape().rank() != 2 || v.shape()[0] != kRows) continue;
    v.assign(Int8Table(v.read(), "test").to_floats());
  }
}

TEST(Int8Plan, LookupsMatchAPlanOfRoundedTables) {
  for (const int64_t dim : {16, 24}) {
    const Functional model = dlrm(dim);
    const Tensors batch = dlrm_batch(130);
    const ServingPlan small(ModelHandle(model), {.table_dtype = "int8"});
    EXPECT_EQ(small.called_layers(), std::vector<std::string>());
    const auto of_floats = values_of(ServingPlan(ModelHandle(model))(batch));
    const auto of_bytes = values_of(small(batch));
    round_tables(model);
    EXPECT_EQ(of_bytes, values_of(ServingPlan(ModelHandle(model))(batch)));
    EXPECT_NE(of_bytes, of_floats);
    for (size_t i = 0; i < of_floats.size(); ++i) EXPECT_NEAR(of_bytes[i], of_floats[i], 0.02);
  }
}

TEST(Int8Plan, PooledBagsMatchAPlanOfRoundedTables) {
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    const Tensors ids = layers::ragged_input({.dtype = DType::kInt64, .name = "bag"});
    const FeatureConfig bags = {.table = table(kRows, 16, combiner)};
    const Tensors pooled = layers::TPUEmbedding({.feature_config = bags})(ids);
    const Functional model(
        {.inputs = ids, .outputs = layers::Dense({.units = 3})(pooled.tensor())});
    const Tensors batch = RaggedTensor::from_rows<int64_t>({{1, 2, 49}, {}, {7}, {7, 7}});
    const ServingPlan small(ModelHandle(model), {.table_dtype = "int8"});
    const auto of_bytes = values_of(small(batch));
    round_tables(model);
    EXPECT_EQ(of_bytes, values_of(ServingPlan(ModelHandle(model))(batch))) << combiner;
  }
}

// Lazy tables store rows next to their slot variables; the plan copies the rows.
TEST(Int8Plan, ServesTablesOfLazyRows) {
  const Functional model = dlrm();
  const Tensors batch = dlrm_batch(40);
  const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  const std::vector<Variable> variables = model->trainable_variables();
  for (int step = 0; step < 3; ++step) {
    GradientTape tape;
    const Tensor loss = ops::mean(ops::square(model(batch).tensor()));
    adam->apply_gradients(tape.gradient(loss, variables), variables);
  }
  EXPECT_TRUE(std::ranges::any_of(
      variables, [](const Variable& v) { return VariableStorage(v).value().is_view(); }));
  const auto predicted = model(batch).tensor().to_vector<float>();
  EXPECT_EQ(values_of(ServingPlan(ModelHandle(model))(batch)), predicted);
  const auto of_bytes = values_of(ServingPlan(ModelHandle(model), {.table_dtype = "int8"})(batch));
  round_tables(model);
  EXPECT_EQ(of_bytes, values_of(ServingPlan(ModelHandle(model))(batch)));
}

TEST(Int8Plan, OtherDTypesAndTablesThatAreNotFiniteAreErrors) {
  const Functional model = dlrm();
  EXPECT_THROW(ServingPlan(ModelHandle(model), {.table_dtype = "int4"}), ValueError);
  for (const Variable& v : model->trainable_variables()) {
    if (v.shape()[0] == kRows) v.assign(Tensor::full<float>(v.shape(), std::nanf("")));
  }
  EXPECT_THROW(ServingPlan(ModelHandle(model), {.table_dtype = "int8"}), ValueError);
}

}  // namespace keel::int8_plan_test
