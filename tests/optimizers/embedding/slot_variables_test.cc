#include <gtest/gtest.h>

#include <keel/optimizers/embedding/bounds_and_slots.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

namespace keel::slot_variables_test {

const TableVariable kTable = {.name = "video", .shape = {3, 2}};

EmbeddingOptimizer made_by(const SlotVariableCreationFn& f) {
  return tpu::FTRL{.slot_variable_creation_fn = f};
}

// A factory that returns `slots` for any arguments.
EmbeddingOptimizer returning(const SlotVariables& slots) {
  return made_by([slots](const TableVariable&, const std::vector<std::string>&,
                         const std::vector<Initializer>&) { return slots; });
}

float first_value(const SlotVariables& slots, const std::string& name) {
  return std::get<Initializer>(slots.at(name))({1}).item<float>();
}

TEST(SlotVariablesTest, StartAtTheOptimizerValuesWithoutAFactory) {
  const SlotVariables slots =
      create_slots(*EmbeddingOptimizer(tpu::FTRL{.initial_accumulator_value = 0.5}), kTable);
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(first_value(slots, "accumulators"), 0.5F);
  EXPECT_EQ(first_value(slots, "linears"), 0);
  EXPECT_TRUE(create_slots(*EmbeddingOptimizer("sgd"), kTable).empty());
}

TEST(SlotVariablesTest, TheFactoryIsCalledOnceWithTableNamesAndInitializers) {
  int calls = 0;
  const EmbeddingOptimizer t = made_by([&](const TableVariable& table,
                                           const std::vector<std::string>& names,
                                           const std::vector<Initializer>& initializers) {
    ++calls;
    EXPECT_EQ(table.name, "video");
    EXPECT_EQ(table.shape, Shape({3, 2}));
    EXPECT_EQ(table.dtype, DType::kFloat32);
    EXPECT_EQ(names, (std::vector<std::string>{"accumulators", "linears"}));
    EXPECT_EQ(initializers.size(), 2U);
    return SlotVariables{{names[0], initializers::constant(7)}, {names[1], Tensor::zeros({3, 2})}};
  });
  const SlotVariables slots = create_slots(*t, kTable);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(first_value(slots, "accumulators"), 7);
  EXPECT_TRUE(std::holds_alternative<Tensor>(slots.at("linears")));
}

TEST(SlotVariablesTest, TheNamesReturnedMustBeTheSlots) {
  const Initializer zeros = initializers::zeros();
  for (const SlotVariables& wrong :
       std::vector<SlotVariables>{{},
                                  {{"accumulators", zeros}},
                                  {{"accumulators", zeros}, {"linear", zeros}},
                                  {{"accumulators", zeros}, {"linears", zeros}, {"m", zeros}}}) {
    EXPECT_THROW(create_slots(*returning(wrong), kTable), ValueError);
  }
}

TEST(SlotVariablesTest, ATensorMustMatchTheTable) {
  const Initializer zeros = initializers::zeros();
  const auto with = [&](const Tensor& linears) {
    return create_slots(*returning({{"accumulators", zeros}, {"linears", linears}}), kTable);
  };
  EXPECT_NO_THROW(with(Tensor::zeros({3, 2})));
  EXPECT_THROW(with(Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(with(Tensor::zeros({3, 2}, DType::kFloat64)), ValueError);
  EXPECT_THROW(with(Tensor()), ValueError);
}

TEST(SlotVariablesTest, ACustomOptimizerHasItsOwnInitializers) {
  const EmbeddingOptimizer t = tpu::CustomOptimizer{.custom_computation = [](const CustomRow&) {},
                                                    .slot_names = {"b", "a"},
                                                    .slot_initializers = {"ones", "zeros"}};
  const SlotVariables slots = create_slots(*t, kTable);
  EXPECT_EQ(first_value(slots, "b"), 1);
  EXPECT_EQ(first_value(slots, "a"), 0);
}

}  // namespace keel::slot_variables_test
