// Training of whole models: samples per second of Keel and of the peer, and the time per phase of a
// step.
//
// Keel runs a functional model with layers::TPUEmbedding under a TPUStrategy and a hand-written
// training step. Its replicas process pieces of the batch; the number of replicas is the fastest
// one on this machine. The peer is the same model with one table per column or with one joint
// table, whichever is faster. Both start from the same values and process the same batches; their
// losses must agree.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include <keel/framework/base/profile.h>
#include <keel/framework/kernels/gemm/amx_tiles.h>
#include <keel/framework/matmul_precision.h>

#include "benchmarks/models/click_trainer.h"
#include "benchmarks/peer/model_peer.h"
#include "benchmarks/peer/peer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/limits.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamples = 2048;
constexpr int kBatches = 16;
constexpr int kStepsToCompare = 10;
constexpr double kAllowedLossDifference = 1e-3;
// The peer also rounds the values that its layers pass to each other.
constexpr double kAllowedMixedLossDifference = 1e-2;

// Cycles through the batches.
template <class T>
std::function<void()> steps_of(T& trainer) {
  return [&trainer, next = 0]() mutable { trainer.train(next++ % kBatches); };
}

template <class T>
double seconds_per_step(T& trainer) {
  return compare({{"", steps_of(trainer)}}, {.seconds_per_slice = 0.1, .turns = 2})
      .timings[0]
      .least;
}

// Returns the fastest candidate. Candidates are created one after the other because each may have
// gigabytes of tables. With `may_be_worn`, the result may already have been trained.
template <class T, class Candidate, class Make>
std::unique_ptr<T> fastest(const std::vector<Candidate>& candidates, bool may_be_worn,
                           const Make& make) {
  size_t best = 0;
  double least = 0;
  std::unique_ptr<T> made;
  for (size_t i = 0; i < candidates.size(); ++i) {
    made.reset();
    made = make(candidates[i]);
    if (made == nullptr) return nullptr;
    if (candidates.size() == 1) return made;
    const double seconds = seconds_per_step(*made);
    if (i == 0 || seconds < least) {
      best = i;
      least = seconds;
    }
  }
  if (may_be_worn && best + 1 == candidates.size()) return made;
  made.reset();
  return make(candidates[best]);
}

struct Job {
  std::string name;
  ClickWork work;
  MatmulPrecision precision = matmul_precision();
};

std::vector<Job> all_jobs(bool quick) {
  std::vector<Job> out;
  const std::vector<int64_t> rows = criteo_table_sizes();
  const auto add = [&](ModelKind model, int64_t dim, bool adagrad, int64_t bag) {
    const std::string name = name_of(model) + (bag > 1 ? "_multi_hot" : "") + "_d" +
                             std::to_string(dim) + (adagrad ? "_adagrad" : "_sgd");
    out.push_back(
        {name, {.model = model, .dim = dim, .rows = rows, .bag = bag, .adagrad = adagrad}});
  };
  add(ModelKind::kDlrm, 16, false, 1);
  add(ModelKind::kDlrm, 16, true, 1);
  if (!quick) {
    add(ModelKind::kDlrm, 64, false, 1);
    add(ModelKind::kDlrm, 64, true, 1);
  }
  add(ModelKind::kDlrm, 16, true, 10);
  add(ModelKind::kWideAndDeep, 16, false, 1);
  if (!quick) add(ModelKind::kWideAndDeep, 16, true, 1);
  if (!quick) add(ModelKind::kWideAndDeep, 64, false, 1);
  if (!quick) add(ModelKind::kDcn, 16, false, 1);
  const auto add_mixed = [&](Job job) {
    job.name += "_mixed_bfloat16";
    job.work.bfloat16 = true;
    job.precision = MatmulPrecision::kHigh;  // the peer also uses AMX tiles
    out.push_back(std::move(job));
  };
  add_mixed(out[0]);
  if (!quick) add_mixed(out[2]);  // d64
  if (!quick && kernels::internal::may_use_tiles()) {
    std::vector<Job> in_tiles;
    for (const Job& job : out) {
      if (job.work.bfloat16) continue;
      in_tiles.push_back({.name = str(job.name, "_", name_of(MatmulPrecision::kHigh)),
                          .work = job.work,
                          .precision = MatmulPrecision::kHigh});
    }
    out.insert(out.end(), in_tiles.begin(), in_tiles.end());
  }
  return out;
}

