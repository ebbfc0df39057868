#include <algorithm>
#include <utility>

#include <keel/distribute/embedding/engine_internal.h>
#include <keel/distribute/embedding/internal/bloom_filter.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>

namespace keel::distribute {
namespace {

constexpr size_t kMostAhead = 2;        // prefetched batches
constexpr size_t kMostSpareGroups = 3;  // batches: prefetched, looked up, and pending update
// Prefetched pooling of a table with too much to patch is tried again after this many batches.
constexpr int64_t kBatchesBetweenTries = 16;

// Patching more than one sample in this many would cost what pooling in advance saves if no
// processor is idle.
constexpr int64_t kSamplesPerPatch = 4;
// The number of changed rows per position up to which recording them takes less time than pooling.
constexpr int64_t kMostMovedPerPosition = 2;

bool is_same(const Tensor& a, const Tensor& b) {
  if (!a || !b) return !a && !b;
  return a.raw().data() == b.raw().data() && a.shape() == b.shape() && a.dtype() == b.dtype();
}

bool is_same(const std::vector<FeatureBatch>& a, const std::vector<FeatureBatch>& b) {
  return std::ranges::equal(a, b, [](const FeatureBatch& x, const FeatureBatch& y) {
    return is_same(x.ids, y.ids) && is_same(x.row_splits, y.row_splits) &&
           is_same(x.weights, y.weights);
  });
}

}  // namespace

void EmbeddingEngine::State::Scratch::keep_memory(std::vector<kernels::RowGroups>& groups) {
  if (!groups.empty() && spare_groups.size() < kMostSpareGroups) {
    spare_groups.push_back(std::move(groups));
  }
  groups.clear();
}

// Returns the memory of groups that are no longer used, if there are any.
std::vector<kernels::RowGroups> EmbeddingEngine::State::Scratch::memory_of_groups() {
  if (spare_groups.empty()) return {};
  std::vector<kernels::RowGroups> out = std::move(spare_groups.back());
  spare_groups.pop_back();
  return out;
}

void EmbeddingEngine::State::Scratch::drop_first() {
  worker.leave_out(0);
  keep_memory(ahead.front()->groups);
  ahead.erase(ahead.begin());
}

void EmbeddingEngine::State::Scratch::drop_all() {
  while (!ahead.empty()) drop_first();
}

// Called before rows are written. Features that are not pooled yet are skipped, because they would
// have to be pooled again after the update.
void EmbeddingEngine::State::Scratch::stop_pooling_ahead() {
  if (!ahead.empty() && ahead.front()->begun) {
    worker.leave_out(ahead.front()->tables_to_group.size());
  }
}

std::vector<int> EmbeddingEngine::State::features_of(size_t table) const {
  std::vector<int> out;
  for (size_t f = 0; f < configuration.features.size(); ++f) {
    if (table_of(f) == static_cast<int>(table)) out.push_back(static_cast<int>(f));
  }
  return out;
}

// Starts the background work on the first prefetched batch.
void EmbeddingEngine::State::begin_first(Communicator& communicator, Scratch& s) const {
  if (s.ahead.empty() || s.ahead.front()->begun) return;
  communicator.wait_for_arrivals();  // until the rows to be pooled are written
  const std::shared_ptr<Prepared> p = s.ahead.front();
  p->begun = true;
  p->updates_seen = s.updates_done;
  p->groups = s.memory_of_groups();
  p->groups.resize(tables().size());
  for (size_t t = 0; t < tables().size(); ++t) {
    if (tables()[t].update.rule != nullptr) p->tables_to_group.push_back(static_cast<int>(t));
  }
  p->values.resize(p->features.size());
  p->pooled.assign(p->features.size(), 0);
  for (size_t f = 0; f < p->features.size(); ++f) {
    const size_t t = table_of(f);
    if (communicator.placement().processes() > 1 || tables()[t].quantization ||
        s.pools_ahead[t] == 0) {
      continue;
    }
    // Allocated in this thread, which also frees it: the allocator reuses memory per thread.
    p->values[f] =
        Tensor::uninitialized({bags_of(p->features[f]).samples, dims[t]}, DType::kFloat32);
    p->features_to_pool.push_back(f);
  }
  const size_t groups = p->tables_to_group.size();
  s.worker.start(groups + p->features_to_pool.size(), [this, p, groups](size_t piece) {
    if (piece < groups) {
      group_ahead(*p, p->tables_to_group[piece]);
    } else {
      pool_ahead(*p, p->features_to_pool[piece - groups]);
    }
  });
}

void EmbeddingEngine::State::group_ahead(Prepared& p, size_t table) const {
  const profile::Scope scope(profile::Phase::kUpdate, "group ids (prefetch)");
  group(p.features, table, p.groups[table]);
}

void EmbeddingEngine::State::pool_ahead(Prepared& p, size_t feature) const {
  const profile::Scope scope(profile::Phase::kLookup, "pool rows (prefetch)");
  const size_t t = table_of(feature);
  held[t].look_up(bags_of(p.features[feature]), tables()[t].combiner,
                  p.values[feature].mutable_data<float>().data());
  p.pooled[feature] = 1;
}

// Returns the prepared batch with these features, or null if there is none. Batches announced
// before it are dropped, since lookups have the order of the announcements.
std::shared_ptr<EmbeddingEngine::State::Prepared> EmbeddingEngine::State::take_prepared(
    const std::vector<FeatureBatch>& features, Scratch& s) const {
  const auto found =
      std::ranges::find_if(s.ahead, [&](const auto& p) { return is_same(p->features, features); });
  if (found == s.ahead.end()) return nullptr;
  const auto before = found - s.ahead.begin();
  for (auto i = before; i > 0; --i) s.drop_first();
  std::shared_ptr<Prepared> out = s.ahead.front();
  s.ahead.erase(s.ahead.begin());
  if (!out->begun) return nullptr;
  const profile::Scope scope(profile::Phase::kLookup, "finish prefetch");
  s.worker.finish();
  return out;
}

// Pools again the samples that the update since has changed, or leaves features to the caller by
// clearing `pooled`.
void EmbeddingEngine::State::refresh(const Communicator& communicator, Prepared& p,
                                     Scratch& s) const {
  const profile::Scope scope(profile::Phase::kLookup, "patch");
  const int64_t updates = s.updates_done - p.updates_seen;
  if (updates == 0) {
    std::ranges::fill(s.pools_ahead, 1);
    return;
  }
  if (updates > 1 || communicator.placement().processes() > 1) {
    std::ranges::fill(p.pooled, 0);
    return;
  }
  const bool tries_all = ++s.patched % kBatchesBetweenTries == 0;
  parallel_for(std::ssize(tables()), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) {
      if (tables()[t].update.rule == nullptr) continue;
      const std::vector<int> features = features_of(t);
      const bool is_pooled = std::ranges::any_of(features, [&](int f) { return p.pooled[f] != 0; });
      if (!is_pooled && s.pools_ahead[t] == 0 && !tries_all) continue;
      int64_t samples = 0;
      for (const int f : features) samples += bags_of(p.features[f]).samples;
      std::optional<int64_t> flagged;
      if (tables()[t].update.lazy) flagged = flag_moved(communicator, p, s, t, s.patches[t]);
      const bool few = flagged && kSamplesPerPatch * *flagged <= samples;
      s.pools_ahead[t] = few ? 1 : 0;
      int64_t first_sample = 0;
      for (const int f : features) {
        if (!few) p.pooled[f] = 0;
        if (p.pooled[f] != 0) pool_flagged(p, f, first_sample, s.patches[t]);
        first_sample += bags_of(p.features[f]).samples;
      }
    }
  });
}

