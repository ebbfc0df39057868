// Lets single allocations fail, one after the other, in what users do with models: each call ends
// with an exception or without a trace of the failure, and the objects can still be used.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <filesystem>
#include <functional>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/saved_model.h>

namespace {

// Counts down to the allocation that fails; negative: none does.
std::atomic<int64_t> left = -1;
// The number of allocations that fail in a row, starting with that one.
std::atomic<int64_t> failures = 0;

bool fails() {
  if (left.load(std::memory_order_relaxed) < 0) return false;
  const int64_t before = left.fetch_sub(1);
  if (before > 0) return false;
  if (before < 0) {
    left = -1;
    return false;
  }
  if (failures.fetch_sub(1) > 1) left = 0;
  return true;
}

}  // namespace

void* operator new(size_t bytes) {
  if (fails()) throw std::bad_alloc();
  void* const block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }

// The allocator of tensors calls it.
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  if (fails()) return nullptr;
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

namespace keel::out_of_memory_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;

constexpr int64_t kRows = 8;

Tensors features() {
  return {{"item", Tensor::from<int64_t>({1, 2, 3, 1, 2, 3, 0, 4}, {kRows})},
          {"seen", RaggedTensor::from_rows<int64_t>({{1}, {}, {2, 3}, {1}, {0}, {}, {2}, {4, 1}})},
          {"price", Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {kRows, 1})}};
}
Tensor labels() { return Tensor::from<float>({1, 0, 1, 0, 1, 1, 0, 0}, {kRows, 1}); }

Functional make_model() {
  const Table items =
      make_table({.vocabulary_size = 5, .dim = 4, .optimizer = {}, .name = "items"});
  const Tensors in = {
      {"item", layers::input({.shape = {}, .dtype = DType::kInt64, .name = "item"})},
      {"seen", layers::ragged_input({.dtype = DType::kInt64, .name = "seen"})},
      {"price", layers::input({.shape = {1}, .name = "price"})}};
  const layers::TPUEmbedding tables({.feature_config = {{"item", FeatureConfig{.table = items}},
                                                        {"seen", FeatureConfig{.table = items}}},
                                     .optimizer = optimizers::Adagrad({.learning_rate = 0.1})});
  const Tensors found = tables({{"item", in["item"]}, {"seen", in["seen"]}});
  Tensor x =
      layers::Concatenate({})(Tensors::list({found["item"], found["seen"], in["price"]})).tensor();
  x = layers::BatchNormalization({})(x);
  x = layers::Dense({.units = 3, .activation = "relu"})(x);
  const Functional model(
      {.inputs = in, .outputs = layers::Dense({.units = 1, .activation = "sigmoid"})(x)});
  model->compile({.optimizer = optimizers::Adam({.clipnorm = 1}),
                  .loss = "binary_crossentropy",
                  .metrics = {"auc", "binary_accuracy"}});
  return model;
}

// A case: `prepare` makes the objects, and the function that it returns uses them.
using Use = std::function<void()>;
struct Case {
  const char* name;
  std::function<Use()> prepare;
};

std::string file(const char* name) {
  return (std::filesystem::temp_directory_path() / keel::str("keel_memory_", getpid(), "_", name))
      .string();
}

Use training(std::shared_ptr<Strategy> strategy) {
  const auto model = std::make_shared<Functional>([&] {
    const auto scope = strategy->scope();
    return make_model();
  }());
  return [strategy, model] {
    const auto scope = strategy->scope();
    (*model)->fit(features(), labels(),
                  {.epochs = 2, .batch_size = 4, .verbose = Verbose::kSilent});
  };
}

Use own_loop() {
  const auto strategy =
      std::make_shared<TPUStrategy>(distribute::TPUStrategyOptions{.num_cores = 2});
  struct Objects {
    layers::Embedding table{keel::EmbeddingOptions{.input_dim = 5, .output_dim = 3}};
    layers::Dense dense{keel::DenseOptions{.units = 1}};
    optimizers::Adam adam{keel::AdamOptions{.lazy_rows = LazyRows::kReplay}};
  };
  const auto scope = strategy->scope();
  const auto objects = std::make_shared<Objects>();
  return [strategy, objects] {
    const auto inner = strategy->scope();
    for (int step = 0; step < 2; ++step) {
      strategy->run([&] {
        GradientTape tape;
        const Tensor ids = Tensor::from<int64_t>({1, 2, 2}, {3});
        const Tensor loss = ops::sum(ops::square(objects->dense(objects->table(ids))));
        std::vector<Variable> variables = objects->table->trainable_variables();
        for (const Variable& v : objects->dense->trainable_variables()) variables.push_back(v);
        objects->adam->apply_gradients(tape.gradient(loss, variables), variables);
      });
    }
  };
}

Use adaptation() {
  struct Layers {
    layers::Normalization normalization{keel::NormalizationOptions{}};
    layers::StringLookup lookup{keel::StringLookupOptions{}};
    layers::Discretization bins{keel::DiscretizationOptions{.num_bins = 3}};
  };
  const auto layers = std::make_shared<Layers>();
  return [layers] {
    const Tensor numbers = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6, 1});
    layers->normalization->adapt(numbers);
    layers->bins->adapt(numbers);
    layers->lookup->adapt(Tensor::from<std::string>({"red", "green", "red", "blue"}, {4, 1}));
    layers->lookup(
        Tensor::from<std::string>({"green", "a word of more than sixteen bytes"}, {2, 1}));
  };
}

