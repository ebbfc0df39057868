// Single kernels, measured with Google Benchmark: time per element on data that stays in the
// caches. The other programs compare whole operations with the peer.
#include <benchmark/benchmark.h>
#include <cmath>
#include <memory>
#include <vector>

#include <keel/framework/kernels/convolution/convolution.h>
#include <keel/framework/kernels/convolution/depthwise.h>
#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/kernels/embedding/interaction.h>
#include <keel/framework/kernels/embedding/row_groups.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "benchmarks/support/data.h"
#include "benchmarks/support/pages.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kRows = 100'000;
constexpr int64_t kSamples = 2048;
constexpr int64_t kFeatures = 27;

std::vector<float> numbers(int64_t n) {
  std::vector<float> out(n);
  fill(out.data(), n, 0.1F);
  return out;
}

BagBatch batch_of(int64_t bag) {
  Random random(1);
  return make_bags(RowIds(kRows, Popularity::kZipf), kSamples, bag, /*ragged=*/true, random);
}

kernels::Bags bags_of(const BagBatch& batch) {
  return {.ids = batch.ids.data(), .splits = batch.splits.data(), .samples = batch.samples()};
}

void gather_rows(benchmark::State& state) {
  const int64_t dim = state.range(0);
  const BagBatch batch = batch_of(1);
  const std::vector<float> table = numbers(kRows * dim);
  std::vector<float> out(batch.size() * dim);
  while (state.KeepRunning()) {
    kernels::gather_rows(table.data(), dim, batch.ids.data(), batch.size(), out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * batch.size());
}

void pooled_gather(benchmark::State& state) {
  const int64_t dim = state.range(0);
  const BagBatch batch = batch_of(10);
  const std::vector<float> table = numbers(kRows * dim);
  std::vector<float> out(kSamples * dim);
  while (state.KeepRunning()) {
    kernels::pooled_gather(table.data(), dim, bags_of(batch), kernels::Combiner::kMean, out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * batch.size());
}

void group_rows(benchmark::State& state) {
  const BagBatch batch = batch_of(state.range(0));
  const kernels::Bags bags = bags_of(batch);
  kernels::RowGroups groups;
  while (state.KeepRunning()) {
    groups.build({&bags, 1}, kRows, /*by_position=*/false);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * batch.size());
}

// The dot interaction of a ranker, forward or backward.
void dot_pairs(benchmark::State& state, bool backward) {
  const kernels::FeaturePairs pairs = {.features = kFeatures, .dim = state.range(0)};
  const int64_t samples = 256;
  const std::vector<float> x = numbers(kFeatures * samples * pairs.dim);
  std::vector<float> dx(x.size());
  std::vector<float> y = numbers(samples * pairs.count());
  std::vector<const float*> from;
  std::vector<float*> to;
  for (int64_t f = 0; f < kFeatures; ++f) {
    from.push_back(x.data() + f * samples * pairs.dim);
    to.push_back(dx.data() + f * samples * pairs.dim);
  }
  const kernels::FeatureRows<const float> in = {.first = from, .stride = pairs.dim};
  while (state.KeepRunning()) {
    if (backward) {
      kernels::dot_pairs_back<float>(pairs, samples, in, y.data(),
                                     {.first = to, .stride = pairs.dim});
    } else {
      kernels::dot_pairs<float>(pairs, samples, in, y.data());
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * samples);
}

enum class ConvolutionPass { kForward, kInputGradient, kKernelGradient };

// A convolution with 3 x 3 windows over 8 images of 28 x 28 pixels, with as many filters as
// channels. An item is a multiply-add.
void convolution(benchmark::State& state, ConvolutionPass pass) {
  constexpr int64_t kImages = 8, kPixels = 28;
  const int64_t channels = state.range(0);
  const kernels::WindowAxis axis = {.input = kPixels, .output = kPixels, .size = 3, .before = 1};
  const kernels::Convolution sizes = {.grid = {.axes = {{{}, axis, axis}}},
                                      .batch = kImages,
                                      .channels = channels,
                                      .filters = channels};
  std::vector<float> x = numbers(kImages * sizes.grid.inputs() * channels), y = x;
  std::vector<float> kernel = numbers(sizes.grid.taps() * channels * channels);
  while (state.KeepRunning()) {
    if (pass == ConvolutionPass::kForward) {
      kernels::convolve<float>(sizes, x.data(), kernel.data(), nullptr, false, y.data());
    } else if (pass == ConvolutionPass::kInputGradient) {
      kernels::convolve_transposed(sizes, y.data(), kernel.data(), x.data());
    } else {
      kernels::convolution_kernel_gradient(sizes, x.data(), y.data(), kernel.data());
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(x) * sizes.grid.taps() * channels);
}

// Measures convolutions with one filter for each channel.
void depthwise_convolution(benchmark::State& state) {
  constexpr int64_t kImages = 8, kPixels = 28;
  const int64_t channels = state.range(0);
  const kernels::WindowAxis axis = {.input = kPixels, .output = kPixels, .size = 3, .before = 1};
  const kernels::DepthwiseConvolution sizes = {
      .grid = {.axes = {{{}, axis, axis}}}, .batch = kImages, .channels = channels};
  const std::vector<float> x = numbers(kImages * sizes.grid.inputs() * channels);
  const std::vector<float> kernel = numbers(sizes.grid.taps() * channels);
  std::vector<float> y(x.size());
  while (state.KeepRunning()) {
    kernels::convolve_depthwise(sizes, x.data(), kernel.data(), y.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(x) * sizes.grid.taps());
}

void update(benchmark::State& state, const UpdateRule& rule) {
  const int64_t n = state.range(0);
  std::vector<float> value = numbers(n);
  const std::vector<float> gradient = numbers(n);
  std::vector<std::vector<float>> memory(rule.slots().size(), std::vector<float>(n, 1.0F));
  std::vector<float*> slots;
  for (auto& slot : memory) slots.push_back(slot.data());
  while (state.KeepRunning()) {
    rule.update(value.data(), gradient.data(), slots.data(), n, {.learning_rate = 1e-6});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
}

void register_all() {
  benchmark::RegisterBenchmark("gather_rows", gather_rows)->Arg(16)->Arg(64)->Arg(128);
  benchmark::RegisterBenchmark("pooled_gather", pooled_gather)->Arg(16)->Arg(64)->Arg(128);
  benchmark::RegisterBenchmark("group_rows", group_rows)->Arg(1)->Arg(10)->Arg(50);
  benchmark::RegisterBenchmark("dot_pairs", dot_pairs, false)->Arg(16)->Arg(64)->Arg(128);
  benchmark::RegisterBenchmark("dot_pairs_back", dot_pairs, true)->Arg(16)->Arg(64)->Arg(128);
  for (const auto& [name, pass] :
       {std::pair("convolution", ConvolutionPass::kForward),
        std::pair("convolution_input_gradient", ConvolutionPass::kInputGradient),
        std::pair("convolution_kernel_gradient", ConvolutionPass::kKernelGradient)}) {
    benchmark::RegisterBenchmark(name, convolution, pass)->Arg(16)->Arg(128);
  }
  benchmark::RegisterBenchmark("depthwise_convolution", depthwise_convolution)->Arg(16)->Arg(128);
  const auto add = [](const char* name, std::shared_ptr<const UpdateRule> rule) {
    benchmark::RegisterBenchmark(
        name, [rule = std::move(rule)](benchmark::State& state) { update(state, *rule); })
        ->Arg(64)
        ->Arg(100'000);
  };
  add("update_sgd", std::make_shared<SGDRule>());
  add("update_momentum", std::make_shared<SGDRule>(0.9));
  add("update_adagrad", std::make_shared<AdagradRule>(0.1, 1e-7));
  add("update_adam", std::make_shared<AdamRule>(AdamRuleOptions{}));
  add("update_ftrl", std::make_shared<FtrlRule>(FtrlRuleOptions{}));
}

// Converts the results of Google Benchmark to the report format of this project.
class ToReport final : public benchmark::BenchmarkReporter {
 public:
  explicit ToReport(Report& report) : report_(report) {}

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      // A failed run has no rate. libbenchmark 1.8 renamed the field that reports failures.
      const auto rate = run.counters.find("items_per_second");
      if (rate == run.counters.end() || run.run_type != Run::RT_Iteration) continue;
      report_.add({.op = run.benchmark_name(), .value = 1e9 / rate->second, .unit = "ns/item"});
    }
  }

 private:
  Report& report_;
};

int run(const Options& options, const char* program) {
  Report report(options, "bench_kernels");
  register_all();
  const std::string filter = "--benchmark_filter=" + (options.only.empty() ? "." : options.only);
  const std::string time = options.quick ? "--benchmark_min_time=0.05" : "--benchmark_min_time=0.5";
  std::vector<std::string> arguments = {program, filter, time};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  ToReport reporter(report);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  const auto options = keel::bench::parse_options(
      argc, argv, "bench_kernels",
      "Single kernels, nanoseconds per item: rows gathered, ids pooled or grouped, samples of an "
      "interaction, elements updated, multiply-adds of convolutions.");
  return keel::bench::run(options, argv[0]);
}
