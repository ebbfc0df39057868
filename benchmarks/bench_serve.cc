// Serving of DLRM: the time of one call with 1, 32 or 256 samples.
//
// Keel runs a ServingPlan on the caller's memory; the call of the original model is measured as
// well. The peer has one table per column, or one joint table as an optimization. The reported
// ratio to libtorch is the ratio to one table per column; the other ratio is reported separately.
#include <algorithm>

#include <keel/layers/serving/serving_plan.h>

#include "benchmarks/models/click_model.h"
#include "benchmarks/peer/model_peer.h"
#include "benchmarks/peer/peer.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/limits.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamplesOfAll = 4096;  // in all batches together
constexpr int kLeastBatches = 16, kMostBatches = 512;

// One batch in the form that Keel takes.
struct Request {
  Tensors features;
  std::vector<TensorView> views;
};

// The plan and the peers on the same batches. Each contender cycles through all batches.
class Server {
 public:
  Server(const ClickWork& work, const ClickModel& model, const ServingPlan& plan,
         const StartValues& start, int64_t samples)
      : model_(model), plan_(plan), scores_(samples) {
    const auto count =
        static_cast<int>(std::clamp<int64_t>(kSamplesOfAll / samples, kLeastBatches, kMostBatches));
    const auto batches = make_click_batches(work, count, samples, 7);
    for (const ClickBatch& batch : batches) {
      Request& request = requests_.emplace_back();
      request.features = click_tensors(work, batch, 0, samples)[0];
      for_each_leaf(request.features, [&](const std::string&, const TensorLike& leaf) {
        request.views.push_back(view_of(leaf));
      });
    }
    for (bool joint : {false, true}) {
      peers_.push_back(
          make_model_peer({.work = work, .joint_table = joint, .training = false}, batches, start));
    }
  }

  // "plan", "model", "tables" and "joint"; the last two exist only with a peer.
  std::vector<Contender> contenders() {
    std::vector<Contender> out = {
        {"plan", turns([this](int i) { run_plan(i); })},
        {"model", turns([this](int i) { model_.model(requests_[i].features); })}};
    if (peers_[0] == nullptr) return out;
    out.push_back({"tables", turns([this](int i) { peers_[0]->predict(i); })});
    out.push_back({"joint", turns([this](int i) { peers_[1]->predict(i); })});
    return out;
  }

  // The difference between the plan's scores of the first batch and those of the model or a peer.
  double largest_difference() {
    run_plan(0);
    const auto count = static_cast<int64_t>(scores_.size());
    const Tensor ours = model_.model(requests_[0].features).tensor();
    double most = relative_difference(scores_.data(), ours.data<float>().data(), count);
    for (const auto& peer : peers_) {
      if (peer == nullptr) continue;
      most = std::max(most, relative_difference(scores_.data(), peer->predict(0).data(), count));
    }
    return most;
  }

 private:
  template <class Fn>
  std::function<void()> turns(Fn fn) {
    return
        [this, fn, next = size_t{0}]() mutable { fn(static_cast<int>(next++ % requests_.size())); };
  }
  void run_plan(int request) {
    const std::span<float> out = scores_;
    plan_.run(requests_[request].views, {&out, 1});
  }

  const ClickModel& model_;
  const ServingPlan& plan_;
  std::vector<float> scores_;
  std::vector<Request> requests_;
  std::vector<std::unique_ptr<ModelPeer>> peers_;
};

Result result_of(const Options& options, const std::string& name, const ClickWork& work,
                 const Comparison& compared) {
  const std::vector<Timing>& times = compared.timings;
  const auto micros = [](double seconds) { return seconds * 1e6; };
  Result out = {.op = name,
                .dim = work.dim,
                .threads = options.threads,
                .value = micros(times[0].median),
                .unit = "us p50",
                .more = {{"p99_us", micros(times[0].p99)},
                         {"p999_us", micros(times[0].p999)},
                         {"p99_to_p50", times[0].p99 / times[0].median},
                         {"model_call_p50_us", micros(times[1].median)},
                         {"model_call_p99_us", micros(times[1].p99)}}};
  if (times.size() == 2) return out;
  out.labels.emplace_back("peer_variant", "table per column");
  out.ratio_to_libtorch = compared.ratio(2, 0);
  const std::vector<std::pair<std::string, double>> of_peers = {
      {"ratio_to_libtorch_joint_table", compared.ratio(3, 0)},
      {"libtorch_table_per_column_p50_us", micros(times[2].median)},
      {"libtorch_table_per_column_p99_us", micros(times[2].p99)},
      {"libtorch_joint_table_p50_us", micros(times[3].median)},
      {"libtorch_joint_table_p99_us", micros(times[3].p99)}};
  out.more.insert(out.more.begin(), of_peers.begin(), of_peers.end());
  return out;
}

int run(const Options& options) {
  Report report(options, "bench_serve");
  set_peer_threads(options.threads);
  const double peak = peak_gflops(options.threads) * 1e9;
  for (int64_t dim : {16, 64}) {
    if (options.quick && dim == 64) continue;
    const ClickWork work = {.dim = dim, .rows = criteo_table_sizes()};
    const ClickModel model = make_click_model(work, ClickOutput::kProbabilities);
    const StartValues start = start_values(model);
    const ServingPlan plan(model.model);
    for (int64_t samples : {1, 32, 256}) {
      const std::string name =
          "dlrm_serve_d" + std::to_string(dim) + "_batch" + std::to_string(samples);
      if (!options.wants(name)) continue;
      Server server(work, model, plan, start, samples);
      report.check(name + ": scores", server.largest_difference());
      const int calls = options.quick ? 1000 : samples == 256 ? 3000 : 10000;
      Result result = result_of(options, name, work, latencies(server.contenders(), calls));
      // With one sample, nearly all time is spent on reading the weights.
      if (samples > 1) {
        result.ratio_to_limit =
            forward_flops(work) * static_cast<double>(samples) / peak / (result.value * 1e-6);
      }
      report.add(result);
    }
  }
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_serve",
      "Time of a call of DLRM for 1, 32 and 256 samples: p50, p99, p99.9. The ratio to libtorch is "
      "that to\na model with one table per column; ratio_to_libtorch_joint_table is that to one "
      "with all columns\nin a joint table."));
}
