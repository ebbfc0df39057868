#include <keel/distribute/embedding/internal/batch_prefetcher.h>

#include <algorithm>
#include <utility>

#include <keel/distribute/internal/placement.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/update_rule.h>

namespace keel::distribute {
namespace {

constexpr size_t kMostQueued = 2;  // prefetched batches
// Prefetched pooling of a table with too much to patch is tried again after this many batches.
constexpr int64_t kBatchesBetweenTries = 16;

// Patching more than one sample in this many would cost what pooling in advance saves if no
// processor is idle.
constexpr int64_t kSamplesPerPatch = 4;
// The number of changed rows per position up to which recording them takes less time than pooling.
constexpr int64_t kMostChangedPerPosition = 2;

bool is_same(const Tensor& a, const Tensor& b) {
  if (!a || !b) return !a && !b;
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (a.dtype() == DType::kString) {
    return a.data<std::string>().data() == b.data<std::string>().data();
  }
  return a.raw().data() == b.raw().data();
}

bool is_same(const std::vector<FeatureBatch>& a, const std::vector<FeatureBatch>& b) {
  return std::ranges::equal(a, b, [](const FeatureBatch& x, const FeatureBatch& y) {
    return is_same(x.ids, y.ids) && is_same(x.row_splits, y.row_splits) &&
           is_same(x.weights, y.weights);
  });
}

}  // namespace

BatchPrefetcher::BatchPrefetcher(const EngineTables& tables, const RowUpdater& updater,
                                 GroupBuffers& buffers)
    : tables_(tables),
      updater_(updater),
      buffers_(buffers),
      patches_(tables.size()),
      pools_ahead_(tables.size(), 1) {}

void BatchPrefetcher::add(std::vector<FeatureBatch> features) {
  if (queue_.size() == kMostQueued) drop_first();
  queue_.push_back(std::make_shared<Batch>(Batch{.features = std::move(features)}));
}

void BatchPrefetcher::drop_first() {
  worker_.leave_out(0);
  buffers_.put(queue_.front()->groups);
  queue_.erase(queue_.begin());
}

void BatchPrefetcher::drop_all() {
  while (!queue_.empty()) drop_first();
}

void BatchPrefetcher::stop_pooling() {
  if (!queue_.empty() && queue_.front()->begun) {
    worker_.leave_out(queue_.front()->tables_to_group.size());
  }
}

void BatchPrefetcher::start(Communicator& communicator) {
  if (queue_.empty() || queue_.front()->begun) return;
  communicator.wait_for_arrivals();  // until the rows to be pooled are written
  const std::shared_ptr<Batch> p = queue_.front();
  p->begun = true;
  p->updates_seen = updater_.updates_done();
  p->groups = buffers_.take();
  p->groups.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    // Ids of other tables are looked up when the updates before them have admitted and evicted ids.
    if (tables_.is_updated(t) && tables_.keyed(t) == nullptr)
      p->tables_to_group.push_back(static_cast<int>(t));
  }
  p->values.resize(p->features.size());
  p->pooled.assign(p->features.size(), 0);
  for (size_t f = 0; f < p->features.size(); ++f) {
    const size_t t = tables_.table_of(f);
    if (communicator.placement().processes() > 1 || tables_[t].quantization ||
        pools_ahead_[t] == 0 || tables_.keyed(t) != nullptr) {
      continue;
    }
    // Allocated in this thread, which also frees it: the allocator reuses memory per thread.
    p->values[f] = Tensor::uninitialized({bags_of(p->features[f]).samples, tables_.dims()[t]},
                                         DType::kFloat32);
    p->features_to_pool.push_back(f);
  }
  const size_t groups = p->tables_to_group.size();
  worker_.start(groups + p->features_to_pool.size(), [this, p, groups](size_t piece) {
    if (piece < groups) {
      group_ids(*p, p->tables_to_group[piece]);
    } else {
      pool(*p, p->features_to_pool[piece - groups]);
    }
  });
}

void BatchPrefetcher::group_ids(Batch& batch, size_t table) const {
  const profile::Scope scope(profile::Phase::kUpdate, "group ids (prefetch)");
  tables_.group_ids(batch.features, table, batch.groups[table]);
}

void BatchPrefetcher::pool(Batch& batch, size_t feature) const {
  const profile::Scope scope(profile::Phase::kLookup, "pool rows (prefetch)");
  const size_t t = tables_.table_of(feature);
  tables_.shard(t).look_up(bags_of(batch.features[feature]), tables_[t].combiner,
                           batch.values[feature].mutable_data<float>().data());
  batch.pooled[feature] = 1;
}

std::shared_ptr<BatchPrefetcher::Batch> BatchPrefetcher::take(
    const std::vector<FeatureBatch>& features) {
  const auto found =
      std::ranges::find_if(queue_, [&](const auto& p) { return is_same(p->features, features); });
  if (found == queue_.end()) return nullptr;
  const auto before = found - queue_.begin();
  for (auto i = before; i > 0; --i) drop_first();
  std::shared_ptr<Batch> out = queue_.front();
  queue_.erase(queue_.begin());
  if (!out->begun) return nullptr;
  const profile::Scope scope(profile::Phase::kLookup, "finish prefetch");
  worker_.finish();
  return out;
}