// Flags the samples of a table with a row that the last update has changed, and a few others (see
// BloomFilter). Returns their number, or nothing if checking costs more than it would save.
std::optional<int64_t> EmbeddingEngine::State::flag_moved(const Communicator& communicator,
                                                          const Prepared& p, const Scratch& s,
                                                          size_t table, Patch& patch) const {
  std::vector<kernels::Bags> bags;
  int64_t positions = 0, samples = 0, moved = 0;
  for (const int f : features_of(table)) {
    bags.push_back(bags_of(p.features[f]));
    positions += bags.back().positions();
    samples += bags.back().samples;
  }
  const kernels::RowGroups& own = s.gradients[table].groups();
  const bool only_own = steps_as_it_sums(table, communicator);
  const std::vector<RowGradientList>& all = sums_of(s.updates_done);
  if (only_own) {
    moved = own.size();
  } else {
    for (const RowGradientList& list : all) moved += std::ssize(list.ids(table));
  }
  if (moved > kMostMovedPerPosition * positions) return {};
  thread_local BloomFilter filter;
  filter.start(moved, tables()[table].rows);
  if (only_own) {
    for (int64_t g = 0; g < own.size(); ++g) filter.add(own.id(g));
  } else {
    for (const RowGradientList& list : all) {
      for (const int64_t id : list.ids(table)) filter.add(id);
    }
  }
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
void EmbeddingEngine::State::pool_flagged(Prepared& p, size_t feature, int64_t first_sample,
                                          Patch& patch) const {
  const kernels::Bags bags = bags_of(p.features[feature]);
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
  const size_t t = table_of(feature);
  const int64_t dim = dims[t];
  patch.values.resize(patch.samples.size() * dim);
  held[t].look_up({.ids = patch.ids.data(),
                   .splits = bags.splits == nullptr ? nullptr : patch.splits.data(),
                   .samples = std::ssize(patch.samples),
                   .weights = bags.weights == nullptr ? nullptr : patch.weights.data()},
                  tables()[t].combiner, patch.values.data());
  float* const out = p.values[feature].mutable_data<float>().data();
  for (size_t i = 0; i < patch.samples.size(); ++i) {
    std::copy_n(patch.values.data() + i * dim, dim, out + patch.samples[i] * dim);
  }
}

void EmbeddingEngine::prefetch(Communicator& communicator,
                               const std::vector<FeatureBatch>& features) {
  State& s = *state_;
  if (communicator.size() != shards()) return;
  try {
    s.check(features);
  } catch (const Error&) {
    return;
  }
  State::Scratch& scratch = s.scratch[communicator.rank() - s.first_shard];
  if (scratch.ahead.size() == kMostAhead) scratch.drop_first();
  scratch.ahead.push_back(std::make_shared<State::Prepared>(
      State::Prepared{.features = features, .tables_to_group = {}, .features_to_pool = {}}));
  s.begin_first(communicator, scratch);
}

void EmbeddingEngine::drop_prepared() {
  for (State::Scratch& scratch : state_->scratch) scratch.drop_all();
}

}  // namespace keel::distribute
