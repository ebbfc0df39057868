// Tests layers/functional/input_layer.cc and internal/functional_order.cc.
#include <keel/layers/functional/functional.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/layers/small_graphs.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::functional_test {

using layers::Dense;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::message_if_any;

std::vector<std::string> names(const FunctionalModel& model) {
  std::vector<std::string> out;
  for (const auto& layer : model.layers()) out.push_back(layer->name());
  return out;
}

TEST(FunctionalTest, ReplaysItsGraphOnNewInputs) {
  const Tensor x = layers::input({.shape = {2}});
  const Functional model({.inputs = x, .outputs = ops::scale(ones()(x), 2)});
  EXPECT_EQ(model(row({1, 2})).item<float>(), 6);
  EXPECT_EQ(model(Tensor::full<float>({3, 2}, 1)).shape(), Shape({3, 1}));
}

TEST(FunctionalTest, AcceptsDictsAndIgnoresExtraKeys) {
  const Tensor a = layers::input({.shape = {1}});
  const Tensor b = layers::input({.shape = {1}});
  const Tensor y = layers::Subtract({})(Tensors::list({a, b})).tensor();
  const Functional model({.inputs = {{"a", a}, {"b", b}}, .outputs = {{"y", y}}});
  const Tensors batch = {{"a", row({5})}, {"b", row({3})}, {"label", row({9})}};
  EXPECT_EQ(model(batch)["y"].tensor().item<float>(), 2);
}

TEST(FunctionalTest, OutputsKeepTheirStructure) {
  const Tensor x = layers::input({.shape = {2}});
  const Tensor y = ones()(x);
  const Functional model({.inputs = x, .outputs = Tensors::tuple({y, Tensors{{"x", x}}})});
  const Tensors out = model(Tensors(row({1, 2})));
  EXPECT_EQ(out[0].tensor().item<float>(), 3);
  EXPECT_EQ(out[1]["x"].tensor().to_vector<float>(), (Values{1, 2}));
}

TEST(FunctionalTest, ASharedLayerHasOneSetOfWeights) {
  const Tensor a = layers::input({.shape = {2}});
  const Tensor b = layers::input({.shape = {2}});
  const Dense shared = ones();
  const Tensor y = layers::Add({})(Tensors::list({shared(a), shared(b)})).tensor();
  const Functional model({.inputs = Tensors::list({a, b}), .outputs = y});
  EXPECT_EQ(model->count_params(), 3);
  GradientTape tape;
  const Tensor sum = model(Tensors::list({row({1, 2}), row({3, 4})})).tensor();
  EXPECT_EQ(sum.item<float>(), 10);
  const auto gradients = tape.gradient(sum, {shared->kernel()});
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), (Values{4, 6}));
}

TEST(FunctionalTest, AModelIsALayerOfAnother) {
  const Tensor x = layers::input({.shape = {2}});
  const Functional inner({.inputs = x, .outputs = ones()(x)});
  const Tensor z = layers::input({.shape = {2}});
  const Tensor y = layers::Add({})(Tensors::list({inner(z), inner(z)})).tensor();
  const Functional outer({.inputs = z, .outputs = y});
  EXPECT_EQ(outer(row({1, 2})).item<float>(), 6);
  EXPECT_EQ(outer->layers().size(), 3u);
  EXPECT_EQ(outer->count_params(), 3);
}

TEST(FunctionalTest, TrainingReachesTheLayersOfTheGraph) {
  const Tensor x = layers::input({.shape = {100}});
  const Functional model({.inputs = x, .outputs = layers::Dropout({.rate = 1})(x)});
  const Tensor ones = Tensor::full<float>({1, 100}, 1);
  EXPECT_EQ(model(ones).data<float>()[0], 1);
  EXPECT_EQ(model(ones, {.training = true}).data<float>()[0], 0);
}

TEST(FunctionalTest, RaggedInputsAreSupported) {
  const RaggedTensor x = layers::ragged_input({.dtype = DType::kInt64});
  const Tensors same = layers::Identity({})(Tensors(x));
  const Functional model({.inputs = Tensors(x), .outputs = same});
  const RaggedTensor rows = RaggedTensor::from_rows<int64_t>({{1, 2}, {}});
  EXPECT_EQ(model(Tensors(rows)).leaf().ragged().values.id(), rows.values.id());
  EXPECT_THROW(model(Tensors(Tensor::zeros({2, 2}, DType::kInt64))), TypeError);
}

