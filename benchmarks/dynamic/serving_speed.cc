#include "benchmarks/dynamic/serving_speed.h"

#include <algorithm>
#include <numeric>

#include <keel/layers/serving/serving_plan.h>

#include "benchmarks/models/click_model.h"
#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"

namespace keel::bench {
namespace {

constexpr int64_t kSamplesOfAll = 4096;  // in all batches together
constexpr int kLeastBatches = 16, kMostBatches = 512;

// Gives the tables for unbounded ids the rows of the static tables: row i becomes that of id i.
void copy_rows(const ClickModel& from, const ClickModel& to) {
  const auto rows = from.embedding->embedding_tables();
  const auto tables = to.embedding->embedding_tables();
  for (size_t t = 0; t < rows.size(); ++t) {
    const Tensor& values = rows[t].second;
    std::vector<int64_t> keys(values.dim(0));
    std::iota(keys.begin(), keys.end(), 0);
    to.embedding->dynamic_table(tables[t].first)
        .assign_rows(Tensor::from(keys, {std::ssize(keys)}), values);
  }
}

// A plan, and the scores of its last call.
class Server {
 public:
  Server(const ClickModel& model, const ClickWork& work, const std::vector<ClickBatch>& batches)
      : plan_(model.model), scores_(batches.at(0).samples) {
    for (const ClickBatch& batch : batches) {
      features_.push_back(click_tensors(work, batch, 0, batch.samples)[0]);
      std::vector<TensorView>& views = requests_.emplace_back();
      for_each_leaf(features_.back(), [&](const std::string&, const TensorLike& leaf) {
        views.push_back(view_of(leaf));
      });
    }
  }

  void run() {
    const std::span<float> out = scores_;
    plan_.run(requests_[next_++ % requests_.size()], {&out, 1});
  }
  const std::vector<float>& scores() const { return scores_; }

 private:
  const ServingPlan plan_;
  std::vector<float> scores_;
  std::vector<Tensors> features_;
  std::vector<std::vector<TensorView>> requests_;
  size_t next_ = 0;
};

}  // namespace

void measure_serving(const Options& options, Report& report) {
  if (!options.wants("serve, batch 1") && !options.wants("serve, batch 256")) return;
  const ClickWork work = {.dim = 16,
                          .rows = criteo_table_sizes(options.quick ? 10'000 : 1'000'000)};
  ClickWork keyed = work;
  keyed.dynamic = DynamicVocabulary{};
  const ClickModel fixed = make_click_model(work, ClickOutput::kProbabilities);
  const ClickModel dynamic = make_click_model(keyed, ClickOutput::kProbabilities);
  for (size_t i = 0; i < fixed.dense.size(); ++i) dynamic.dense[i].assign(fixed.dense[i].read());
  copy_rows(fixed, dynamic);
  for (const int64_t samples : {int64_t{1}, int64_t{256}}) {
    const std::string name = "serve, batch " + std::to_string(samples);
    if (!options.wants(name)) continue;
    const auto count =
        static_cast<int>(std::clamp<int64_t>(kSamplesOfAll / samples, kLeastBatches, kMostBatches));
    const auto batches = make_click_batches(work, count, samples, 7);
    Server with_dynamic(dynamic, work, batches), with_static(fixed, work, batches);
    with_dynamic.run();
    with_static.run();
    report.check(name + ": scores", relative_difference(with_dynamic.scores().data(),
                                                        with_static.scores().data(), samples));
    const Comparison result = latencies({{.name = "dynamic", .run = [&] { with_dynamic.run(); }},
                                         {.name = "static", .run = [&] { with_static.run(); }}},
                                        options.quick    ? 1000
                                        : samples == 256 ? 3000
                                                         : 10000);
    report.add({.op = name,
                .dim = work.dim,
                .threads = options.threads,
                .value = result.ratio(0, 1),
                .unit = "times static",
                .more = {{"dynamic_us", 1e6 * result.timings[0].median},
                         {"static_us", 1e6 * result.timings[1].median},
                         {"dynamic_p99_us", 1e6 * result.timings[0].p99},
                         {"static_p99_us", 1e6 * result.timings[1].p99}}});
  }
}

}  // namespace keel::bench
