#include <keel/layers/metrics/ranking.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/replica_context.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/metrics/accuracy.h>

namespace keel {
namespace internal {

// An item of a list.
struct RankedItem {
  float score = 0;
  double label = 0, weight = 1;
  int64_t position = 0;  // position in the list
};

// The items of one list that count, in ranked order.
struct RankedList {
  std::span<const RankedItem> all, top;  // the first k items
  double weight = 0;                     // weight of the list, > 0
};

}  // namespace internal

namespace {

using internal::RankedItem;
using internal::RankedList;

// Indices of the state: the sum of weighted values and the sum of weights of lists with a relevant
// item, the number of these lists, the number of lists without one, and the number of all lists.
enum Sum { kValue, kWeight, kRelevant, kIrrelevant, kLists, kSums };

RankingMetricOptions checked(const char* caller, RankingMetricOptions options) {
  if (options.k) internal::check_k(caller, *options.k);
  if (options.name.empty()) options.name = to_snake_case(caller);
  return options;
}

// Returns true if the mask, which is per item or per list, excludes item i.
bool is_masked(const Tensor& mask, int64_t i, int64_t items) {
  if (!mask) return false;
  return !mask.data<bool>()[i / (items / mask.size())];
}

bool is_relevant(double label) { return label >= 1; }

constexpr char kDefaultGain[] = "default_gain_fn";
constexpr char kDefaultDiscount[] = "default_rank_discount_fn";

RankingMetricOptions ranking_options(const DCGMetricOptions& options) {
  return {.name = options.name,
          .dtype = options.dtype,
          .k = options.k,
          .shuffle_ties = options.shuffle_ties,
          .seed = options.seed};
}

}  // namespace

RankingMetric::RankingMetric(const char* class_name, Options options)
    : Metric(class_name, checked(class_name, options), kSums),
      options_(checked(class_name, std::move(options))),
      random_(options_.shuffle_ties ? next_random_stream(options_.seed) : RandomStream{}) {}

double RankingMetric::relevance(const RankedItem& item) const {
  return is_relevant(item.label) ? 1 : 0;
}

std::span<const RankedItem> RankingMetric::first_k(std::span<const RankedItem> items) const {
  const auto k = static_cast<size_t>(options_.k.value_or(std::ssize(items)));
  return items.first(std::min(k, items.size()));
}

void RankingMetric::rank(std::vector<RankedItem>& items, int64_t number) const {
  const auto greater = [](const RankedItem& a, const RankedItem& b) { return a.score > b.score; };
  std::ranges::stable_sort(items, greater);
  if (!options_.shuffle_ties) return;
  const ReplicaContext* context = current_replica_context();
  const uint64_t replica = context == nullptr ? 0 : context->replica;
  // The key depends on the list's number, not on the batch, so ties are broken the same way however
  // the lists are batched.
  const auto key = [&](const RankedItem& item) {
    const uint64_t index = static_cast<uint64_t>(number) << 32 | item.position;
    return std::pair(random_.bits(index, replica)[0], item.position);
  };
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end = std::ranges::find_if(
        begin, items.end(), [&](const RankedItem& item) { return item.score != begin->score; });
    if (end - begin > 1) std::ranges::sort(begin, end, {}, key);
    begin = end;
  }
}

void RankingMetric::add_list(std::span<const RankedItem> ranked, std::span<double> state) const {
  double relevant = 0, weighted = 0;
  for (const RankedItem& item : ranked) {
    const double r = relevance(item);
    relevant += r;
    weighted += item.weight * r;
  }
  if (ranked.empty()) return;
  if (relevant == 0) {
    ++state[kIrrelevant];
    return;
  }
  const double weight = weighted / relevant;
  state[kValue] += weight * value({.all = ranked, .top = first_k(ranked), .weight = weight});
  state[kWeight] += weight;
  ++state[kRelevant];
}

void RankingMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const Tensor& scores = batch.y_pred;
  if (scores.rank() > 2 || batch.y_true.shape() != scores.shape()) {
    throw ValueError(name(),
                     ": labels and predictions must have the same shape, [batch, items] or ",
                     "[items], received ", batch.y_true.shape(), " and ", scores.shape());
  }
  const Tensor labels = batch.y_true.cast(DType::kFloat64);
  const Tensor mask = batch.y_true.mask();
  const int64_t size = scores.size();
  const int64_t items = scores.dim(-1);
  const auto weights = batch.weights_of(size);
  const auto seen = std::llround(batch.before[kLists]);
  std::vector<RankedItem> list;
  for (int64_t begin = 0; begin < size; begin += items) {
    list.clear();
    for (int64_t i = begin; i < begin + items; ++i) {
      const RankedItem item = {.score = scores.data<float>()[i],
                               .label = labels.data<double>()[i],
                               .weight = weights[i],
                               .position = i - begin};
      if (item.label >= 0 && item.weight > 0 && !is_masked(mask, i, size)) list.push_back(item);
    }
    rank(list, seen + begin / items);
    add_list(list, state);
  }
  if (items == 0) return;
  const int64_t lists = size / items;
  state[kLists] += static_cast<double>(lists);
}