// Returns the mean of the first losses, which depend on everything that a step computes.
template <class T>
double first_losses(T& trainer) {
  double sum = 0;
  for (int step = 0; step < kStepsToCompare; ++step) sum += trainer.train(step % kBatches);
  return sum / kStepsToCompare;
}

using Fields = std::vector<std::pair<std::string, double>>;

// Reports the phases of Keel's step: medians over profiled steps of the working time of the
// threads, in ms of all threads together. The remaining time is idle.
class OurSplit {
 public:
  explicit OurSplit(int threads) : threads_(threads) {}

  void step(ClickTrainer& trainer, int batch) {
    profile::start();
    trainer.train(batch);
    reports_.push_back(profile::stop());
  }

  Fields fields() const {
    Fields out;
    for (int p = 0; p < profile::kPhases; ++p) {
      const auto phase = static_cast<profile::Phase>(p);
      if (phase == profile::Phase::kInput || phase == profile::Phase::kWait) continue;
      out.emplace_back(std::string(profile::name_of(phase)) + "_ms",
                       1e3 / threads_ * of_all([&](const auto& r) { return r.seconds(phase); }));
    }
    out.emplace_back("idle_ms", 1e3 / threads_ * of_all([&](const auto& r) { return idle(r); }));
    out.emplace_back("framework_overhead", of_all([&](const profile::Report& r) {
                       const double kernels = r.kernel_seconds();
                       return (r.busy_seconds() - kernels + (threads_ == 1 ? idle(r) : 0)) /
                              kernels;
                     }));
    return out;
  }

  // The phases that take most of the time, in ms per step, summed over threads.
  void print(std::ostream& out) const {
    std::map<std::pair<profile::Phase, std::string>, std::vector<double>> rows;
    for (const profile::Report& report : reports_) {
      for (const profile::Row& row : report.rows) {
        rows[{row.phase, row.name}].push_back(row.seconds * 1e3);
      }
    }
    for (auto& [key, ms] : rows) {
      const double middle = median(ms);
      if (middle < 0.005) continue;
      out << "    " << std::left << std::setw(10) << profile::name_of(key.first) << std::setw(28)
          << key.second << std::right << std::fixed << std::setprecision(3) << std::setw(9)
          << middle << " ms\n";
    }
  }

 private:
  double idle(const profile::Report& r) const {
    return std::max(0.0, threads_ * r.wall_seconds - r.busy_seconds());
  }
  template <class Fn>
  double of_all(const Fn& fn) const {
    std::vector<double> values;
    for (const profile::Report& report : reports_) values.push_back(fn(report));
    return median(std::move(values));
  }

  const int threads_;
  std::vector<profile::Report> reports_;
};

// Reports the phases of the peer's step.
class PeerSplit {
 public:
  void step(ModelPeer& peer, int batch) {
    peer.train(batch);
    splits_.push_back(peer.last_split());
  }
  Fields fields() const {
    const auto of_all = [&](double StepSplit::* part) {
      std::vector<double> values;
      for (const StepSplit& split : splits_) values.push_back(split.*part * 1e3);
      return median(std::move(values));
    };
    return {{"peer_lookup_ms", of_all(&StepSplit::lookup)},
            {"peer_forward_ms", of_all(&StepSplit::forward)},
            {"peer_backward_ms", of_all(&StepSplit::backward)},
            {"peer_update_ms", of_all(&StepSplit::update)}};
  }

