// Models that override the training and test steps.
// Tests layers/training/model.cc and internal/train_step.cc.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>

namespace keel::custom_step_test {

using distribute::TPUStrategy;

const Tensor& features() {
  static const Tensor value = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6, 1});
  return value;
}
const Tensor& labels() {
  static const Tensor value = Tensor::from<float>({2, 3, 6, 7, 10, 11}, {6, 1});
  return value;
}

class Line : public Model {
 public:
  explicit Line(const char* class_name = "Line") : Model(class_name) {}
  float slope() const { return weights()[0].read().item<float>(); }

 private:
  Tensors call(const Tensors& x, const CallContext&) override { return dense_(x); }
  layers::Dense dense_ =
      track(layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "zeros"}));
};

// Implements train_step as Model does, and counts predictions.
class Spelled final : public Line {
 public:
  Spelled() : Line("Spelled") {}
  Logs train_step(const Tensors& data) override {
    const StepData batch = unpack_x_y_sample_weight(data);
    GradientTape tape;
    const Tensors y = (*this)(batch.x, {.training = true});
    const Tensor loss = compute_loss(batch, y);
    const std::vector<Variable> variables = trainable_variables();
    const std::vector<Gradient> gradients = tape.gradient(loss, variables);
    optimizer()->apply_gradients(gradients, variables);
    compute_metrics(batch, y);
    size_->update_state(ops::abs(y.tensor()));
    return {{"loss", loss.item<float>()}, {"rows", static_cast<double>(batch.x.tensor().dim(0))}};
  }
  Logs test_step(const Tensors& data) override {
    size_->update_state(ops::abs((*this)(unpack_x_y_sample_weight(data).x).tensor()));
    return {};
  }
  Tensors predict_step(const Tensors& data) override {
    return (*this)(unpack_x_y_sample_weight(data).x).tensor() * 2;
  }
  std::vector<MetricHandle> metrics() const override {
    std::vector<MetricHandle> out = Line::metrics();
    out.push_back(size_);
    return out;
  }

 private:
  const metrics::Mean size_{{.name = "size"}};
};

template <class Fn>
void under_each_strategy(const Fn& fn) {
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 4});
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &tpu}) {
    SCOPED_TRACE(strategy->num_replicas_in_sync());
    const auto scope = strategy->scope();
    fn();
  }
}

CompileOptions options() {
  return {.optimizer = optimizers::SGD({.learning_rate = 0.01}), .loss = "mse", .metrics = {"mae"}};
}

TEST(CustomStepTest, AnExplicitStepTrainsAsTheDefaultOne) {
  under_each_strategy([] {
    const auto plain = make_layer<Line>();
    const auto spelled = make_layer<Spelled>();
    plain->compile(options());
    spelled->compile(options());
    const FitOptions fit = {.epochs = 2, .batch_size = 4, .seed = 3, .verbose = Verbose::kSilent};
    const Logs expected = plain->fit(features(), labels(), fit).last();
    const Logs received = spelled->fit(features(), labels(), fit).last();
    EXPECT_EQ(spelled->slope(), plain->slope());
    EXPECT_EQ(received.at("loss"), expected.at("loss"));
    EXPECT_EQ(received.at("mae"), expected.at("mae"));
    // Values are summed over the replicas and weighted by the rows of the batches, which have 4 and
    // 2.
    EXPECT_NEAR(received.at("rows"), (4 * 4 + 2 * 2) / 6.0, 1e-12);
    EXPECT_GT(received.at("size"), 0);
  });
}

TEST(CustomStepTest, TestAndPredictStepsCanBeOverridden) {
  under_each_strategy([] {
    const auto model = make_layer<Spelled>();
    model->compile(options());
    model->train_on_batch(features(), labels());
    const double mean = 3.5 * std::abs(model->slope());
    const Logs logs =
        model->evaluate(features(), labels(), {.batch_size = 4, .verbose = Verbose::kSilent});
    EXPECT_NEAR(logs.at("size"), mean, 1e-6);
    const Tensor y = model->predict(features(), {.verbose = Verbose::kSilent}).tensor();
    const Tensor on_batch = model->predict_on_batch(features()).tensor();
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(y.data<float>()[i], 2 * features().data<float>()[i] * model->slope(), 1e-6);
      EXPECT_EQ(on_batch.data<float>()[i], y.data<float>()[i]);
    }
  });
}

