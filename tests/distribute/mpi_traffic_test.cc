// Started by mpirun with several numbers of processes. A step must send what docs/distributed.md
// states.
// Tests distribute/embedding/internal/remote_rows.cc and row_exchange.cc.
#include <algorithm>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>

namespace keel::mpi_traffic_test {

constexpr int kReplicas = 4;
constexpr int64_t kVocabulary = 4096;
constexpr int64_t kDistinct = 256;  // ids of one table in one replica's batch, spread evenly
constexpr int64_t kDims[] = {16, 8};
constexpr int64_t kHidden = 128;
constexpr int64_t kSparseDim = 12;

Tensor ids_of(int replica) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kDistinct; ++i) {
    ids.push_back(i * (kVocabulary / kDistinct) + (i + replica) % kReplicas);
  }
  return Tensor::from(ids, {kDistinct});
}

Functional make_model() {
  Nest<FeatureConfig>::Dict features;
  Tensors::Dict inputs;
  for (const int64_t dim : kDims) {
    const std::string name = str("f", dim);
    features.emplace(
        name, FeatureConfig{
                  .table = make_table({.vocabulary_size = kVocabulary, .dim = dim, .name = name})});
    inputs.emplace(name, layers::input({.shape = {}, .dtype = DType::kInt64, .name = name}));
  }
  const layers::TPUEmbedding tables({.feature_config = Nest<FeatureConfig>(std::move(features)),
                                     .optimizer = optimizers::Adagrad({})});
  const Tensors found = tables(Tensors(inputs));
  const layers::Embedding sparse({.input_dim = kVocabulary, .output_dim = kSparseDim});
  const layers::Concatenate joined({});
  const layers::Dense hidden({.units = kHidden, .activation = "relu"});
  const layers::Dense score({.units = 1});
  const Tensors parts =
      Tensors::list({found["f16"], found["f8"], sparse(inputs.at("f8").tensor())});
  const Tensor out = score(hidden(joined(parts).tensor()));
  return Functional({.inputs = Tensors(std::move(inputs)), .outputs = out});
}

// Adagrad updates the sparse variable, Adam the others.
void train(distribute::Strategy& strategy, const Functional& model, const OptimizerHandle& adam,
           const OptimizerHandle& adagrad) {
  const auto batches = strategy.distribute_values_from_function([](int replica) {
    return Tensors::dict({{"f16", ids_of(replica)}, {"f8", ids_of(replica)}});
  });
  strategy.run(
      [&](const Tensors& batch) {
        const std::vector<Variable> variables = model->trainable_variables();
        std::vector<Gradient> gradients;
        {
          GradientTape tape;
          gradients = tape.gradient(ops::sum(model(batch).tensor()), variables);
        }
        const auto at = std::ranges::find_if(gradients, &Gradient::is_slices) - gradients.begin();
        adagrad->apply_gradients({gradients[at]}, {variables[at]});
        gradients[at] = {};
        adam->apply_gradients(gradients, variables);
      },
      batches);
}

void expect_traffic(int64_t measured, double formula, const char* what) {
  EXPECT_NEAR(static_cast<double>(measured), formula, 0.05 * formula) << what;
  if (distribute::processes().rank() == 0) {
    std::cout << what << ": " << measured << " bytes, by the formula " << formula << "\n";
  }
}

TEST(MpiTrafficTest, AStepSendsTheBytesOfTheFormula) {
  distribute::TPUStrategy strategy({.num_hosts = kReplicas, .num_cores = 1});
  const auto scope = strategy.scope();
  const Functional model = make_model();
  const OptimizerHandle adam = optimizers::Adam({});
  const OptimizerHandle adagrad = optimizers::Adagrad({});
  train(strategy, model, adam, adagrad);
  strategy.communicator().reset_traffic();
  train(strategy, model, adam, adagrad);
  const distribute::TrafficByKind sent = strategy.communicator().traffic();

  const double processes = distribute::processes().size();
  const double local = kReplicas / processes;
  const double pairs = local * (kReplicas - local);  // pairs of a local replica and a remote one
  const double elsewhere = 1 - 1 / processes;
  double ids = 0, floats = 0;
  for (const int64_t dim : kDims) {
    // A count for each replica and other process, then the ids.
    ids += 8.0 * (local * (processes - 1) + local * elsewhere * kDistinct);
    floats += 4.0 * static_cast<double>(local * elsewhere * kDistinct * dim);
  }
  const double variables = 1 + 5 + 1;  // of the engine; of layers; the sparse one in both calls
  const double agreement = pairs * (2 * 24 + 48 * variables);
  const double sparse_row = 8 + 4 * kSparseDim;
  const double sparse =
      pairs * 8 + local * elsewhere * kDistinct * sparse_row +
      (processes - 1) * (8 * local + kReplicas * kDistinct / processes * sparse_row);
  const int64_t columns = kDims[0] + kDims[1] + kSparseDim;
  const double dense = (columns + 1) * kHidden + kHidden + 1;
  expect_traffic(sent.all_to_all.bytes_sent, 2 * ids + 2 * floats + agreement + sparse,
                 "all_to_all");
  expect_traffic(sent.reduce_scatter.bytes_sent, 4 * dense * elsewhere, "reduce_scatter");
  expect_traffic(sent.all_gather_shards.bytes_sent, 4 * dense * elsewhere, "share");
}

}  // namespace keel::mpi_traffic_test
