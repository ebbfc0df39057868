// Tests layers/training/compile/internal/compile_config.cc and
// savedmodel/keras/internal/keras_compile.cc.
#include <keel/savedmodel/keras/internal/keras_h5_optimizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/multi_optimizer.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras_h5_optimizer_test {

using testing_support::normal;
using testing_support::TemporaryFolder;

using Names = std::vector<std::string>;

Sequential mlp() {
  Sequential model(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}, .name = "in"}),
                  layers::Dense({.units = 2, .name = "one"})},
       .name = "mlp"});
  uint64_t seed = 1;
  for (const Variable& v : model->weights()) v.assign(normal(v.shape(), seed++));
  return model;
}

OptimizerHandle optimizer(const std::string& class_name, const Config::Dict& options) {
  Config config = optimizers::get(class_name)->get_config();
  for (const auto& [key, value] : options) config.set(key, value);
  return optimizers::deserialize(
      Config::dict({{"class_name", class_name}, {"config", std::move(config)}}));
}

struct Kind {
  std::string class_name;
  Config::Dict options = {};
};

// Covers every class and the options that add state.
std::vector<Kind> kinds() {
  std::vector<Kind> out;
  for (const char* name :
       {"Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion",
        "Muon", "Nadam", "RMSprop", "SGD", "ScheduleFreeAdamW"}) {
    out.push_back({name, {{"learning_rate", 0.05}}});
  }
  out.push_back({"RMSprop", {{"momentum", 0.5}, {"centered", true}}});
  out.push_back({"Adam", {{"amsgrad", true}}});
  for (const char* name : {"Adagrad", "Nadam"}) {
    out.push_back({name,
                   {{"learning_rate", 0.05},
                    {"use_ema", true},
                    {"ema_overwrite_frequency", 2},
                    {"gradient_accumulation_steps", 2}}});
  }
  return out;
}

ModelHandle compiled(const Kind& kind) {
  const Sequential model = mlp();
  model->compile({.optimizer = optimizer(kind.class_name, kind.options), .loss = "mse"});
  return model;
}

void train(const ModelHandle& model, int steps) {
  const Tensors x(normal({4, 3}, 5)), y(normal({4, 2}, 6));
  for (int i = 0; i < steps; ++i) model->train_on_batch(x, y);
}

std::vector<std::vector<float>> state_of(const ModelHandle& model) {
  std::vector<std::vector<float>> out;
  std::vector<Variable> all = model->weights();
  for (const Variable& v : model->optimizer()->variables(model->trainable_variables())) {
    all.push_back(v);
  }
  for (const Variable& v : all) {
    out.push_back(v.read().cast(DType::kFloat32).to_vector<float>());
  }
  return out;
}

class StateTest : public testing::TestWithParam<const char*> {};

TEST_P(StateTest, StateOfEveryOptimizerRoundTrips) {
  const TemporaryFolder folder;
  const std::string path = folder / (std::string("a") + GetParam());
  for (const Kind& kind : kinds()) {
    const ModelHandle model = compiled(kind);
    train(model, 3);
    save_model(model, path, {.include_optimizer = true});
    const ModelHandle same = load_model(path, {.compile = true});
    EXPECT_EQ(to_json(same->optimizer()->get_config()), to_json(model->optimizer()->get_config()));
    EXPECT_EQ(state_of(same), state_of(model)) << kind.class_name;
    train(model, 3);
    train(same, 3);
    EXPECT_EQ(state_of(same), state_of(model)) << kind.class_name;
  }
}

INSTANTIATE_TEST_SUITE_P(Suffixes, StateTest, testing::Values(".h5", ".keras"));

TEST(KerasH5OptimizerTest, StateOfEveryOptimizerRoundTripsThroughCheckpoints) {
  const TemporaryFolder folder;
  for (const Kind& kind : kinds()) {
    const ModelHandle model = compiled(kind), same = compiled(kind);
    const auto checkpoint = [](const ModelHandle& of) {
      return Checkpoint({.model = of, .optimizers = {{"adam", {kAdopt, of->optimizer()}}}});
    };
    train(model, 3);
    checkpoint(model).write(folder / "a", 3);
    checkpoint(same).restore(folder / "a").assert_consumed();
    EXPECT_EQ(state_of(same), state_of(model)) << kind.class_name;
    train(model, 3);
    train(same, 3);
    EXPECT_EQ(state_of(same), state_of(model)) << kind.class_name;
  }
}

