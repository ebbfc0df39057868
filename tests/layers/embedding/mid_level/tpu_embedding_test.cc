// Tests layers/embedding/mid_level/embedding_base.cc, internal/engine_tables.cc and
// layers/embedding/tables/internal/engine_session.cc, engine_session_build.cc and
// engine_session_tables.cc.
#include <keel/layers/embedding/mid_level/tpu_embedding.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/control_flow.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/layers/embedding/mid_level/mid_level_testing.h"
#include "tests/support/errors.h"

namespace keel::mid_level::mid_level_tpu_embedding_test {

using distribute::PerReplica;
using distribute::TPUStrategy;
using fixture::IdRows;
using fixture::ids;
using fixture::ragged;
using fixture::sparse;
using fixture::Standard;
using testing::AllOf;
using testing::HasSubstr;
using testing_support::message_of;
using tpu::TPUEmbedding;

TEST(SpecRowsD, D32_ADynamicRateIsReadOnceAStep) {
  int counter = 0;
  int reads = 0;
  Small s(2, tpu::SGD{.learning_rate = [&] {
            ++reads;
            return std::max(0.5, 1 - 0.05 * counter);
          }});
  const Values expected = {0, -1, -1.95F, -2.85F, -3.7F, -4.5F, -5.25F, -5.95F, -6.6F, -7.2F};
  for (float value : expected) {
    EXPECT_NEAR(s.step(), value, 1e-5);
    ++counter;
  }
  EXPECT_EQ(reads, 10);
}

TEST(SpecRowsD, D33_ATableOptimizerOverridesTheGlobalOne) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table a = table_of(4, 1, "a");
  const Table b = table_of(4, 1, "b");
  a->optimizer = tpu::SGD{.learning_rate = 0.2};
  TPUEmbedding embedding({{"a", on(a)}, {"b", on(b)}}, tpu::SGD{.learning_rate = 0.1});
  embedding.enqueue(for_all({{"a", id(1)}, {"b", id(2)}}, strategy));
  strategy.run([&] { embedding.apply_gradients(filled_like(embedding.dequeue(), 0.5F)); });
  EXPECT_NEAR(values_of(embedding, "a")[1], -0.2, 1e-7);
  EXPECT_NEAR(values_of(embedding, "b")[2], -0.1, 1e-7);
  EXPECT_EQ(b->optimizer->class_name, "SGD");
}

TEST(SpecRowsE, E01_HostObjectsHaveNoSteps) {
  TPUEmbedding embedding(one_feature(on(table_of(8, 4))), "sgd");
  EXPECT_THROW(embedding.enqueue(f(id(0))), RuntimeError);
  EXPECT_THROW(embedding.enqueue(PerReplica<Tensors>({f(id(0))})), RuntimeError);
  EXPECT_THROW(embedding.dequeue(), RuntimeError);
  EXPECT_THROW(embedding.apply_gradients({{"f", Gradient()}}), RuntimeError);
  EXPECT_THROW(embedding.record(), RuntimeError);
}

TEST(SpecRowsE, E02_UseBeforeBuildIsAnError) {
  Small s;
  for (const bool in_step : {true, false}) {
    const auto message = [&](const std::function<void()>& fn) {
      return message_of<RuntimeError>([&] { in_step ? s.strategy.run(fn) : fn(); });
    };
    EXPECT_THAT(message([&] { s.embedding->dequeue(); }), HasSubstr("not built"));
    EXPECT_THAT(message([&] { s.embedding->apply_gradients({{"f", Gradient()}}); }),
                HasSubstr("not built"));
    EXPECT_THAT(message([&] { s.embedding->record(); }), HasSubstr("not built"));
  }
}

