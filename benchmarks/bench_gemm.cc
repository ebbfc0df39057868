// Matrix products of a ranker's layers: forward with the bias, and both backward products. Keel,
// the peer and the peak of multiply-adds are measured in alternation. bfloat16: Keel rounds float32
// operands as it reads them and returns float32; the operands and results of the peer are bfloat16.
// bfloat16_x6: float32 products in tile registers, compared with the peak of multiply-adds.
#include <map>
#include <string>
#include <vector>

#include <keel/framework/kernels/gemm/amx_tiles.h>
#include <keel/framework/kernels/gemm/gemm_bf16.h>

#include "benchmarks/peer/gemm_peer.h"
#include "benchmarks/peer/peer.h"
#include "benchmarks/support/limits.h"
#include "benchmarks/support/pages.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

struct Layer {
  const char* model;
  int64_t in, out;
  bool gradient_of_input = true;  // not needed for the first layer
};

// The layers of a DLRM with 26 tables of 16 columns, the layers that differ with 64 columns, and
// those of a Wide & Deep model.
const std::vector<Layer> kLayers = {
    {"dlrm", 13, 512, false}, {"dlrm", 512, 256},       {"dlrm", 256, 64},
    {"dlrm", 64, 16},         {"dlrm", 367, 512},       {"dlrm", 512, 256},
    {"dlrm", 256, 1},         {"dlrm64", 64, 64},       {"dlrm64", 415, 512},
    {"wide_deep", 429, 1024}, {"wide_deep", 1024, 512},
};

struct Product {
  std::string pass;  // "forward", "dgrad", "wgrad"
  GemmShape shape;
};

// Kernels are [in, out] as in Keras: y = x w + b, dx = dy w^T, dw = x^T dy.
std::vector<Product> products(const Layer& layer, int64_t batch, bool training) {
  std::vector<Product> out = {{"forward", {.m = batch, .n = layer.out, .k = layer.in}}};
  if (!training) return out;
  if (layer.gradient_of_input) {
    out.push_back({"dgrad", {.m = batch, .n = layer.in, .k = layer.out, .transpose_b = true}});
  }
  out.push_back({"wgrad", {.m = layer.in, .n = layer.out, .k = batch, .transpose_a = true}});
  return out;
}

enum class Arithmetic { kFloat32, kBfloat16, kBfloat16x6 };

struct Batch {
  int64_t samples = 0;
  bool training = true;
  Arithmetic arithmetic = Arithmetic::kFloat32;

  const char* op() const {
    if (arithmetic == Arithmetic::kFloat32) return "gemm";
    return arithmetic == Arithmetic::kBfloat16 ? "gemm_bf16" : "gemm_bf16_x6";
  }
};

struct Times {
  double ours = 0, peer = 0, limit = 0;  // seconds

  Times& operator+=(const Times& other) {
    ours += other.ours;
    peer += other.peer;
    limit += other.limit;
    return *this;
  }
};

void add_result(Report& report, const Options& options, const char* op, const std::string& model,
                const std::string& pass, const std::string& shape, const Times& times,
                double flops) {
  Result result = {.op = op,
                   .threads = options.threads,
                   .value = flops / times.ours * 1e-9,
                   .unit = "GFLOP/s",
                   .ratio_to_limit = times.limit / times.ours,
                   .labels = {{"model", model}, {"pass", pass}, {"shape", shape}}};
  if (peer_available()) {
    result.ratio_to_libtorch = times.peer / times.ours;
    result.more.emplace_back("libtorch", flops / times.peer * 1e-9);
  }
  report.add(result);
}