// Trains the kernel by Adam and the bias by Nadam, which has a shared slot.
ModelHandle with_two_optimizers() {
  const Sequential model = mlp();
  model->compile({.optimizer = optimizers::MultiOptimizer(
                      {.optimizer_map = OptimizerMap(
                           optimizers::Nadam({.learning_rate = 0.02}),
                           {{"one/kernel", optimizers::Adam({.learning_rate = 0.05})}})}),
                  .loss = "mse"});
  return model;
}

TEST(KerasH5OptimizerTest, StateOfSeveralOptimizersRoundTripsThroughArchivesAndCheckpoints) {
  const TemporaryFolder folder;
  const ModelHandle model = with_two_optimizers(), restored = with_two_optimizers();
  train(model, 3);
  model->optimizer()->optimizers()[1]->set_learning_rate(0.25);
  save_model(model, folder / "a.keras", {.include_optimizer = true});
  const ModelHandle loaded = load_model(folder / "a.keras", {.compile = true});
  EXPECT_EQ(to_json(loaded->optimizer()->get_config()), to_json(model->optimizer()->get_config()));
  const auto checkpoint = [](const ModelHandle& of) {
    return Checkpoint({.model = of, .optimizers = {{"both", {kAdopt, of->optimizer()}}}});
  };
  checkpoint(model).write(folder / "a", 3);
  checkpoint(restored).restore(folder / "a").assert_consumed();
  for (const ModelHandle& same : {loaded, restored}) {
    EXPECT_EQ(state_of(same), state_of(model));
    EXPECT_EQ(same->optimizer()->iterations(), 3);
    EXPECT_EQ(same->optimizer()->optimizers()[1]->learning_rate(), 0.25);
  }
  for (const ModelHandle& one : {model, loaded, restored}) train(one, 3);
  for (const ModelHandle& same : {loaded, restored}) EXPECT_EQ(state_of(same), state_of(model));
}

TEST(KerasH5OptimizerTest, FilesOfKeras2CannotHoldSeveralOptimizers) {
  const TemporaryFolder folder;
  const ModelHandle model = with_two_optimizers();
  train(model, 1);
  EXPECT_THAT(testing_support::message_of<NotImplementedError>(
                  [&] { save_model(model, folder / "a.h5", {.include_optimizer = true}); }),
              testing::HasSubstr("save a .keras file, or set include_optimizer to false"));
  save_model(model, folder / "a.h5", {.include_optimizer = false});
  EXPECT_EQ(load_model(folder / "a.h5", {.compile = false})->weights().size(), 2U);
}

Names names_of(const Kind& kind) {
  Names out;
  for (const OptimizerWeight& weight : optimizer_weights(*compiled(kind))) {
    out.push_back(weight.name);
  }
  return out;
}

TEST(KerasH5OptimizerTest, WritesTheNamesAndOrderOfKeras2) {
  EXPECT_EQ(names_of({"Adam", {{"amsgrad", true}}}),
            (Names{"iteration:0", "Adam/m/one/kernel:0", "Adam/v/one/kernel:0", "Adam/m/one/bias:0",
                   "Adam/v/one/bias:0", "Adam/vhat/one/kernel:0", "Adam/vhat/one/bias:0"}));
  EXPECT_EQ(names_of({"RMSprop", {{"momentum", 0.5}}}),
            (Names{"iteration:0", "RMSprop/velocity/one/kernel:0", "RMSprop/velocity/one/bias:0",
                   "RMSprop/momentum/one/kernel:0", "RMSprop/momentum/one/bias:0"}));
  EXPECT_EQ(
      names_of({"SGD", {{"use_ema", true}, {"gradient_accumulation_steps", 2}}}),
      (Names{"iteration:0", "SGD/average/one/kernel:0", "SGD/average/one/bias:0",
             "SGD/gradient_accumulator/one/kernel:0", "SGD/gradient_accumulator/one/bias:0"}));
  EXPECT_EQ(names_of({"Nadam"}).back(), "Nadam/u_product:0");
}

TEST(KerasH5OptimizerTest, ListsTheStateInTheOrderOfKeras3) {
  Names names;
  const ModelHandle model = compiled({"Nadam", {{"use_ema", true}}});
  for (const OptimizerState& state : optimizer_state(*model)) names.push_back(state.name);
  EXPECT_EQ(names, (Names{"iteration", "learning_rate", "one/kernel/average", "one/bias/average",
                          "one/kernel/momentum", "one/kernel/velocity", "one/bias/momentum",
                          "one/bias/velocity", "nadam/u_product"}));
}

using State = std::vector<std::pair<std::string, Tensor>>;

// Returns a model of this kind after reading a file with this state.
ModelHandle with_state(const Kind& kind, const State& state) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    Names names;
    for (const auto& [name, value] : state) {
      names.push_back(name);
      file.write("/optimizer_weights/" + name, value);
    }
    file.write_string_list("/optimizer_weights", "weight_names", names);
    file.commit();
  }
  const ModelHandle model = compiled(kind);
  read_optimizer_weights(Hdf5File(folder / "a.h5"), *model);
  return model;
}