TEST(SpecRowsE, E17_GradientsAreChecked) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = table_of(8, 4);
  TPUEmbedding embedding(Nest<FeatureConfig>::tuple({on(table), on(table), on(table)}), "sgd");
  embedding.build(2);
  const auto apply = [&](const Nest<Gradient>& gradients) {
    strategy.run([&] { embedding.apply_gradients(gradients); });
  };
  // Numbers do not compile as gradients in C++. IndexedSlices are gradients that are not tensors.
  const Gradient slices = IndexedSlices{.ids = Tensor::zeros({1}, DType::kInt64),
                                        .values = Tensor::zeros({1, 4}),
                                        .dense_shape = {2, 4}};
  const Gradient good = Tensor::zeros({2, 4});
  using G = Nest<Gradient>;
  EXPECT_THAT(message_of<ValueError>([&] { apply(G::tuple({good, slices, good})); }),
              HasSubstr("'1'"));
  EXPECT_THROW(apply(G::list({good, good, good})), TypeError);
  EXPECT_THROW(apply(G::tuple({good, good})), ValueError);
  EXPECT_THAT(message_of<ValueError>(
                  [&] { apply(G::tuple({good, good, Gradient(Tensor::zeros({2, 5}))})); }),
              AllOf(HasSubstr("'2'"), HasSubstr("(2, 5)"), HasSubstr("(2, 4)")));
  EXPECT_THAT(message_of<ValueError>([&] {
                apply(G::tuple({Gradient(Tensor::zeros({2, 4}, DType::kFloat64)), good, good}));
              }),
              HasSubstr("'0'"));
}

TEST(SpecRowsE, E18_FeaturesAndWeightsAreChecked) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = table_of(8, 4);
  TPUEmbedding embedding({{"d", on(table)}, {"r", on(table)}, {"s", on(table)}}, "sgd");
  const TensorLike of_sparse = sparse(IdRows{{1}, {2}}, 2);
  const TensorLike of_ragged = ragged(IdRows{{1}, {2}});
  const Tensors features = {{"d", ids({1, 2}, {2, 1})}, {"r", of_ragged}, {"s", of_sparse}};
  const TensorLike sparse_weights = sparse(fixture::FloatRows{{1}, {2}}, 2);
  const TensorLike ragged_weights = ragged(fixture::FloatRows{{1}, {2}});
  const TensorLike dense_weights = Tensor::full<float>({2, 1}, 1);
  using W = Nest<std::optional<TensorLike>>;
  using Leaf = std::optional<TensorLike>;
  const auto enqueue = [&](const Tensors& in, const W& weights) {
    strategy.run([&] { embedding.enqueue(in, {.weights = weights}); });
  };
  const auto weights = [](const Leaf& d, const Leaf& r, const Leaf& s) {
    return W{{"d", d}, {"r", r}, {"s", s}};
  };
  enqueue(features, weights({}, ragged_weights, sparse_weights));
  enqueue(features, weights({}, {}, {}));
  const auto message = [&](const W& w) {
    return message_of<ValueError>([&] { enqueue(features, w); });
  };
  EXPECT_THAT(message(weights(dense_weights, {}, {})), HasSubstr("'d'"));
  EXPECT_THAT(message(weights({}, sparse_weights, {})), HasSubstr("'r'"));
  EXPECT_THAT(message(weights({}, {}, ragged_weights)), HasSubstr("'s'"));
  EXPECT_THAT(message(weights({}, {}, sparse(fixture::FloatRows{{1, 2}, {}}, 2))),
              HasSubstr("'s'"));
  EXPECT_THROW(enqueue(features, W{{"s", Leaf(sparse_weights)}}), ValueError);
  EXPECT_THROW(enqueue(features, W::list({Leaf(), Leaf(), Leaf()})), TypeError);
  EXPECT_THROW(embedding.enqueue(for_all({{"s", of_sparse}}, strategy)), ValueError);
  EXPECT_THROW(embedding.enqueue(for_all(Tensors::list({of_sparse}), strategy)), TypeError);
}

TEST(TPUEmbeddingTest, InputsOfOtherRanksAndIdsOutsideTheTableAreErrors) {
  Small s(1);
  const auto message = [&](const TensorLike& input) {
    return message_of<ValueError>([&] { s.embedding->enqueue(f(input)); });
  };
  EXPECT_THAT(message(Tensor::zeros({}, DType::kInt64)), HasSubstr("'f'"));
  EXPECT_THAT(message(ids({1, 2, 3, 4}, {2, 2})), HasSubstr("'f'"));
  EXPECT_THAT(message(fixture::sparse_at(IdRows{{0}}, std::vector<int64_t>{1}, {2})),
              HasSubstr("'f'"));
  EXPECT_THAT(message(RaggedTensor{.values = Tensor::zeros({3, 2}, DType::kInt64),
                                   .row_splits = ids({0, 1, 3}, {3})}),
              HasSubstr("'f'"));
  EXPECT_FALSE(s.embedding->built());
  EXPECT_THAT(message(id(-1)), HasSubstr("'f'"));
  EXPECT_THAT(message(id(8)), HasSubstr("'f'"));
  EXPECT_THAT(message(Tensor::zeros({1, 1})), HasSubstr("'f'"));
}

