// Trains tables for unbounded ids for mpi_training_test.py, which starts it in different numbers of
// processes. Prints what must not depend on that number. Arguments have the form name=value:
//   hosts   hosts of the strategy
//   load    a checkpoint to start from
//   steps   the number of steps, counted from the start of the first run
//   save    the file of a checkpoint at the end
//   variables            1: the tables are variables, not in an engine
//   optimizers           2: another optimizer trains the second of these variables
//   thousandths_of_norm  if positive, clips the gradients of each table
//   rows    if positive, adds so many rows instead of training, and prints the memory that saving
//           and restoring take
#include <absl/strings/str_format.h>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>

namespace keel {
namespace {

using Arguments = std::map<std::string, std::string>;

int64_t number(const Arguments& arguments, const char* name) {
  return arguments.contains(name) ? std::stoll(arguments.at(name)) : 0;
}

void say(const std::string& line) {
  if (distribute::processes().rank() == 0) std::cout << line + "\n" << std::flush;
}

class Checksum {
 public:
  void add(const Tensor& value) {
    if (value.dtype() == DType::kString) {
      for (const std::string& text : value.data<std::string>()) add(std::as_bytes(std::span(text)));
    } else {
      add(value.raw());
    }
  }
  std::string text() const { return absl::StrFormat("%x", hash_); }

 private:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) hash_ = (hash_ ^ static_cast<uint64_t>(b)) * 0x100000001B3;
  }
  uint64_t hash_ = 0xCBF29CE484222325;
};

// Returns the peak memory of this process in MiB and resets it.
int64_t peak_memory() {
  int64_t out = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) out = std::stoll(line.substr(6)) / 1024;
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return out;
}

// One table of integers with counted admission, one of strings with a sketch.
class Job {
 public:
  explicit Job(const Arguments& arguments)
      : numbers_(make_table(
            {.dim = 3,
             .name = "numbers",
             .dynamic = DynamicVocabulary{.capacity = 40,
                                          .admission = Admission::count(2, {.max_pending = 30}),
                                          .eviction = Eviction::lfu({.ttl = 9}),
                                          .not_admitted = NotAdmitted::hashed(2)}})),
        texts_(make_table(
            {.dim = 2,
             .name = "texts",
             .dynamic = DynamicVocabulary{.key = KeyType::kString,
                                          .admission = Admission::sketch(2, {.width = 4}),
                                          .eviction = Eviction::none({.ttl = 7})}})),
        optimizer_(optimizers::Adagrad(
            {.learning_rate = 0.1,
             .clipnorm = static_cast<double>(number(arguments, "thousandths_of_norm")) / 1000})) {
    if (number(arguments, "optimizers") == 2) second_ = optimizers::Adam({.learning_rate = 0.1});
    if (number(arguments, "variables") != 0) {
      variables_.emplace(DistributedEmbeddingOptions{
          .feature_configs = Nest<keras_rs::FeatureConfig>(
              {{"numbers", feature_of(numbers_)}, {"texts", feature_of(texts_)}})});
    } else {
      engine_.emplace(TPUEmbeddingOptions{
          .feature_config = Nest<FeatureConfig>({{"numbers", FeatureConfig{.table = numbers_}},
                                                 {"texts", FeatureConfig{.table = texts_}}}),
          .optimizer = optimizer_});
    }
    const TensorSpec spec = {.shape = {kUnknown, kUnknown}, .layout = Layout::kRagged};
    TensorSpec of_numbers = spec, of_texts = spec;
    of_numbers.dtype = DType::kInt64;
    of_texts.dtype = DType::kString;
    const Specs specs({{"numbers", of_numbers}, {"texts", of_texts}});
    engine_ ? (*engine_)->build(specs) : (*variables_)->build(specs);
  }

  void step(distribute::Strategy& strategy, int64_t step) {
    strategy.run([&] {
      GradientTape tape;
      const Tensors ids = batch(step, current_replica_context()->replica);
      const Tensors found = engine_ ? (*engine_)(ids) : (*variables_)(ids);
      const Tensor x = found["numbers"].tensor(), y = found["texts"].tensor();
      const Tensor loss = ops::sum(ops::square(x) + x) + ops::sum(ops::square(y) + y);
      const std::vector<Variable> trained =
          engine_ ? (*engine_)->trainable_variables() : (*variables_)->trainable_variables();
      const std::vector<Gradient> gradients = tape.gradient(loss, trained);
      if (!variables_) return;
      if (!second_) return optimizer_->apply_gradients(gradients, trained);
      optimizer_->apply_gradients({gradients[0]}, {trained[0]});
      (*second_)->apply_gradients({gradients[1]}, {trained[1]});
    });
  }
  Checkpoint checkpoint() const {
    if (engine_) return Checkpoint({.model = LayerHandle<Layer>(*engine_)});
    CheckpointItems items = {.model = LayerHandle<Layer>(*variables_),
                             .optimizers = {{"optimizer", optimizer_}}};
    if (second_) items.optimizers.emplace("second", *second_);
    return Checkpoint(std::move(items));
  }
  int64_t updates() const { return dynamic_table(numbers_).statistics().updates; }
  std::string state() const {
    Checksum sum;
    for (const Table& table : {numbers_, texts_}) {
      const DynamicTableState s = dynamic_table(table).state();
      for (const Tensor* part : {&s.keys, &s.rows, &s.count, &s.last, &s.born, &s.pending_keys,
                                 &s.pending_count, &s.pending_last, &s.fallback}) {
        sum.add(*part);
      }
      for (const auto& [name, slot] : s.slots) sum.add(slot);
      for (const auto& [name, slot] : s.fallback_slots) sum.add(slot);
      sum.add(Tensor::from(s.sketch, {std::ssize(s.sketch)}));
      sum.add(Tensor::from<int64_t>({s.statistics.admitted, s.statistics.evicted_capacity,
                                     s.statistics.evicted_ttl, s.statistics.looked_up},
                                    {4}));
    }
    return sum.text();
  }