TEST(CustomStepTest, ComputeLossAloneCanBeOverridden) {
  struct Cubic final : Line {
    Cubic() : Line("Cubic") {}
    Tensor compute_loss(const StepData& data, const Tensors& y) override {
      const Tensor error = ops::abs(y.tensor() - data.y.tensor());
      return ops::sum(error * error * error) / 6;
    }
  };
  const Tensor targets = labels();
  double mean = 0;
  for (const float y : targets.data<float>()) mean += std::pow(y, 3) / 6;
  under_each_strategy([&] {
    const auto model = make_layer<Cubic>();
    model->compile(options());
    EXPECT_NEAR(model->train_on_batch(features(), labels()).at("loss"), mean, 1e-4 * mean);
  });
}

TEST(CustomStepTest, BatchMetricsAccumulateUnlessReset) {
  const auto model = make_layer<Line>();
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mae"});
  const Tensor x = Tensor::zeros({2, 1});
  const Tensor ones = Tensor::full<float>({2, 1}, 1), threes = Tensor::full<float>({2, 1}, 3);
  EXPECT_EQ(model->train_on_batch(x, ones).at("loss"), 1);
  EXPECT_EQ(model->train_on_batch(x, threes).at("loss"), 2);
  EXPECT_EQ(model->train_on_batch(x, threes, {.reset_metrics = true}).at("loss"), 3);
  EXPECT_EQ(model->train_on_batch(x, ones).at("loss"), 2);
  EXPECT_NEAR(model->test_on_batch(x, ones).at("loss"), 5.0 / 3, 1e-12);
  EXPECT_EQ(model->test_on_batch(x, threes, {.reset_metrics = true}).at("loss"), 3);
  model->reset_metrics();
  EXPECT_EQ(model->test_on_batch(x, ones).at("loss"), 1);
  EXPECT_EQ(model->metrics().size(), 0u);
}

// A layer that measures its inputs whenever it is called.
class MeasuringLayer final : public Layer {
 public:
  explicit MeasuringLayer(metrics::Mean mean) : Layer("Measuring"), mean_(std::move(mean)) {}

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override {
    if (!any_symbolic(inputs)) mean_->update_state(inputs.tensor());
    return inputs;
  }
  const metrics::Mean mean_;
};

TEST(CustomStepTest, AddedMetricsAreReportedAndReset) {
  under_each_strategy([] {
    const metrics::Mean mean({.name = "input_mean"});
    const Sequential model(
        {.layers = {make_layer<MeasuringLayer>(mean), layers::Dense({.units = 1})}});
    model->add_metric(mean);
    EXPECT_THROW(model->add_metric(metrics::Mean({.name = "input_mean"})), ValueError);
    model->compile(options());
    EXPECT_EQ(model->metrics().size(), 2U);
    EXPECT_THROW(model->add_metric(metrics::Mean({.name = "mae"})), ValueError);
    const Tensor x = Tensor::from<float>({1, 2, 3, 6}, {4, 1});
    const FitOptions fit = {.epochs = 2, .batch_size = 4, .verbose = Verbose::kSilent};
    EXPECT_EQ(model->fit(x, Tensor::zeros({4, 1}), fit).last().at("input_mean"), 3);
    EXPECT_EQ(model->evaluate(x * 2, Tensor::zeros({4, 1}), {.verbose = Verbose::kSilent})
                  .at("input_mean"),
              6);
  });
}

TEST(CustomStepTest, ReplicasMustReturnValuesOfTheSameNames) {
  struct Uneven final : Line {
    Uneven() : Line("Uneven") {}
    Logs train_step(const Tensors& data) override {
      return {{unpack_x_y_sample_weight(data).x.tensor().data<float>()[0] > 3 ? "a" : "b", 1}};
    }
  };
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const auto model = make_layer<Uneven>();
  model->compile(options());
  EXPECT_THROW(model->train_on_batch(features(), labels()), RuntimeError);
}

}  // namespace keel::custom_step_test