TEST(SpecRowsE, E19_InputsMustBeOnTheHost) {
  Small s;
  const Tensor there = [] {
    const DeviceScope core({.core = 1});
    return id(1);
  }();
  EXPECT_THAT(message_of<ValueError>([&] { s.embedding->enqueue(for_all(f(there), s.strategy)); }),
              AllOf(HasSubstr("'f'"), HasSubstr("/device:TPU:1")));
  EXPECT_THAT(
      message_of<ValueError>([&] { s.embedding->enqueue(f(there), {.device = "/device:TPU:0"}); }),
      AllOf(HasSubstr("'f'"), HasSubstr("/device:TPU:1")));
  const SparseTensor mixed = {
      .indices = ids({0, 0}, {1, 2}), .values = there.reshaped({1}), .dense_shape = {1, 1}};
  EXPECT_THAT(message_of<ValueError>([&] { s.embedding->enqueue(for_all(f(mixed), s.strategy)); }),
              AllOf(HasSubstr("'f'"), HasSubstr("/device:TPU:1")));
}

TEST(SpecRowsE, E20_ADeviceNamesACoreOfTheStrategy) {
  Small s;
  EXPECT_THAT(message_of<ValueError>(
                  [&] { s.embedding->enqueue(f(id(0)), {.device = "/task:0/device:CPU:0"}); }),
              HasSubstr("CPU"));
  EXPECT_THROW(s.embedding->enqueue(f(id(0)), {.device = "/device:TPU:2"}), ValueError);
  EXPECT_THROW(s.embedding->enqueue(f(id(0))), ValueError);
  s.embedding->enqueue(f(id(0)), {.device = "/device:TPU:1"});
  // The other core has no batch.
  EXPECT_THAT(message_of<RuntimeError>([&] { s.strategy.run([&] { s.embedding->dequeue(); }); }),
              HasSubstr("dequeue"));
}

TEST(TPUEmbeddingTest, PerReplicaValuesAreForAllReplicas) {
  Small s;
  EXPECT_THROW(s.embedding->enqueue(PerReplica<Tensors>({f(id(0))})), ValueError);
  EXPECT_THROW(s.strategy.run([&] { s.embedding->enqueue(for_all(f(id(0)), s.strategy)); }),
               RuntimeError);
  EXPECT_THROW(s.strategy.run([&] { s.embedding->enqueue(f(id(0)), {.device = "/device:TPU:0"}); }),
               ValueError);
}

TEST(TPUEmbeddingTest, WithOneReplicaItsFeaturesAreForIt) {
  Small s(1);
  s.embedding->enqueue(f(id(3)));
  EXPECT_EQ(flat(s.strategy.run([&] { return s.embedding->dequeue(); })[0]), Values(4, 0));
}

// TensorFlow's fixture in two replicas of two rows, with filled tables.
struct Filled {
  Filled() {
    const auto scope = strategy.scope();
    embedding = std::make_unique<TPUEmbedding>(standard.features(), "sgd");
    embedding->build(2);
    set_state(*embedding, "video", fixture::counting(8, 4));
    set_state(*embedding, "user", fixture::counting(16, 2));
  }
  PerReplica<Tensors> parts(const std::function<Tensors(int64_t, int64_t)>& batch) const {
    return PerReplica<Tensors>({batch(0, 2), batch(2, 4)});
  }
  // Activations of both replicas, one after the other.
  Values dequeue() {
    const auto seen = strategy.run([&] { return embedding->dequeue(); });
    Values out = flat(seen[0]);
    const Values second = flat(seen[1]);
    out.insert(out.end(), second.begin(), second.end());
    return out;
  }

  const Standard standard;
  TPUStrategy strategy{{.num_cores = 2}};
  std::unique_ptr<TPUEmbedding> embedding;
};

const Values kActivations = {
    // Replica 0: favorited, friends, watched, by key.
    4, 6, 8, 10, 4, 5, 6, 7, 6, 7, 2, 3, 0, 1, 2, 3, 4, 6, 8, 10,
    // Replica 1.
    0, 1, 2, 3, 4, 6, 8, 10, 6, 7, 2, 3, 4, 6, 8, 10, 4, 5, 6, 7};