Use files(const char* suffix) {
  const auto strategy = std::make_shared<CPUStrategy>();
  const auto scope = strategy->scope();
  const auto model = std::make_shared<Functional>(make_model());
  (*model)->fit(features(), labels(), {.verbose = Verbose::kSilent});
  const std::string path = file(suffix);
  return [strategy, model, path] {
    const auto inner = strategy->scope();
    struct Remove {
      const std::string& path;
      ~Remove() { ::unlink(path.c_str()); }
    } remove{path};
    save_model(*model, path);
    load_model(path)->predict(features(), {.verbose = Verbose::kSilent});
  };
}

Use checkpoints() {
  const auto strategy = std::make_shared<CPUStrategy>();
  const auto scope = strategy->scope();
  const auto model = std::make_shared<Functional>(make_model());
  const optimizers::Adam adam({});
  (*model)->compile({.optimizer = adam, .loss = "binary_crossentropy"});
  (*model)->fit(features(), labels(), {.verbose = Verbose::kSilent});
  const std::string path = file("ckpt.h5");
  return [strategy, model, adam, path] {
    const auto inner = strategy->scope();
    struct Remove {
      const std::string& path;
      ~Remove() { ::unlink(path.c_str()); }
    } remove{path};
    const Checkpoint checkpoint(
        {.model = LayerHandle<Layer>(*model), .optimizers = {{"adam", adam}}});
    checkpoint.write(path, 1);
    checkpoint.restore(path);
  };
}

Use prediction() {
  const auto strategy =
      std::make_shared<TPUStrategy>(distribute::TPUStrategyOptions{.num_cores = 2});
  const auto scope = strategy->scope();
  const auto model = std::make_shared<Functional>(make_model());
  return [strategy, model] {
    const auto inner = strategy->scope();
    (*model)->predict(features(), {.batch_size = 4, .verbose = Verbose::kSilent});
    (*model)->evaluate(features(), labels(), {.verbose = Verbose::kSilent});
  };
}

const Case kCases[] = {
    {"training on cores",
     [] {
       return training(
           std::make_shared<TPUStrategy>(distribute::TPUStrategyOptions{.num_cores = 2}));
     }},
    {"training on one replica", [] { return training(std::make_shared<CPUStrategy>()); }},
    {"own loop", own_loop},
    {"adapt", adaptation},
    {".h5 file", [] { return files("model.h5"); }},
    {".keras file", [] { return files("model.keras"); }},
    {"checkpoint", checkpoints},
    {"prediction", prediction},
};

[[noreturn]] void report_and_end(int signal) {
  left = -1;
  std::array<void*, 60> frames;
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), frames.size()), STDERR_FILENO);
  _exit(128 + signal);
}

enum Outcome { kThrew = 10, kSucceeded, kNotReached, kUnusable, kOtherException };

// In a process of its own: uses the objects while allocation `number` and `count` - 1 after it
// fail, then again without failures.
int outcome_of(const Case& tried, int64_t number, int64_t count) {
  const pid_t child = fork();
  if (child != 0) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  alarm(60);
  std::signal(SIGABRT, report_and_end);
  std::signal(SIGSEGV, report_and_end);
  int out = kSucceeded;
  {
    const Use use = tried.prepare();
    failures = count;
    left = number;
    try {
      use();
      if (left.load() >= 0) out = kNotReached;
    } catch (const std::bad_alloc&) {
      out = kThrew;
    } catch (const Error&) {
      out = kThrew;
    } catch (const std::exception& error) {
      left = -1;
      std::fprintf(stderr, "%s\n", error.what());
      out = kOtherException;
    }
    left = -1;
    try {
      if (out != kNotReached) use();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "used again: %s\n", error.what());
      out = kUnusable;
    }
  }
  _exit(out);
}

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

TEST(OutOfMemoryTest, EachFailedAllocationThrowsOrIsHandled) {
  set_num_workers(1);  // fork() copies no threads
  // KEEL_MEMORY_STRIDE=1 tries every allocation.
  const int64_t most = number_from("KEEL_MEMORY_TRIES", 40);
  const int64_t stride = number_from("KEEL_MEMORY_STRIDE", 0);
  for (const Case& tried : kCases) {
    int64_t total = 0;
    while (outcome_of(tried, total, 1) != kNotReached) total += 1 + total / 2;
    for (const int64_t count : {1, 2, 25}) {
      const int64_t step = stride > 0 ? stride : std::max<int64_t>(1, total / most);
      int tries = 0, threw = 0;
      for (int64_t number = count % step; number < total; number += step) {
        const int outcome = outcome_of(tried, number, count);
        if (outcome == kNotReached) break;
        ++tries;
        threw += outcome == kThrew ? 1 : 0;
        EXPECT_TRUE(outcome == kThrew || outcome == kSucceeded)
            << tried.name << ": allocation " << number << ", " << count << " failures: outcome "
            << outcome;
      }
      std::printf("%s: %d tries of %d failures, %d exceptions\n", tried.name, tries,
                  static_cast<int>(count), threw);
    }
  }
}

}  // namespace keel::out_of_memory_test