 private:
  std::vector<StepSplit> splits_;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), report_(options, "bench_train") {
    peak_gflops_ = peak_gflops(options.threads);
    peak_bfloat16_gflops_ = peak_bfloat16_gflops(options.threads);
    set_peer_threads(options.threads);
    if (kernels::internal::may_use_tiles()) {
      report_.note(str("matmul precision of float32: ", name_of(matmul_precision())));
    }
  }

  void run(const Job& job) {
    set_matmul_precision(job.precision);
    const auto batches = make_click_batches(job.work, kBatches, kSamples, 5);
    const auto ours = fastest<ClickTrainer>(replica_counts(), false, [&](int replicas) {
      return std::make_unique<ClickTrainer>(job.work, batches, ClickCores{.cores = replicas});
    });
    const std::unique_ptr<ModelPeer> peer = make_peer(job, batches, ours->values());
    if (peer != nullptr) {
      report_.check(job.name + ": loss", std::abs(first_losses(*ours) - peer_loss_) / peer_loss_,
                    job.work.bfloat16 ? kAllowedMixedLossDifference : kAllowedLossDifference);
    }
    std::vector<Contender> contenders = {{"ours", steps_of(*ours)}};
    if (peer != nullptr) contenders.push_back({"peer", steps_of(*peer)});
    const Comparison times =
        compare(contenders, {.seconds_per_slice = 0.1, .turns = options_.quick ? 5 : 15});
    add(job, *ours, peer.get(), times);
  }

  int finish() { return report_.finish(); }

 private:
  std::vector<int> replica_counts() const {
    // The choice that is usually the fastest: pieces that balance the threads, and no pieces
    // otherwise.
    if (options_.quick) return {options_.threads == 1 ? 1 : 2 * options_.threads};
    return {1, 2, 4, 8};
  }

  std::unique_ptr<ModelPeer> make_peer(const Job& job, const std::vector<ClickBatch>& batches,
                                       StartValues start) {
    auto peer = fastest<ModelPeer>(std::vector<bool>{true, false}, true, [&](bool joint) {
      joint_ = joint;
      auto made = make_model_peer({.work = job.work, .joint_table = joint}, batches, start);
      if (made != nullptr) peer_loss_ = first_losses(*made);
      return made;
    });
    return peer;
  }

  void add(const Job& job, ClickTrainer& ours, ModelPeer* peer, const Comparison& times) {
    const double samples_per_second = kSamples / times.timings[0].median;
    const bool halves = job.work.bfloat16 && peak_bfloat16_gflops_ > 0;
    const double limit =
        (halves ? peak_bfloat16_gflops_ : peak_gflops_) * 1e9 / training_flops(job.work);
    Result result = {.op = job.name,
                     .dim = job.work.dim,
                     .optimizer = job.work.adagrad ? "adagrad" : "sgd",
                     .threads = options_.threads,
                     .value = samples_per_second,
                     .unit = "samples/s",
                     .ratio_to_limit = samples_per_second / limit};
    result.more.emplace_back("replicas", ours.replicas());
    if (peer != nullptr) {
      result.ratio_to_libtorch = times.ratio(1, 0);
      result.more.emplace_back("peer_samples_per_s", kSamples / times.timings[1].median);
      result.labels.emplace_back("peer_variant", joint_ ? "joint table" : "table per column");
    }
    add_split(ours, peer, result);
    report_.add(result);
  }

  void add_split(ClickTrainer& ours, ModelPeer* peer, Result& result) {
    OurSplit split(options_.threads);
    PeerSplit of_peer;
    std::vector<Contender> contenders = {
        {"ours", [&, next = 0]() mutable { split.step(ours, next++ % kBatches); }}};
    if (peer != nullptr) {
      contenders.push_back(
          {"peer", [&, next = 0]() mutable { of_peer.step(*peer, next++ % kBatches); }});
    }
    compare(contenders, {.seconds_per_slice = 0.05, .turns = options_.quick ? 3 : 12});
    const Fields fields = split.fields();
    result.more.insert(result.more.end(), fields.begin(), fields.end());
    if (peer != nullptr) {
      const Fields peers = of_peer.fields();
      result.more.insert(result.more.end(), peers.begin(), peers.end());
    }
    if (!options_.json) split.print(std::cout);
  }

  const Options options_;
  Report report_;
  double peak_gflops_ = 0, peak_bfloat16_gflops_ = 0;
  bool joint_ = false;
  double peer_loss_ = 0;
};

int run(const Options& options) {
  Bench bench(options);
  for (const Job& job : all_jobs(options.quick)) {
    if (options.wants(job.name)) bench.run(job);
  }
  return bench.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_train", "Samples per second of training DLRM, Wide & Deep and DCN."));
}
