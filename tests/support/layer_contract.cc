#include "tests/support/layer_contract.h"

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/registry.h>

namespace keel::testing_support {
namespace {

LayerHandle<Layer> made(const LayerContract& contract) {
  auto layer = layers::deserialize(
      Config::dict({{"class_name", contract.class_name}, {"config", parse_json(contract.config)}}));
  if (contract.prepare) contract.prepare(*layer);
  return layer;
}

Specs with_rows(const Specs& specs, int64_t rows) {
  return map_structure(specs, [&](const TensorSpec& spec) -> TensorSpec {
    TensorSpec out = spec;
    out.shape = out.shape.with(0, rows);
    return out;
  });
}

// Returns as many ragged rows, of two zeros each.
RaggedTensor ragged_zeros(int64_t rows, DType dtype) {
  std::vector<int64_t> splits(static_cast<size_t>(rows) + 1);
  for (size_t i = 0; i < splits.size(); ++i) splits[i] = 2 * static_cast<int64_t>(i);
  return {.values = Tensor::zeros({2 * rows}, dtype),
          .row_splits = Tensor::from<int64_t>(splits, {rows + 1})};
}

// Returns zeros for integers, strings and ragged rows, and distinct values for other floats.
Tensors inputs_of(const Specs& specs) {
  return map_structure(specs, [](const TensorSpec& spec) -> TensorLike {
    if (spec.layout == Layout::kRagged) return ragged_zeros(spec.shape[0], spec.dtype);
    Tensor out = Tensor::zeros(spec.shape, spec.dtype);
    if (!is_floating(spec.dtype)) return out;
    float value = 0.3F;
    for (float& v : out.mutable_data<float>()) v = (value += 0.7F * value - 0.1F);
    return out;
  });
}

void expect_restored_by_its_config(const LayerContract& contract) {
  const auto layer = made(contract);
  const Config config = layers::serialize(*layer);
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
  EXPECT_EQ(copy->name(), layer->name());
  EXPECT_EQ(copy->class_name(), layer->class_name());
  // Otherwise the class is an alias. A "Model" of Keras 2 is read as a Functional.
  if (contract.class_name != "Model") {
    EXPECT_EQ(layer->class_name(), contract.class_name);
  }
}

void expect_output(const LayerContract& contract) {
  const auto layer = made(contract);
  const Specs specs = layer->compute_output_spec(with_rows(contract.inputs, kUnknown));
  EXPECT_EQ(flatten(specs), flatten(with_rows(contract.output, kUnknown)));
  const Tensors output = layer(inputs_of(contract.inputs));
  EXPECT_EQ(flatten(specs_of(output)), flatten(contract.output));
  for (const bool training : {false, true}) {
    const Tensors none =
        made(contract)(inputs_of(with_rows(contract.inputs, 0)), {.training = training});
    EXPECT_EQ(flatten(specs_of(none)), flatten(with_rows(contract.output, 0)));
  }
}

void expect_weights(const LayerContract& contract) {
  const auto layer = made(contract);
  layer->build(with_rows(contract.inputs, kUnknown));
  layer(inputs_of(contract.inputs));
  EXPECT_EQ(layer->trainable_variables().size(), contract.trainable_weights);
  EXPECT_EQ(layer->weights().size(), contract.weights);
  layer->set_trainable(false);
  EXPECT_TRUE(layer->trainable_variables().empty());
}

void expect_gradients(const LayerContract& contract) {
  const auto layer = made(contract);
  layer->build(contract.inputs);
  GradientTape tape;
  const Tensors output = layer(inputs_of(contract.inputs), {.training = true});
  const auto variables = layer->trainable_variables();
  if (variables.empty()) return;
  Tensor loss = Tensor::scalar<float>(0);
  for (const TensorLike& leaf : flatten(output)) {
    loss = loss + ops::sum(leaf.layout() == Layout::kRagged ? leaf.ragged().values : leaf.tensor());
  }
  const auto gradients = tape.gradient(loss, variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    ASSERT_TRUE(gradients[i]) << variables[i].name();
    EXPECT_EQ(gradients[i].dense().shape(), variables[i].shape()) << variables[i].name();
  }
}

}  // namespace

void expect_layer_contract(const LayerContract& contract) {
  SCOPED_TRACE(contract.class_name);
  expect_restored_by_its_config(contract);
  expect_output(contract);
  expect_weights(contract);
  expect_gradients(contract);
}

}  // namespace keel::testing_support
