#include <keel/layers/layer.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/regularization/regularization.h>

namespace keel::layer_test {

using layers::Dense;

// Records how it was called.
class Probe final : public TensorLayer {
 public:
  Probe() : TensorLayer("Probe") {}
  std::vector<bool> trainings;
  int builds = 0;

 private:
  void build_weights(const TensorSpec& input) override {
    ++builds;
    scale_ = add_weight({.name = "scale", .shape = {input.shape[-1]}, .initializer = "ones"});
  }
  Tensor call(const Tensor& x, const CallContext& context) override {
    trainings.push_back(context.training);
    return x * scale_;
  }
  Variable scale_;
};

class Outer final : public TensorLayer {
 public:
  Outer() : TensorLayer("Outer") {}
  LayerHandle<Probe> probe = track(make_layer<Probe>());
  LayerHandle<Probe> again = track(probe);

 private:
  Tensor call(const Tensor& x, const CallContext&) override {
    return again(probe(x), {.training = false});
  }
};

TEST(LayerTest, TrainingIsInheritedFromTheEnclosingCall) {
  const auto outer = make_layer<Outer>();
  const Tensor x = Tensor::full<float>({1, 2}, 1);
  outer(x);
  outer(x, {.training = true});
  EXPECT_EQ(outer->probe->trainings, (std::vector<bool>{false, false, true, false}));
}

TEST(LayerTest, TheFirstCallBuildsAndOthersDoNot) {
  const auto probe = make_layer<Probe>();
  EXPECT_FALSE(probe->built());
  probe(Tensor::zeros({1, 2}));
  probe(Tensor::zeros({5, 2}));
  EXPECT_EQ(probe->builds, 1);
  EXPECT_EQ(probe->weights()[0].path(), probe->name() + "/scale");
}

TEST(LayerTest, WeightsAreCreatedOutsideOfTapes) {
  const auto probe = make_layer<Probe>();
  GradientTape tape;
  const Tensor y = probe(Tensor::full<float>({1, 2}, 3));
  const auto gradients = tape.gradient(y, probe->trainable_variables());
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST(LayerTest, ALayerReachedTwiceCountsOnce) {
  const auto outer = make_layer<Outer>();
  outer(Tensor::zeros({1, 2}));
  EXPECT_EQ(outer->trainable_variables().size(), 1u);
  EXPECT_EQ(outer->count_params(), 2);
}

TEST(LayerTest, SetTrainableReachesTheLayersInside) {
  const auto outer = make_layer<Outer>();
  outer(Tensor::zeros({1, 2}));
  outer->set_trainable(false);
  EXPECT_FALSE(outer->probe->trainable());
  EXPECT_TRUE(outer->trainable_variables().empty());
  EXPECT_EQ(outer->non_trainable_variables().size(), 1u);
  outer->set_trainable(true);
  EXPECT_EQ(outer->trainable_variables().size(), 1u);
}

TEST(LayerTest, ASymbolicCallIsOneNode) {
  const auto outer = make_layer<Outer>();
  const Tensor x = layers::input({.shape = {2}});
  const Tensor y = outer(x);
  ASSERT_TRUE(y.is_symbolic());
  EXPECT_EQ(y.shape(), Shape({kUnknown, 2}));
  EXPECT_EQ(y.producer()->operation.get(), &*outer);
  EXPECT_EQ(y.producer()->inputs.tensor().id(), x.id());
}

TEST(LayerTest, ComputeOutputSpecBuilds) {
  const Dense dense({.units = 3});
  const Specs specs = dense->compute_output_spec(Specs(TensorSpec{.shape = {kUnknown, 2}}));
  EXPECT_EQ(specs.leaf().shape, Shape({kUnknown, 3}));
  EXPECT_TRUE(dense->built());
}

TEST(LayerTest, AFailedBuildCanBeRepeated) {
  const Dense dense({.units = 3});
  EXPECT_THROW(dense(Tensor::zeros({2})), ValueError);
  EXPECT_EQ(dense(Tensor::zeros({1, 2})).shape(), Shape({1, 3}));
  EXPECT_EQ(dense->weights().size(), 2u);
}

TEST(LayerTest, ConcurrentFirstCallsOfReplicasBuildOnce) {
  distribute::TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  const auto outer = make_layer<Outer>();
  const auto x = strategy.distribute_values_from_function(
      [](int r) { return Tensor::full<float>({1, 2}, static_cast<float>(r)); });
  const auto y = strategy.run([&](const Tensor& t) { return outer(t); }, x);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(y[r].data<float>()[0], static_cast<float>(r));
  EXPECT_EQ(outer->probe->builds, 1);
}

TEST(LayerTest, VariablesIncludeNonWeights) {
  const layers::Dropout dropout({});
  dropout(Tensor::zeros({1}));
  EXPECT_TRUE(dropout->weights().empty());
  EXPECT_EQ(dropout->variables().size(), 1u);
  const auto entries = dropout->state_entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].kind, StateEntry::Kind::kRandomState);
}

TEST(LayerTest, StateEntriesReadAndWriteWeights) {
  const Dense dense({.units = 1, .kernel_initializer = "ones"});
  dense(Tensor::zeros({1, 2}));
  const auto entries = dense->state_entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "kernel");
  EXPECT_EQ(entries[0].kind, StateEntry::Kind::kWeight);
  entries[0].set(Tensor::from<float>({3, 4}, {2, 1}));
  EXPECT_EQ(entries[0].get().to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(dense(Tensor::full<float>({1, 2}, 1)).item<float>(), 7);
  EXPECT_THROW(entries[0].set(Tensor::zeros({3, 1})), ValueError);
}

TEST(LayerTest, AClassWithoutAConfigThrows) {
  EXPECT_THROW(make_layer<Outer>()->get_config(), NotImplementedError);
}

TEST(LayerTest, ABuildThatFailsLeavesNoWeightsBehind) {
  class Fails final : public TensorLayer {
   public:
    Fails() : TensorLayer("Fails") {}
    bool fail = true;

   private:
    void build_weights(const TensorSpec&) override {
      add_weight({.name = "w", .shape = {1}});
      if (fail) throw ValueError("not yet");
    }
    Tensor call(const Tensor& x, const CallContext&) override { return x; }
  };
  const auto layer = make_layer<Fails>();
  EXPECT_THROW(layer(Tensor::scalar<float>(1)), ValueError);
  layer->fail = false;
  layer(Tensor::scalar<float>(1));
  EXPECT_EQ(layer->weights().size(), 1U);
}

}  // namespace keel::layer_test