Tensor RankingMetric::compute(std::span<const double> state) const {
  const double mean_weight = state[kRelevant] > 0 ? state[kWeight] / state[kRelevant] : 1;
  const double weights = state[kWeight] + state[kIrrelevant] * mean_weight;
  return Tensor::scalar(weights > 0 ? state[kValue] / weights : 0.0);
}

double internal::reciprocal_rank(const RankedList& list) {
  const auto first = std::ranges::find_if(
      list.top, [](const RankedItem& item) { return is_relevant(item.label); });
  return first == list.top.end() ? 0 : 1 / static_cast<double>(first - list.top.begin() + 1);
}

double internal::precision_at_k(const RankedList& list) {
  const auto hits = std::ranges::count_if(
      list.top, [](const RankedItem& item) { return is_relevant(item.label); });
  return static_cast<double>(hits) / static_cast<double>(list.top.size());
}

double internal::recall_at_k(const RankedList& list) {
  const auto hit = [](const RankedItem& item) { return is_relevant(item.label); };
  return static_cast<double>(std::ranges::count_if(list.top, hit)) /
         static_cast<double>(std::ranges::count_if(list.all, hit));
}

double internal::average_precision(const RankedList& list) {
  double hits = 0, rank = 0, sum = 0, total = 0;
  for (const RankedItem& item : list.top) {
    ++rank;
    if (is_relevant(item.label)) sum += item.weight * ++hits / rank;
  }
  for (const RankedItem& item : list.all) {
    if (is_relevant(item.label)) total += item.weight;
  }
  return sum / total;
}

NamedFunction default_gain_fn() {
  return {kDefaultGain, [](double label) { return math::exp2(label) - 1; }};
}

NamedFunction default_rank_discount_fn() {
  return {kDefaultDiscount, [](double rank) { return 1 / math::log2(rank + 1); }};
}

Config encode(const NamedFunction& function) { return function.name(); }

void decode(const Config& config, NamedFunction& function) {
  if (config.is_null()) return;
  // Keras writes {"class_name": "function", "config": "Package>name"}.
  std::string name = config.is_dict() ? config["config"].string() : config.string();
  name.erase(0, name.rfind('>') + 1);
  if (name == kDefaultGain) {
    function = default_gain_fn();
  } else if (name == kDefaultDiscount) {
    function = default_rank_discount_fn();
  } else {
    throw ValueError(
        "ranking metric: function '", name,
        "' cannot be looked up by name; construct the metric in C++ and pass the function");
  }
}

DCGMetric::DCGMetric(const char* class_name, Options options)
    : RankingMetric(class_name, ranking_options(options)), gains_(std::move(options)) {}

// Omits the default functions of keras_rs, because its constructor cannot read their names.
Config DCGMetric::get_config() const {
  Config out = RankingMetric::get_config();
  for (const NamedFunction* function : {&gains_.gain_fn, &gains_.rank_discount_fn}) {
    const bool is_gain = function == &gains_.gain_fn;
    if (function->name() == (is_gain ? kDefaultGain : kDefaultDiscount)) continue;
    out.set(is_gain ? "gain_fn" : "rank_discount_fn", encode(*function));
  }
  return out;
}

double DCGMetric::relevance(const RankedItem& item) const { return gains_.gain_fn(item.label); }

double DCGMetric::discounted_gains(std::span<const RankedItem> items) const {
  double sum = 0, rank = 0;
  for (const RankedItem& item : items) {
    sum += item.weight * gains_.gain_fn(item.label) * gains_.rank_discount_fn(++rank);
  }
  return sum;
}

double DCGMetric::value(const RankedList& list) const {
  return discounted_gains(list.top) / list.weight;
}

double NDCGMetric::value(const RankedList& list) const {
  std::vector<RankedItem> ideal(list.all.begin(), list.all.end());
  std::ranges::stable_sort(ideal, std::ranges::greater(), [this](const RankedItem& item) {
    return item.weight * relevance(item);
  });
  return discounted_gains(list.top) / discounted_gains(first_k(ideal));
}

KEEL_REGISTER_ALL(Metric, ranking_metrics) {
  registry.add_all<DCGMetric, MeanAveragePrecisionMetric, MeanReciprocalRankMetric, NDCGMetric,
                   PrecisionAtKMetric, RecallAtKMetric>({.package = "keras_rs"});
}

}  // namespace keel