std::vector<Tensor> BatchPrefetcher::take_values(const Communicator& communicator, Batch& batch) {
  const profile::Scope scope(profile::Phase::kLookup, "patch");
  const int64_t updates = updater_.updates_done() - batch.updates_seen;
  if (updates == 0) {
    std::ranges::fill(pools_ahead_, 1);
  } else if (updates > 1 || communicator.placement().processes() > 1) {
    std::ranges::fill(batch.pooled, 0);
  } else {
    const bool tries_all = ++patched_ % kBatchesBetweenTries == 0;
    parallel_for(static_cast<int64_t>(tables_.size()), 1, [&](int64_t first, int64_t end) {
      for (int64_t t = first; t < end; ++t) {
        if (tables_.is_updated(t) && tables_.keyed(t) == nullptr)
          patch_table(communicator, batch, t, tries_all);
      }
    });
  }
  for (size_t f = 0; f < batch.values.size(); ++f) {
    if (batch.pooled[f] == 0) batch.values[f] = Tensor();
  }
  return std::move(batch.values);
}

// Pools again the samples of a table that the update since has changed, or leaves its features to
// the lookup by clearing `pooled`.
void BatchPrefetcher::patch_table(const Communicator& communicator, Batch& batch, size_t table,
                                  bool tries) {
  const std::vector<int> features = tables_.features_of(table);
  const bool is_pooled = std::ranges::any_of(features, [&](int f) { return batch.pooled[f] != 0; });
  if (!is_pooled && pools_ahead_[table] == 0 && !tries) return;
  int64_t samples = 0;
  for (const int f : features) samples += bags_of(batch.features[f]).samples;
  Patch& patch = patches_[table];
  std::optional<int64_t> flagged;
  if (tables_[table].update.lazy) flagged = flag_changed(communicator, batch, table, patch);
  const bool few = flagged && kSamplesPerPatch * *flagged <= samples;
  pools_ahead_[table] = few ? 1 : 0;
  int64_t first_sample = 0;
  for (const int f : features) {
    if (!few) batch.pooled[f] = 0;
    if (batch.pooled[f] != 0) pool_flagged(batch, f, first_sample, patch);
    first_sample += bags_of(batch.features[f]).samples;
  }
}

// Flags the samples of a table with a row that the last update has changed, and a few others (see
// BloomFilter). Returns their number, or nothing if checking costs more than it would save.
std::optional<int64_t> BatchPrefetcher::flag_changed(const Communicator& communicator,
                                                     const Batch& batch, size_t table,
                                                     Patch& patch) const {
  std::vector<kernels::Bags> bags;
  int64_t positions = 0, samples = 0;
  for (const int f : tables_.features_of(table)) {
    bags.push_back(bags_of(batch.features[f]));
    positions += bags.back().positions();
    samples += bags.back().samples;
  }
  const int64_t changed = updater_.changed_rows(table, communicator);
  if (changed > kMostChangedPerPosition * positions) return {};
  BloomFilter& filter = patch.changed;
  filter.start(changed, tables_[table].rows);
  updater_.for_each_changed_row(table, communicator, [&](int64_t row) { filter.add(row); });
  patch.flags.resize(samples);
  char* flag = patch.flags.data();
  int64_t flagged = 0;
  for (const kernels::Bags& b : bags) {
    for (int64_t i = 0; i < b.samples; ++i) {
      bool any = false;
      if (b.splits == nullptr) {
        any = filter.may_hold(b.ids[i]);
      } else {
        for (int64_t at = b.splits[i]; at < b.splits[i + 1]; ++at)
          any |= filter.may_hold(b.ids[at]);
      }
      *flag++ = any ? 1 : 0;
      flagged += any ? 1 : 0;
    }
  }
  return flagged;
}

// Pools whole samples, as a lookup does. Subtracting a row's old value from a sum and adding the
// new one would round differently.
void BatchPrefetcher::pool_flagged(Batch& batch, size_t feature, int64_t first_sample,
                                   Patch& patch) const {
  const kernels::Bags bags = bags_of(batch.features[feature]);
  patch.samples.clear();
  for (int64_t i = 0; i < bags.samples; ++i) {
    if (patch.flags[first_sample + i] != 0) patch.samples.push_back(i);
  }
  if (patch.samples.empty()) return;
  patch.ids.clear();
  patch.weights.clear();
  patch.splits.assign(1, 0);
  for (const int64_t i : patch.samples) {
    const int64_t begin = bags.splits == nullptr ? i : bags.splits[i];
    const int64_t end = bags.splits == nullptr ? i + 1 : bags.splits[i + 1];
    patch.ids.insert(patch.ids.end(), bags.ids + begin, bags.ids + end);
    if (bags.weights != nullptr) {
      patch.weights.insert(patch.weights.end(), bags.weights + begin, bags.weights + end);
    }
    patch.splits.push_back(std::ssize(patch.ids));
  }
  const size_t t = tables_.table_of(feature);
  const int64_t dim = tables_.dims()[t];
  patch.values.resize(patch.samples.size() * dim);
  tables_.shard(t).look_up({.ids = patch.ids.data(),
                            .splits = bags.splits == nullptr ? nullptr : patch.splits.data(),
                            .samples = std::ssize(patch.samples),
                            .weights = bags.weights == nullptr ? nullptr : patch.weights.data()},
                           tables_[t].combiner, patch.values.data());
  float* const out = batch.values[feature].mutable_data<float>().data();
  for (size_t i = 0; i < patch.samples.size(); ++i) {
    std::copy_n(patch.values.data() + i * dim, dim, out + patch.samples[i] * dim);
  }
}

}  // namespace keel::distribute