 private:
  static constexpr int64_t kMostIds = 10;  // of a sample

  static keras_rs::FeatureConfig feature_of(const Table& table) {
    return {.name = table->name,
            .table = keras_rs::make_table({.name = table->name,
                                           .embedding_dim = table->dim,
                                           .initializer = table->initializer,
                                           .combiner = table->combiner,
                                           .placement = "default_device",
                                           .dynamic = table->dynamic}),
            .input_shape = {kUnknown, kMostIds},
            .output_shape = {kUnknown, table->dim}};
  }
  DynamicTable dynamic_table(const Table& table) const {
    return engine_ ? (*engine_)->dynamic_table(table) : (*variables_)->dynamic_table(table->name);
  }
  static Tensors batch(int64_t step, int replica) {
    std::mt19937_64 random(step * 100 + replica);
    std::vector<std::vector<int64_t>> numbers(4);
    std::vector<std::vector<std::string>> texts(4);
    for (int sample = 0; sample < 4; ++sample) {
      for (auto n = random() % 5; n > 0; --n) {
        numbers[sample].push_back(static_cast<int64_t>(random() % 90) - 20);
        texts[sample].push_back("t" + std::to_string(random() % 70));
      }
    }
    return Tensors(
        {{"numbers", RaggedTensor::from_rows(numbers)}, {"texts", RaggedTensor::from_rows(texts)}});
  }

  const Table numbers_, texts_;
  const OptimizerHandle optimizer_;
  std::optional<OptimizerHandle> second_;
  std::optional<layers::TPUEmbedding> engine_;
  std::optional<layers::DistributedEmbedding> variables_;
};

// Returns a checksum of all values of a checkpoint.
std::string arrays_of(const std::string& path) {
  Checksum sum;
  const CheckpointReader file(path);
  for (const auto& [key, value] : file.index()) {
    sum.add(Tensor::scalar(key));
    sum.add(file.read(key));
  }
  return sum.text();
}

void train(distribute::Strategy& strategy, const Arguments& arguments) {
  Job job(arguments);
  if (arguments.contains("load")) {
    job.checkpoint().restore(arguments.at("load")).assert_consumed();
    say("restored state " + job.state());
  }
  for (int64_t step = job.updates(); step < number(arguments, "steps"); ++step) {
    job.step(strategy, step);
  }
  say("state " + job.state());
  if (!arguments.contains("save")) return;
  job.checkpoint().write(arguments.at("save"), 1);
  if (distribute::processes().rank() == 0) say("arrays state " + arrays_of(arguments.at("save")));
}

// Saves and restores a large table.
void measure(int64_t rows, const std::string& path) {
  constexpr int64_t kAtOnce = 50'000, kDim = 64;
  const Table table = make_table({.dim = kDim, .name = "large", .dynamic = DynamicVocabulary{}});
  const layers::TPUEmbedding layer({.feature_config = FeatureConfig{.table = table},
                                    .optimizer = optimizers::Adagrad({.learning_rate = 0.1})});
  layer->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  const DynamicTable large = layer->dynamic_table(table);
  for (int64_t first = 0; first < rows; first += kAtOnce) {
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < kAtOnce; ++i) keys.push_back(7 * (first + i));
    large.assign_rows(Tensor::from(keys, {kAtOnce}), Tensor::full<float>({kAtOnce, kDim}, 1));
  }
  const Checkpoint checkpoint({.model = LayerHandle<Layer>(layer)});
  const auto needed = [](const auto& run) {
    peak_memory();
    const int64_t before = peak_memory();
    run();
    return peak_memory() - before;
  };
  const int64_t to_write = needed([&] { checkpoint.write(path, 1); });
  const int64_t to_restore = needed([&] { checkpoint.restore(path); });
  say(str("all processes have ", large.memory().rows >> 20, " MiB of rows"));
  std::cerr << str("rank ", distribute::processes().rank(), " needs ", to_write,
                   " MiB to write and ", to_restore, " MiB to restore\n");
}

void run(const Arguments& arguments) {
  set_random_seed(7);
  distribute::TPUStrategy strategy(
      {.num_hosts = static_cast<int>(number(arguments, "hosts")), .num_cores = 1});
  const auto scope = strategy.scope();
  const int64_t rows = number(arguments, "rows");
  rows > 0 ? measure(rows, arguments.at("save")) : train(strategy, arguments);
}

}  // namespace
}  // namespace keel

int main(int count, char** texts) {
  try {
    keel::Arguments arguments;
    for (int i = 1; i < count; ++i) {
      const std::string text = texts[i];
      const size_t equals = text.find('=');
      arguments[text.substr(0, equals)] = text.substr(equals + 1);
    }
    keel::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << keel::str("rank ", keel::distribute::processes().rank(), ": ", error.what(), "\n");
    keel::distribute::processes().abort(error.what());
    return 3;
  }
}