// The names of a file's entries for the kernel and the bias.
void expect_reads(const Kind& kind, const std::string& slot, const std::string& kernel,
                  const std::string& bias) {
  const Tensor value = normal({3, 2}, 9);
  const ModelHandle model = with_state(
      kind,
      {{"iteration:0", Tensor::scalar<int64_t>(4)}, {kernel, value}, {bias, normal({2}, 10)}});
  const Optimizer& optimizer = *model->optimizer();
  EXPECT_EQ(optimizer.iterations_variable().read().item<int64_t>(), 4);
  for (const Variable& v : optimizer.slots(model->trainable_variables()[0])) {
    EXPECT_EQ(v.read().to_vector<float>() == value.to_vector<float>(), v.name() == slot)
        << kernel << " as " << v.name();
  }
}

TEST(KerasH5OptimizerTest, ReadsTheNamesOfAllVersions) {
  expect_reads({"RMSprop", {{"momentum", 0.5}}}, "velocity", "RMSprop/rms/one/kernel:0",
               "RMSprop/rms/one/bias:0");
  expect_reads({"RMSprop", {{"momentum", 0.5}}}, "velocity", "RMSprop/one/kernel/rms:0",
               "RMSprop/one/bias/rms:0");
  expect_reads({"RMSprop", {{"momentum", 0.5}, {"centered", true}}}, "average_gradient",
               "rm_sprop/one_kernel_average_gradient", "rm_sprop/one_bias_average_gradient");
  expect_reads({"Adamax"}, "norm", "Adamax/u/one/kernel:0", "Adamax/u/one/bias:0");
  expect_reads({"Adadelta"}, "accumulated_delta_var", "Adadelta/one/kernel/accum_var:0",
               "Adadelta/one/bias/accum_var:0");
  expect_reads({"Adam", {{"amsgrad", true}}}, "velocity_hat", "adam/one_kernel_velocity_hat",
               "adam/one_bias_velocity_hat");
  const Kind accumulating = {"Adagrad", {{"gradient_accumulation_steps", 2}, {"use_ema", true}}};
  expect_reads(accumulating, "gradient_accumulator", "adagrad/one_kernel_gradient_accumulator",
               "adagrad/one_bias_gradient_accumulator");
  expect_reads(accumulating, "accumulator", "adagrad/one_kernel_accumulator",
               "adagrad/one_bias_accumulator");
  expect_reads(accumulating, "average", "adagrad/one_kernel_average", "adagrad/one_bias_average");
}

double product_read(const State& more) {
  State state = {{"nadam/iteration", Tensor::scalar<int64_t>(2)}};
  state.insert(state.end(), more.begin(), more.end());
  return with_state({"Nadam"}, state)->optimizer()->shared_slots()[0].read().item<double>();
}

TEST(KerasH5OptimizerTest, ReadsTheSharedSlotOfNadam) {
  for (const char* name : {"nadam/variable", "nadam/variable_3", "Variable:0", "Nadam/u_product:0",
                           "Nadam/momentum_cache:0"}) {
    EXPECT_EQ(product_read({{name, Tensor::scalar<float>(0.5)}}), 0.5) << name;
  }
}

TEST(KerasH5OptimizerTest, CreatesASharedSlotThatTheFileLacks) {
  const double first = 0.9 * (1 - 0.5 * 0.96);
  EXPECT_NEAR(product_read({}), first * 0.9 * (1 - 0.5 * 0.96 * 0.96), 1e-12);
}

TEST(KerasH5OptimizerTest, AnOptimizerOfOtherVariablesStartsFresh) {
  const State of_one = {{"iteration:0", Tensor::scalar<int64_t>(2)},
                        {"SGD/m/one/kernel:0", normal({3, 2}, 1)}};
  EXPECT_EQ(with_state({"SGD", {{"momentum", 0.5}}}, of_one)->optimizer()->iterations(), 0);
}

TEST(KerasH5OptimizerTest, RejectsIncompatibleArguments) {
  const std::pair<std::string, Tensor> iteration = {"iteration:0", Tensor::scalar<int64_t>(2)};
  EXPECT_THROW(with_state({"SGD"}, {iteration, {"SGD/m/one/kernel:0", normal({3, 2}, 1)}}),
               IoError);
  EXPECT_THROW(with_state({"Nadam"}, {iteration, {"nadam/variable", normal({2}, 1)}}), IoError);
}

}  // namespace keel::keras_h5_optimizer_test