Times measure(Report& report, const Options& options, const std::string& name,
              const Product& product, Arithmetic arithmetic) {
  const bool bfloat16 = arithmetic == Arithmetic::kBfloat16;
  const GemmShape& shape = product.shape;
  const bool forward = product.pass == "forward";
  const PagedMemory memory(
      (shape.m * shape.k + shape.k * shape.n + 2 * shape.m * shape.n + shape.n + 5 * 16) *
          sizeof(float),
      Pages::kHuge);
  float* next = memory.floats();
  const auto take = [&next](int64_t n) {
    float* const at = next;
    next += (n + 15) / 16 * 16;  // round up to whole cache lines
    fill(at, n, 1);
    return at;
  };
  const float* a = take(shape.m * shape.k);
  const float* b = take(shape.k * shape.n);
  const float* bias = forward ? take(shape.n) : nullptr;
  float* ours = take(shape.m * shape.n);
  float* peers = take(shape.m * shape.n);
  const auto multiply = [&] {
    const kernels::GemmEpilogue epilogue = {.bias = bias};
    if (bfloat16) {
      kernels::gemm_bf16(a, b, ours, shape.m, shape.n, shape.k, shape.transpose_a,
                         shape.transpose_b, epilogue, MatmulPrecision::kHigh);
    } else {
      kernels::gemm(a, b, ours, shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b,
                    epilogue,
                    arithmetic == Arithmetic::kBfloat16x6 ? MatmulPrecision::kHigh
                                                          : MatmulPrecision::kHighest);
    }
  };
  const PeakWork peak = bfloat16 ? peak_bfloat16_work(options.threads) : peak_work(options.threads);
  std::vector<Contender> contenders = {{"ours", multiply}, peak.contender};
  const auto peer = make_gemm_peer(shape, bfloat16);
  if (peer != nullptr) {
    peer->bind(a, b, bias, peers);
    multiply();
    peer->run();
    peer->store();
    report.check(name, relative_difference(ours, peers, shape.m * shape.n), bfloat16 ? 1e-2 : 1e-4);
    contenders.push_back({"libtorch", [&] { peer->run(); }});
  }
  const Comparison times =
      compare(std::move(contenders),
              {.seconds_per_slice = options.quick ? 0.003 : 0.01, .turns = options.quick ? 7 : 21});
  Times out;
  // Ratios are computed per turn and refer to Keel's time.
  out.ours = times.timings[0].median;
  out.limit = out.ours * times.ratio(1, 0) * shape.flops() / peak.flops;
  if (peer != nullptr) out.peer = out.ours * times.ratio(2, 0);
  return out;
}

void run_batch(Report& report, const Options& options, const Batch& batch) {
  std::map<std::string, std::pair<Times, double>> sums;
  std::map<std::string, Times> known;  // layers of the same shape are measured once
  for (const Layer& layer : kLayers) {
    if (batch.arithmetic != Arithmetic::kFloat32 && std::string_view(layer.model) != "dlrm")
      continue;
    for (const Product& product : products(layer, batch.samples, batch.training)) {
      const GemmShape& shape = product.shape;
      const std::string sizes =
          std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
      const std::string name =
          batch.op() + (" " + product.pass) + " of " + layer.model + " " + sizes;
      if (!options.wants(name)) continue;
      const auto [entry, is_new] = known.try_emplace(product.pass + sizes);
      if (is_new) {
        entry->second = measure(report, options, name, product, batch.arithmetic);
        add_result(report, options, batch.op(), layer.model, product.pass, sizes, entry->second,
                   shape.flops());
      }
      if (std::string_view(layer.model) != "dlrm") continue;
      for (const std::string& sum : {product.pass, std::string("all")}) {
        sums[sum].first += entry->second;
        sums[sum].second += shape.flops();
      }
    }
  }
  if (!batch.training) sums.erase("all");  // there is only one pass
  for (const auto& [pass, sum] : sums) {
    add_result(report, options, batch.op(), "dlrm", pass,
               "sum, batch " + std::to_string(batch.samples), sum.first, sum.second);
  }
}

int run(const Options& options) {
  set_peer_threads(options.threads);
  Report report(options, "bench_gemm");
  for (const int64_t samples : {2048, 256}) run_batch(report, options, {.samples = samples});
  for (const int64_t samples : {1, 8, 32}) {
    run_batch(report, options, {.samples = samples, .training = false});
  }
  if (peak_bfloat16_work(1).flops > 0) {
    run_batch(report, options, {.samples = 2048, .arithmetic = Arithmetic::kBfloat16});
  }
  if (kernels::internal::may_use_tiles()) {
    run_batch(report, options, {.samples = 2048, .arithmetic = Arithmetic::kBfloat16x6});
  }
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_gemm",
      "Matrix products of the layers of DLRM and Wide & Deep: forward with bias, and both of "
      "backward,\nagainst libtorch's and the peak of float32 multiply-adds."));
}
