// A training run for mpi_training_test.py, which starts it in different numbers of processes.
// Prints what must not depend on that number. Arguments have the form name=value; see Arguments.
#include <absl/strings/str_format.h>
#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <sys/resource.h>
#include <unistd.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

constexpr int64_t kRows = 183, kBatch = 20, kStepsPerEpoch = 10;  // the last batch has 3 rows

class Arguments {
 public:
  Arguments(int count, char** texts) {
    for (int i = 1; i < count; ++i) {
      const std::string text = texts[i];
      const size_t equals = text.find('=');
      values_[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  std::string text(const char* name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? "" : it->second;
  }
  int64_t number(const char* name, int64_t otherwise) const {
    return text(name).empty() ? otherwise : std::stoll(text(name));
  }

 private:
  std::map<std::string, std::string> values_;
};

bool is_first() { return distribute::processes().rank() == 0; }

void say(const std::string& line) {
  if (is_first()) std::cout << line + "\n" << std::flush;
}

class Checksum {
 public:
  void add(const Tensor& value) {
    for (const std::byte b : value.raw()) {
      hash_ = (hash_ ^ static_cast<uint64_t>(b)) * 0x100000001B3;
    }
  }
  std::string text() const { return absl::StrFormat("%x", hash_); }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

// Returns features and labels of all rows, {"user", "items", "word", "numbers"}.
Tensors all_rows() {
  std::vector<int64_t> users, words;
  std::vector<std::vector<int64_t>> items;
  std::vector<float> numbers, labels;
  for (int64_t i = 0; i < kRows; ++i) {
    users.push_back(i * i % 97);
    words.push_back(i * 13 % 50);
    items.emplace_back();
    for (int64_t k = 0; k < i % 4; ++k) items.back().push_back((i + k) % 5);
    for (int64_t k = 1; k <= 3; ++k) numbers.push_back(static_cast<float>(i * k % 17) / 7);
    labels.push_back(static_cast<float>((users.back() + words.back()) % 2));
  }
  return Tensors::tuple({Tensors::dict({{"user", Tensor::from(users, {kRows})},
                                        {"items", RaggedTensor::from_rows(items)},
                                        {"word", Tensor::from(words, {kRows})},
                                        {"numbers", Tensor::from(numbers, {kRows, 3})}}),
                         Tensor::from(labels, {kRows, 1})});
}

struct Ranker {
  layers::TPUEmbedding tables;
  Functional model;
};

// `users` is the number of rows of a table, which may be large. With `normalized`, each replica has
// its own moving averages, and a checkpoint has their mean, so a resumed run is only close. A
// positive `clipnorm` bounds the gradients of the tables.
Ranker make_ranker(int64_t users, bool normalized, const std::string& partition = "div",
                   double clipnorm = 0) {
  const Table user_table = make_table({.vocabulary_size = users, .dim = 8, .name = "users"});
  const Table item_table = make_table(
      {.vocabulary_size = 5, .dim = 4, .combiner = "sum", .name = "items"});  // fewer than hosts
  const layers::TPUEmbedding tables(
      {.feature_config = Nest<FeatureConfig>({{"user", FeatureConfig{.table = user_table}},
                                              {"items", FeatureConfig{.table = item_table}}}),
       .optimizer = optimizers::Adagrad({.learning_rate = 0.1, .clipnorm = clipnorm}),
       .partition_strategy = partition});
  const Tensors in =
      Tensors::dict({{"user", layers::input({.shape = {}, .dtype = DType::kInt64, .name = "user"})},
                     {"items", layers::ragged_input({.dtype = DType::kInt64, .name = "items"})},
                     {"word", layers::input({.shape = {}, .dtype = DType::kInt64, .name = "word"})},
                     {"numbers", layers::input({.shape = {3}, .name = "numbers"})}});
  const Tensors found = tables(Tensors::dict({{"user", in["user"]}, {"items", in["items"]}}));
  const layers::Embedding words({.input_dim = 50, .output_dim = 6});
  const layers::BatchNormalization norm({.momentum = 0.9});
  const layers::Dense hidden({.units = 33, .activation = "relu"});
  const layers::Dropout dropout({.rate = 0.2});
  const layers::Dense score({.units = 1, .activation = "sigmoid"});
  const layers::Concatenate joined({});
  const Tensors parts =
      Tensors::list({found["user"], found["items"], words(in["word"].tensor()), in["numbers"]});
  const Tensor features = joined(parts).tensor();
  const Tensor out = score(dropout(hidden(normalized ? norm(features) : features)));
  return {.tables = tables, .model = Functional({.inputs = in, .outputs = out})};
}

// One optimizer for variables with sparse gradients, one for the others.
struct Optimizers {
  OptimizerHandle sparse = optimizers::Adagrad({.learning_rate = 0.1});
  OptimizerHandle dense = optimizers::Adam({.learning_rate = 0.01});
};

std::string state_of(const Functional& model, const std::vector<OptimizerHandle>& optimizers) {
  Checksum sum;
  for_each_state_entry(*model, [&](const std::string&, const StateEntry& e) { sum.add(e.get()); });
  for (const OptimizerHandle& optimizer : optimizers) {
    for (const Variable& v : model->trainable_variables()) {
      for (const Variable& slot : optimizer->slots(v)) sum.add(slot.read());
    }
    sum.add(Tensor::scalar(optimizer->iterations()));
  }
  return sum.text();
}

class Loop {
 public:
  Loop(distribute::Strategy& strategy, const Arguments& arguments)
      : strategy_(strategy),
        ranker_(
            make_ranker(arguments.number("users", 97), arguments.number("norm", 1) != 0,
                        arguments.text("partition") == "mod" ? "mod" : "div",
                        static_cast<double>(arguments.number("thousandths_of_norm", 0)) / 1000)) {}

  double step(const distribute::PerReplica<Tensors>& batch, int64_t number) {
    std::vector<Tensor> counts;
    for (const Tensors& part : batch.values()) {
      counts.push_back(Tensor::scalar(static_cast<double>(row_count(part))));
    }
    const double rows =
        strategy_.reduce(distribute::ReduceOp::kSum, distribute::PerReplica(counts)).item<double>();
    const auto losses = strategy_.run(
        [&](const Tensors& part) {
          std::vector<Gradient> gradients;
          Tensor loss;
          const std::vector<Variable> variables = ranker_.model->trainable_variables();
          {
            GradientTape tape;
            const Tensor y = ranker_.model(part[0], {.training = true}).tensor();
            loss = ops::sum(losses::binary_crossentropy(part[1].tensor(), y)) / rows;
            gradients = tape.gradient(loss, variables);
          }
          apply(variables, gradients, number);
          return loss;
        },
        batch);
    return strategy_.reduce(distribute::ReduceOp::kSum, losses).item<float>();
  }

  const Functional& model() const { return ranker_.model; }
  const Optimizers& optimizers() const { return optimizers_; }
  std::string state() const { return state_of(model(), {optimizers_.sparse, optimizers_.dense}); }
  Checkpoint checkpoint() const {
    return Checkpoint(
        {.model = LayerHandle<Layer>(model()),
         .optimizers = {{"sparse", optimizers_.sparse}, {"dense", optimizers_.dense}}});
  }

 private:
  // Every fourth step trains fewer variables, so that the dense ones are sharded differently.
  void apply(const std::vector<Variable>& variables, const std::vector<Gradient>& gradients,
             int64_t number) {
    std::vector<Variable> sparse, dense;
    std::vector<Gradient> sparse_gradients, dense_gradients;
    for (size_t i = 0; i < variables.size(); ++i) {
      const bool is_sparse = variables[i].is_virtual() || gradients[i].is_slices();
      if (!is_sparse && number % 4 == 3 && dense.size() == 2) continue;
      (is_sparse ? sparse : dense).push_back(variables[i]);
      (is_sparse ? sparse_gradients : dense_gradients).push_back(gradients[i]);
    }
    optimizers_.sparse->apply_gradients(sparse_gradients, sparse);
    optimizers_.dense->apply_gradients(dense_gradients, dense);
  }

  distribute::Strategy& strategy_;
  const Ranker ranker_;
  const Optimizers optimizers_;
};

// Returns the peak memory of this process in MiB and resets it.
int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) / 1024;
  }
  return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

void save(CheckpointManager& checkpoints, int64_t step) {
  forget_peak();
  const int64_t before = peak_memory();
  const std::string path = checkpoints.save(step);
  std::cerr << str("rank ", distribute::processes().rank(), " needs ", peak_memory() - before,
                   " MiB to write ", path, "\n");
}

void run_loop(distribute::Strategy& strategy, const Arguments& arguments) {
  Loop loop(strategy, arguments);
  const int64_t steps = arguments.number("steps", 30);
  const int64_t every = arguments.number("every", 0);
  std::optional<CheckpointManager> checkpoints;
  const Tensors rows = all_rows();
  if (const std::string folder = arguments.text("checkpoints"); !folder.empty()) {
    checkpoints.emplace(loop.checkpoint(), folder, CheckpointManagerOptions{.max_to_keep = 2});
    loop.model()->predict(rows[0], {.batch_size = kBatch, .verbose = Verbose::kSilent});
    if (const auto status = checkpoints->restore_or_initialize()) {
      say(str("restored ", status->step, " state ", loop.state()));
    }
  }
  for (int64_t step = loop.optimizers().dense->iterations(); step < steps;) {
    const data::Dataset batches = data::Dataset::from_tensor_slices(rows)
                                      .shuffle(kRows, {.seed = step / kStepsPerEpoch})
                                      .batch(kBatch)
                                      .skip(step % kStepsPerEpoch);
    for (const auto& batch : strategy.experimental_distribute_dataset(batches)) {
      const double loss = loop.step(batch, step);
      ++step;
      if (every > 0 && step % every == 0) save(*checkpoints, step);
      if (step % 10 == 0) say(absl::StrFormat("step %d loss %a", step, loss));
      if (step == steps) break;
    }
  }
  say(str("state ", loop.state()));
}

void run_fit(const Arguments& arguments) {
  const Ranker ranker = make_ranker(97, true);
  const Tensors rows = all_rows();
  const OptimizerHandle optimizer = optimizers::Adagrad({.learning_rate = 0.1});
  ranker.model->compile({.optimizer = optimizer,
                         .loss = "binary_crossentropy",
                         .metrics = {"auc", "binary_accuracy"}});
  const History history = ranker.model->fit(rows[0], rows[1],
                                            {.epochs = 3,
                                             .batch_size = kBatch,
                                             .seed = 5,
                                             .verbose = Verbose::kOneLine,
                                             .validation_split = 0.1});
  for (const std::string& name : history.names()) {
    for (const double value : history[name]) say(absl::StrFormat("%s %a", name, value));
  }
  for (const auto& [name, value] :
       ranker.model->evaluate(rows[0], rows[1], {.verbose = Verbose::kSilent})) {
    say(absl::StrFormat("evaluated %s %a", name, value));
  }
  Checksum predictions;
  predictions.add(
      ranker.model->predict(rows[0], {.batch_size = 25, .verbose = Verbose::kSilent}).tensor());
  std::cout << str("predictions ", predictions.text(), "\n");  // printed by every rank
  say(str("state ", state_of(ranker.model, {optimizer})));
  if (const std::string file = arguments.text("export"); !file.empty()) {
    save_model(ranker.model, file, {.include_optimizer = true});
  }
}

// All processes report an error that one of them detects, and continue.
void refuse_together() {
  const Ranker ranker = make_ranker(97, true);
  ranker.model->compile({.optimizer = optimizers::Adagrad({}), .loss = "binary_crossentropy"});
  const Tensors rows = slice_rows(all_rows(), 0, 12);
  Tensor labels = rows[1].tensor().clone();
  labels.mutable_data<float>()[11] = std::numeric_limits<float>::quiet_NaN();
  for (const Tensor& y : {labels, rows[1].tensor()}) {
    try {
      const Logs logs = ranker.model->train_on_batch(rows[0], y);
      say(absl::StrFormat("loss %a", logs.at("loss")));
    } catch (const ValueError& error) {
      std::cout << str("refused: ", error.what(), "\n");
    }
  }
}

// A table of one row per process. Rank 1 fails to restore its row the first time.
class FragileTable final : public TrackedTables {
 public:
  bool built() const override { return true; }
  std::vector<StateEntry> state_entries() override {
    const int64_t rank = distribute::processes().rank();
    const auto write = [this, rank](int64_t, int64_t, const float* values) {
      if (rank == 1 && attempts_++ == 0) throw IoError("the row of rank 1");
      row_ = values[0];
    };
    return {
        {.name = "rows",
         .spec = {.shape = {distribute::processes().size(), 1}},
         .get = {},
         .set = {},
         .rows = StateEntry::Rows{.first = rank,
                                  .end = rank + 1,
                                  .read = [this](int64_t, int64_t, float* out) { out[0] = row_; },
                                  .write = write}}};
  }
  float row() const { return row_; }
  void set_row(float row) { row_ = row; }

 private:
  float row_ = 0;
  int attempts_ = 0;
};

// All processes fail to restore if one of them fails, and can try again.
void restore_together(const std::string& file) {
  const auto table = std::make_shared<FragileTable>();
  const Variable counter(Tensor::scalar(0.0F), {.name = "counter"});
  const Checkpoint checkpoint({.variables = {{"counter", counter}}, .embeddings = {{"t", table}}});
  table->set_row(5);
  checkpoint.write(file, 1);
  table->set_row(0);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      checkpoint.restore(file);
      std::cout << str("row ", table->row(), "\n");
    } catch (const IoError& error) {
      std::cout << str("refused: ", error.what(), "\n");
    }
  }
}