TEST(TPUEmbeddingTest, ActivationsHaveTheStructureOfTheFeatures) {
  Filled s;
  s.embedding->enqueue(s.parts(Standard::sparse_batch));
  EXPECT_EQ(s.dequeue(), kActivations);
  s.embedding->enqueue(s.parts(Standard::ragged_batch));
  const auto seen = s.strategy.run([&] { return s.embedding->dequeue(); });
  EXPECT_EQ(seen[0].at("friends").tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(seen[0].at("watched").tensor().shape(), (Shape{2, 4}));
}

TEST(SpecRowsE, E21_PerCoreAndGlobalEnqueueAreEqual) {
  Filled s;
  const auto parts = s.parts(Standard::sparse_batch);
  s.embedding->enqueue(parts);
  EXPECT_EQ(s.dequeue(), kActivations);
  s.embedding->enqueue(parts[1], {.device = "/device:TPU:1"});
  s.embedding->enqueue(parts[0], {.device = "/task:0/device:TPU:0"});
  EXPECT_EQ(s.dequeue(), kActivations);
}

TEST(SpecRowsE, E22_EnqueueInsideAndOutsideTheStepAreEqual) {
  Filled s;
  const auto seen = s.strategy.run(
      [&](const Tensors& features) {
        s.embedding->enqueue(features);
        return s.embedding->dequeue();
      },
      s.parts(Standard::ragged_batch));
  Values both = flat(seen[0]);
  const Values second = flat(seen[1]);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(both, kActivations);
  s.embedding->enqueue(s.parts(Standard::ragged_batch));
  EXPECT_EQ(s.dequeue(), kActivations);
}

TEST(SpecRowsE, E23_AStepEnqueuesItsArgumentsAtItsTop) {
  Small s;
  const auto in_step = [&](const std::function<void(const Tensors&)>& fn) {
    s.strategy.run(fn, for_all(f(id(1)), s.strategy));
  };
  const auto enqueue = [&](const Tensors& x) { s.embedding->enqueue(x); };
  EXPECT_THROW(in_step([&](const Tensors& x) {
                 ops::cond(true, [&] { return enqueue(x), 0; }, [] { return 0; });
               }),
               RuntimeError);
  EXPECT_THROW(in_step([&](const Tensors& x) {
                 ops::while_loop([](int i) { return i < 1; },
                                 [&](int i) { return enqueue(x), i + 1; }, 0);
               }),
               RuntimeError);
  EXPECT_THAT(message_of<ValueError>([&] {
                in_step([&](const Tensors& x) {
                  const int64_t doubled = 2 * x.at("f").tensor().item<int64_t>();
                  s.embedding->enqueue(f(id(doubled)));
                });
              }),
              AllOf(HasSubstr("'f'"), HasSubstr("direct argument")));
  EXPECT_NO_THROW(in_step(enqueue));
  // Outside steps, loops are not restricted.
  ops::while_loop([](int i) { return i < 2; },
                  [&](int i) { return s.embedding->enqueue(for_all(f(id(1)), s.strategy)), i + 1; },
                  0);
}

TEST(SpecRowsE, E24_ANamedBatchIsForTrainingIfItIsUpdated) {
  Small s;
  s.strategy.run(
      [&](const Tensors& x) {
        s.embedding->enqueue(x, {.name = "call1"});
        const Tensors first = s.embedding->dequeue("call1");
        s.embedding->enqueue(x, {.name = "call2"});
        const Tensors second = s.embedding->dequeue("call2");
        s.embedding->apply_gradients(filled_like(second, 0.5F), "call2");
        s.embedding->enqueue(x, {.training = false, .name = "call3"});
        s.embedding->apply_gradients(filled_like(s.embedding->dequeue("call3"), 0.5F), "call3");
      },
      for_all(f(id(0)), s.strategy));
  EXPECT_NEAR(values_of(*s.embedding, "t")[0], -0.2, 1e-7);
  testing::internal::CaptureStderr();
  EXPECT_NEAR(s.step(), -0.2, 1e-7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THROW(s.strategy.run([&] { s.embedding->apply_gradients({{"f", Gradient()}}, "call1"); }),
               RuntimeError);
}

TEST(SpecRowsE, E25_AnInferenceBatchLeavesTheTablesAlone) {
  Small s;
  s.step();
  const Values before = values_of(*s.embedding, "t");
  s.step(/*training=*/false);
  EXPECT_EQ(values_of(*s.embedding, "t"), before);
  EXPECT_THAT(message_of<RuntimeError>([&] {
                s.strategy.run(
                    [&](const Tensors& x) {
                      s.embedding->enqueue(x, {.training = false});
                      s.embedding->apply_gradients(filled_like(s.embedding->dequeue(), 1));
                    },
                    for_all(f(id(0)), s.strategy));
              }),
              HasSubstr("training = false"));
  EXPECT_EQ(values_of(*s.embedding, "t"), before);
}

TEST(SpecRowsE, E26_APipelinedStepSeesUpdatesOneStepLate) {
  for (const bool pipelined : {false, true}) {
    Small s(2, tpu::SGD{.learning_rate = 0.1}, pipelined);
    const Values expected = pipelined ? Values{0, 0, -0.1F, -0.2F} : Values{0, -0.1F, -0.2F, -0.3F};
    for (float value : expected) EXPECT_NEAR(s.step(), value, 1e-6) << pipelined;
    EXPECT_NEAR(s.step(/*training=*/false), -0.4, 1e-6);
    EXPECT_NEAR(values_of(*s.embedding, "t")[0], -0.4, 1e-6);
    s.step();
    EXPECT_NEAR(values_of(*s.embedding, "t")[0], -0.5, 1e-6);
  }
}

TEST(SpecRowsE, E33_SparseAndRaggedFeaturesMix) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = table_of(8, 1, "t", initializers::row_id());
  TPUEmbedding embedding(Nest<FeatureConfig>::tuple({on(table), on(table), on(table)}), "sgd");
  embedding.enqueue(for_all(Tensors::tuple({sparse(IdRows{{1, 2}, {}}, 2), ragged(IdRows{{3}, {4}}),
                                            sparse(IdRows{{}, {5}}, 3)}),
                            strategy));
  const auto seen = strategy.run([&] { return embedding.dequeue(); });
  EXPECT_EQ(flat(seen[1]), (Values{3, 0, 3, 4, 0, 5}));
}

TEST(TPUEmbeddingTest, AMissingGradientCountsAsZerosWithAWarning) {
  Small s(2, tpu::Adam{.learning_rate = 0.1});
  s.step();
  const Values before = values_of(*s.embedding, "t");
  testing::internal::CaptureStderr();
  s.embedding->enqueue(for_all(f(id(0)), s.strategy));
  s.strategy.run([&] {
    s.embedding->dequeue();
    s.embedding->apply_gradients({{"f", Gradient()}});
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'f'"));
  const Values after = values_of(*s.embedding, "t");
  EXPECT_LT(after[0], before[0]);
  EXPECT_EQ(after[4], before[4]);
}

TEST(TPUEmbeddingTest, ATrainingBatchWithoutUpdateIsDroppedWithAWarning) {
  Small s;
  s.embedding->enqueue(for_all(f(id(0)), s.strategy));
  s.strategy.run([&] { s.embedding->dequeue(); });
  testing::internal::CaptureStderr();
  s.step();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("apply_gradients was not called"));
  EXPECT_NEAR(values_of(*s.embedding, "t")[0], -0.1, 1e-7);
}

TEST(TPUEmbeddingTest, StepsRunInReplicas) {
  Small s;
  s.embedding->enqueue(for_all(f(id(0)), s.strategy));
  EXPECT_THROW(s.embedding->dequeue(), RuntimeError);
  EXPECT_THROW(s.embedding->apply_gradients({{"f", Gradient()}}), RuntimeError);
  TPUStrategy other({.num_cores = 2});
  EXPECT_THROW(other.run([&] { s.embedding->dequeue(); }), RuntimeError);
  EXPECT_THROW(other.run([&] { s.embedding->enqueue(f(id(0))); }), RuntimeError);
  EXPECT_NO_THROW(s.strategy.run([&] { s.embedding->dequeue(); }));
}

TEST(TPUEmbeddingTest, RaggedRowsFoldIntoTheOutputShape) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = table_of(8, 1, "t", initializers::row_id());
  FeatureConfig configured = on(table);
  configured.output_shape = Shape{2, 2};
  TPUEmbedding embedding({{"a", configured}, {"b", on(table)}, {"c", configured}}, "sgd");
  embedding.build(InputShapes{{"a", OptionalShape(Shape{2, 2, 1})},
                              {"b", OptionalShape(Shape{2, 3, 1})},
                              {"c", OptionalShape(Shape{4, 1})}});
  embedding.enqueue(for_all({{"a", ragged(IdRows{{1}, {2, 3, 4}})},
                             {"b", ragged(IdRows{{5, 6, 7, 1}, {}})},
                             {"c", ids({1, 2, 3, 4}, {4, 1})}},
                            strategy));
  const auto seen = strategy.run([&] { return embedding.dequeue(); });
  EXPECT_EQ(seen[0].at("a").tensor().to_vector<float>(), (Values{1, 0, 2, 3}));
  EXPECT_EQ(seen[0].at("a").tensor().shape(), (Shape{2, 2, 1}));
  EXPECT_EQ(seen[0].at("b").tensor().to_vector<float>(), (Values{5, 6, 7, 0, 0, 0}));
  EXPECT_EQ(seen[0].at("c").tensor().shape(), (Shape{2, 2, 1}));
  EXPECT_THAT(message_of<ValueError>([&] {
                embedding.enqueue(for_all({{"a", ragged(IdRows{{1}, {2}, {3}})},
                                           {"b", ragged(IdRows{{}, {}})},
                                           {"c", ids({1, 2, 3, 4}, {4, 1})}},
                                          strategy));
              }),
              HasSubstr("'a'"));
}

TEST(TPUEmbeddingTest, AFixedBatchSizeIsKeptButWidthsMayVary) {
  Small s(1);
  s.embedding->enqueue(f(sparse(IdRows{{1}, {2}}, 2)));
  EXPECT_NO_THROW(s.embedding->enqueue(f(sparse(IdRows{{1, 2, 3}, {2}}, 5))));
  EXPECT_NO_THROW(s.embedding->enqueue(f(ids({1, 2}, {2, 1}))));
  EXPECT_THROW(s.embedding->enqueue(f(sparse(IdRows{{1}, {2}, {3}}, 2))), ValueError);
}

TEST(TPUEmbeddingTest, WithoutVerificationShapesNeedOnlyFitTheSamples) {
  Small s(1);
  s.embedding->set_verify_output_shapes_on_enqueue(false);
  EXPECT_THAT(message_of<ValueError>([&] { s.embedding->enqueue(f(id(0))); }), HasSubstr("build"));
  s.embedding->build(f_shape(Shape{2, 1, 1}));
  EXPECT_NO_THROW(s.embedding->enqueue(f(ids({1, 2}, {1, 2, 1}))));
  EXPECT_THROW(s.embedding->enqueue(f(ids({1, 2, 3}, {3, 1}))), ValueError);
  s.embedding->set_verify_output_shapes_on_enqueue(true);
  EXPECT_THROW(s.embedding->enqueue(f(ids({1, 2}, {1, 2, 1}))), ValueError);
}

TEST(TPUEmbeddingTest, UseAfterTheStrategyIsDestroyedIsAnError) {
  auto strategy = std::make_unique<TPUStrategy>(distribute::TPUStrategyOptions{.num_cores = 2});
  std::unique_ptr<TPUEmbedding> embedding;
  {
    const auto scope = strategy->scope();
    embedding = std::make_unique<TPUEmbedding>(one_feature(on(table_of(8, 4, "t"))), "sgd");
    embedding->build(2);
  }
  strategy.reset();
  EXPECT_THROW(embedding->enqueue(f(id(0))), RuntimeError);
  EXPECT_THROW(values_of(*embedding, "t"), RuntimeError);
}

TEST(TPUEmbeddingTest, GradientsOfATapeTrainTheTables) {
  Small s(2, tpu::SGD{.learning_rate = 1.0});
  s.embedding->build(1);
  set_state(*s.embedding, "t", Tensor::full<float>({8, 4}, 1));
  s.embedding->enqueue(for_all(f(id(2)), s.strategy));
  s.strategy.run([&] {
    GradientTape tape;
    const Tensors activations = s.embedding->dequeue();
    const Tensor x = activations.at("f").tensor();
    tape.watch(x);
    const Tensor loss = ops::scale(ops::sum(ops::square(x)), 0.25);
    s.embedding->apply_gradients({{"f", tape.input_gradient(loss, {x})[0]}});
  });
  const Values after = values_of(*s.embedding, "t");
  EXPECT_EQ(after[2 * 4], 0);  // 1 - 2 replicas * 0.5
  EXPECT_EQ(after[3 * 4], 1);
}

}  // namespace keel::mid_level::mid_level_tpu_embedding_test