TEST(FunctionalTest, ConstantsRemainInTheGraph) {
  const Tensor x = layers::input({.shape = {1}});
  const Functional model({.inputs = x, .outputs = x + row({7})});
  EXPECT_EQ(model(row({1})).item<float>(), 8);
}

// The expected order is the layers_order of the format description for this graph: by depth from
// the outputs, deepest first, then in the order of a traversal from the outputs.
TEST(FunctionalTest, LayersAreListedByDepthAsKerasDoes) {
  const Tensor a = layers::input({.shape = {1}, .name = "a"});
  const Tensor b = layers::input({.shape = {1}, .name = "b"});
  const Tensor deep = ones("second")(ones("first")(b));
  const Tensor shallow = ones("side")(a);
  const Tensor y = layers::Add({.name = "join"})(Tensors::list({shallow, deep})).tensor();
  const Functional model({.inputs = Tensors::list({a, b}), .outputs = y});
  EXPECT_EQ(names(*model), (std::vector<std::string>{"b", "a", "first", "side", "second", "join"}));
}

TEST(FunctionalTest, UnusedInputsRemainInputs) {
  const Tensor a = layers::input({.shape = {1}});
  const Tensor b = layers::input({.shape = {1}});
  const Functional model({.inputs = Tensors::list({a, b}), .outputs = ones()(a)});
  EXPECT_EQ(model(Tensors::list({row({2}), row({3})})).tensor().item<float>(), 2);
  EXPECT_EQ(model->layers().size(), 3u);
}

TEST(FunctionalTest, RejectsInvalidGraphs) {
  const Tensor a = layers::input({.shape = {1}});
  const Tensor b = layers::input({.shape = {1}});
  const Tensor y = ones()(a);
  EXPECT_THROW(Functional({.inputs = b, .outputs = y}), ValueError);
  EXPECT_THROW(Functional({.inputs = y, .outputs = y}), ValueError);
  EXPECT_THROW(Functional({.inputs = Tensors::list({a, a}), .outputs = y}), ValueError);
  EXPECT_THROW(Functional({.inputs = a, .outputs = row({1})}), ValueError);
  EXPECT_THROW(Functional({.inputs = a, .outputs = ones("twin")(ones("twin")(a))}), ValueError);
}

TEST(FunctionalTest, RejectsIncompatibleInputs) {
  const Tensor x = layers::input({.shape = {2}});
  const Functional model({.inputs = {{"x", x}}, .outputs = ones()(x)});
  EXPECT_THROW(model(Tensors{{"x", row({1, 2, 3})}}), ValueError);
  EXPECT_THROW(model(Tensors{{"y", row({1, 2})}, {"z", row({1, 2})}}), ValueError);
  EXPECT_THROW(model(Tensors(row({1, 2}))), TypeError);
  EXPECT_THROW(model(Tensors{{"x", Tensor::from<std::string>({"a", "b"}, {1, 2})}}), TypeError);
}

// Returns the error message of a model named "ranker" that is called with `given`.
template <class Expected>
std::string error_of(const Tensors& inputs, const Tensors& given) {
  const Functional model(
      {.inputs = inputs, .outputs = ones()(flatten(inputs)[0].tensor()), .name = "ranker"});
  return message_if_any<Expected>([&] { model(given); });
}

TEST(FunctionalTest, ErrorsNameExpectedAndReceivedInputs) {
  const Tensor price = layers::input({.shape = {1}, .name = "price"});
  const Tensor age = layers::input({.shape = {1}, .name = "age"});
  EXPECT_EQ(error_of<TypeError>(price, {{"cost", row({1})}, {"id", row({3})}}),
            "ranker: must be called with a tensor (input 'price'), received a dict {cost: *, id: "
            "*}");
  const Tensors both = {{"price", price}, {"age", age}};
  EXPECT_EQ(error_of<TypeError>(both, row({1})),
            "ranker: must be called with a dict {age: *, price: *}, received a tensor");
  EXPECT_EQ(error_of<ValueError>(both, {{"price", row({1})}, {"years", row({2})}}),
            "ranker: must be called with a dict {age: *, price: *}, received a dict {price: *, "
            "years: *}");
  EXPECT_EQ(error_of<ValueError>(Tensors::list({price, age}), Tensors::list({row({1})})),
            "ranker: must be called with [*, *] (inputs 'price', 'age'), received [*]");
  EXPECT_EQ(error_of<Error>(both, {{"price", row({1})}, {"age", row({2})}, {"id", row({3})}}), "");
}