// Limits the size of files that this process can write from now on.
void limit_files(int64_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {.rlim_cur = static_cast<rlim_t>(bytes),
                        .rlim_max = static_cast<rlim_t>(bytes)};
  setrlimit(RLIMIT_FSIZE, &limit);
}

void run(const Arguments& arguments) {
  const int rank = distribute::processes().rank();
  if (const std::string folder = arguments.text("pids"); !folder.empty()) {
    std::ofstream(str(folder, "/", rank)) << getpid() << std::endl;
  }
  if (rank == arguments.number("full_disk_of", -1)) limit_files(20'000);
  set_random_seed(7);
  distribute::TPUStrategy strategy({.num_hosts = static_cast<int>(arguments.number("hosts", 1)),
                                    .num_cores = static_cast<int>(arguments.number("cores", 1))});
  const auto scope = strategy.scope();
  const std::string mode = arguments.text("mode");
  if (mode == "fit") {
    run_fit(arguments);
  } else if (mode == "refuse") {
    refuse_together();
  } else if (mode == "restore") {
    restore_together(arguments.text("export"));
  } else {
    run_loop(strategy, arguments);
  }
}

}  // namespace
}  // namespace keel

int main(int count, char** texts) {
  try {
    keel::run(keel::Arguments(count, texts));
  } catch (const std::exception& error) {
    std::cerr << keel::str("rank ", keel::distribute::processes().rank(), ": ", error.what(), "\n");
    keel::distribute::processes().abort(error.what());
    return 3;
  }
}
