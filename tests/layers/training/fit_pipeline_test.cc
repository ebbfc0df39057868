// fit with lookups that are prefetched before their step.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/training/training_options.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>

namespace keel::fit_pipeline_test {

constexpr int64_t kIds = 500;

class Workers {
 public:
  explicit Workers(int count) : before_(num_workers()) { set_num_workers(count); }
  ~Workers() { set_num_workers(before_); }

 private:
  const int before_;
};

// Ragged and dense features, the latter int32, and labels.
struct Data {
  explicit Data(int64_t rows) {
    std::vector<std::vector<int64_t>> bags;
    std::vector<int32_t> ids;
    std::vector<float> labels;
    uint64_t bits = 1;
    const auto draw = [&] {
      bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<int64_t>(bits >> 33);
    };
    for (int64_t i = 0; i < rows; ++i) {
      bags.emplace_back();
      for (int64_t k = draw() % 5; k > 0; --k) bags.back().push_back(draw() % (1 + draw() % kIds));
      ids.push_back(static_cast<int32_t>(draw() % kIds));
      labels.push_back(static_cast<float>(draw() % 2));
    }
    x = Tensors::dict({{"bag", RaggedTensor::from_rows(bags)}, {"one", Tensor::from(ids, {rows})}});
    y = Tensor::from(labels, {rows});
  }
  Tensors x = {};
  Tensor y;
};

struct Case {
  int replicas = 1;
  bool ahead = false;
  bool stale = false;
  bool adam = false;
  bool sequential = false;
};

Functional make_model(const Case& c) {
  const Table bags = make_table({.vocabulary_size = kIds, .dim = 4, .combiner = "mean"});
  const Table ones = make_table({.vocabulary_size = kIds, .dim = 4});
  const EmbeddingOptimizer optimizer =
      c.adam ? EmbeddingOptimizer(optimizers::Adam({.learning_rate = 0.1}))
             : EmbeddingOptimizer(optimizers::Adagrad({.learning_rate = 0.1}));
  const layers::TPUEmbedding embedding(
      {.feature_config = Nest<FeatureConfig>(
           {{"bag", FeatureConfig{.table = bags}}, {"one", FeatureConfig{.table = ones}}}),
       .optimizer = optimizer,
       .pipeline_execution_with_tensor_core = c.stale,
       .pipeline_lookups = c.ahead});
  const Tensors in =
      Tensors::dict({{"bag", layers::ragged_input({.dtype = DType::kInt64, .name = "bag"})},
                     {"one", layers::input({.dtype = DType::kInt32, .name = "one"})}});
  const Tensors found = embedding(in);
  const layers::Dense hidden({.units = 8, .activation = "relu"});
  const layers::Dense head({.units = 1, .activation = "sigmoid"});
  return Functional(
      {.inputs = in,
       .outputs = head(hidden(found["bag"].tensor()) + hidden(found["one"].tensor()))});
}

// Returns predictions after training with validation between the epochs.
std::vector<float> trained(const Case& c) {
  const Workers workers(3);
  distribute::TPUStrategy strategy({.num_cores = c.replicas});
  const auto scope = strategy.scope();
  set_random_seed(7);
  const Functional functional = make_model(c);
  const ModelHandle model =
      c.sequential ? ModelHandle(Sequential({.layers = {functional}})) : ModelHandle(functional);
  model->compile(
      {.optimizer = optimizers::Adagrad({.learning_rate = 0.1}), .loss = "binary_crossentropy"});
  const Data data(131);
  model->fit(data.x, data.y,
             {.epochs = 2,
              .batch_size = 16,
              .seed = 2,
              .verbose = Verbose::kSilent,
              .validation_split = 0.2});
  return model->predict(data.x, {.verbose = Verbose::kSilent}).tensor().to_vector<float>();
}

int64_t calls_ahead(const profile::Report& report) {
  int64_t calls = 0;
  for (const profile::Row& row : report.rows)
    calls += row.name == "group ids (prefetch)" ? row.calls : 0;
  return calls;
}

TEST(FitPipelineTest, TrainsTheSameBitsWithAndWithoutPrefetch) {
  for (Case c : {Case{.replicas = 1}, Case{.replicas = 2, .adam = true}, Case{.replicas = 4},
                 Case{.replicas = 2, .stale = true}, Case{.replicas = 2, .sequential = true}}) {
    profile::start();
    const std::vector<float> plain = trained(c);
    EXPECT_EQ(calls_ahead(profile::stop()), 0);
    c.ahead = true;
    profile::start();
    EXPECT_EQ(trained(c), plain);
    // Two tables are prefetched in each replica and in all steps except the first of each epoch.
    EXPECT_EQ(calls_ahead(profile::stop()), 2 * c.replicas * 2 * 6);
  }
}

// Runs fit on batches of which one is `wrong`; returns the number of completed steps.
template <class MakeBatch>
int steps_before_error(const MakeBatch& batch) {
  const Workers workers(3);
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Functional model = make_model({.ahead = true});
  model->compile(
      {.optimizer = optimizers::Adagrad({.learning_rate = 0.1}), .loss = "binary_crossentropy"});
  int done = 0;
  const data::Dataset batches = data::Dataset::from_generator([&] {
    return [&, number = int64_t{0}]() mutable { return std::optional<Tensors>(batch(number++)); };
  });
  EXPECT_THROW(
      model->fit(batches, {.verbose = Verbose::kSilent,
                           .callbacks = {callbacks::LambdaCallback(
                               {.on_train_batch_end = [&](int64_t, const Logs&) { ++done; }})}}),
      ValueError);
  return done;
}

TEST(FitPipelineTest, ErrorsOccurInTheirStep) {
  const auto good = [] {
    const Data data(8);
    return Tensors::tuple({data.x, data.y});
  };
  EXPECT_EQ(steps_before_error([&](int64_t number) {
              if (number == 3) throw ValueError("no batch");
              return good();
            }),
            3);
  EXPECT_EQ(
      steps_before_error([&](int64_t number) {
        Tensors out = good();
        if (number != 3) return out;
        const Tensor ids = Tensor::from<int32_t>({0, 1, 2, 3, 4, 5, 6, kIds}, {8});
        return Tensors::tuple({Tensors::dict({{"bag", out[0]["bag"]}, {"one", ids}}), out[1]});
      }),
      3);
}

}  // namespace keel::fit_pipeline_test