TEST(FunctionalTest, AcceptsPositionalInputsByName) {
  const Tensor price = layers::input({.shape = {1}, .name = "price"});
  const Tensor age = layers::input({.shape = {1}, .name = "age"});
  const Tensors given = {{"price", row({7})}, {"age", row({30})}, {"id", row({3})}};
  EXPECT_EQ(Functional({.inputs = price, .outputs = price * 3.0})(given).tensor().item<float>(),
            21);
  const Tensor sum = price * 3.0 + age;
  for (const Tensors& inputs : {Tensors::list({age, price}), Tensors::tuple({price, age})}) {
    EXPECT_EQ(Functional({.inputs = inputs, .outputs = sum})(given).tensor().item<float>(), 51);
  }
  EXPECT_EQ(error_of<TypeError>(Tensors::list({price, age}), {{"price", row({1})}}),
            "ranker: must be called with [*, *] (inputs 'price', 'age'), received a dict {price: "
            "*}");
}

// In files of Keras 2 the numbers in input names differ between programs.
TEST(FunctionalTest, ASingleInputMayHaveAnyName) {
  const Tensor price = layers::input({.shape = {1}, .name = "price"});
  const Tensors given = {{"dense_7_input", row({7})}};
  const Tensor y = price * 3.0;
  for (const Tensors& inputs :
       {Tensors(price), Tensors::list({price}), Tensors::dict({{"price", price}})}) {
    EXPECT_EQ(Functional({.inputs = inputs, .outputs = y})(given).tensor().item<float>(), 21);
  }
}

TEST(FunctionalTest, AnExplicitTrainingArgumentIsKept) {
  const Tensor input = layers::input({.shape = {1000}});
  const layers::Dropout dropout({.rate = 0.5, .seed = 3});
  const Functional always(
      {.inputs = input, .outputs = dropout(input, {.training = true}), .name = "always"});
  const Functional never(
      {.inputs = input, .outputs = dropout(input, {.training = false}), .name = "never"});
  const Tensor ones = Tensor::full<float>({1, 1000}, 1);
  const auto zeros = [](const Tensor& t) { return std::ranges::count(t.data<float>(), 0.0F); };
  EXPECT_NEAR(zeros(always(ones)), 500, 100);
  EXPECT_EQ(zeros(never(ones, {.training = true})), 0);
  const auto again = FunctionalModel::from_config(always->get_config());
  EXPECT_NEAR(zeros(again(ones)), 500, 100);
}

TEST(FunctionalTest, ATensorWithoutAProducerIsAnError) {
  const Tensor input = layers::input({.shape = {2}});
  const Tensor stray = Tensor::symbolic({.shape = {kUnknown, 2}});
  const Tensor y =
      layers::Dense({.units = 1})(layers::Add({})(Tensors::list({input, stray})).tensor());
  EXPECT_THROW(Functional({.inputs = input, .outputs = y}), ValueError);
}

TEST(FunctionalTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Functional",
                         .config = R"({"name": "graph", "layers": [
    {"name": "graph_in", "class_name": "InputLayer",
     "config": {"batch_input_shape": [null, 3], "dtype": "float32"}, "inbound_nodes": []},
    {"name": "graph_out", "class_name": "Dense", "config": {"units": 2},
     "inbound_nodes": [[["graph_in", 0, 0, {}]]]}],
    "input_layers": [["graph_in", 0, 0]], "output_layers": [["graph_out", 0, 0]]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 2}),
                         .trainable_weights = 2,
                         .weights = 2});
  expect_layer_contract({.class_name = "InputLayer",
                         .config = R"({"batch_shape": [null, 3]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "Model",
                         .config = R"({"name": "graph", "layers": [
    {"name": "graph_in", "class_name": "InputLayer",
     "config": {"batch_input_shape": [null, 3], "dtype": "float32"}, "inbound_nodes": []},
    {"name": "graph_out", "class_name": "Dense", "config": {"units": 2},
     "inbound_nodes": [[["graph_in", 0, 0, {}]]]}],
    "input_layers": [["graph_in", 0, 0]], "output_layers": [["graph_out", 0, 0]]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 2}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::functional_test
