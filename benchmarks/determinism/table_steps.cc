#include "benchmarks/determinism/table_steps.h"

#include <algorithm>
#include <bit>

#include <keel/autodiff/replica_context.h>

#include "benchmarks/support/pages.h"

namespace keel::bench {
namespace {

using distribute::RowKeys;
using kernels::Bags;

constexpr int64_t kRowsOfCheck = 256;

uint64_t hash_of(int64_t id) { return static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15U; }
int owner_of(int64_t id, int owners) {
  return static_cast<int>((hash_of(id) >> 32) * owners >> 32);
}
// Hash the lower bits: the highest bits are nearly equal in all rows of one owner.
uint64_t place_of(int64_t id) { return hash_of(id) >> 24; }

distribute::RowUpdate update_of(const ClickWork& work) {
  if (work.adagrad) return {.rule = std::make_shared<AdagradRule>(0.1, 0.0)};
  return {.rule = std::make_shared<SGDRule>()};
}

// Updates rows with SGD in the order of their ids.
void step_rows(float* rows, int64_t row_step, int64_t dim, const int64_t* ids,
               const uint32_t* samples, int64_t n, const float* gradients, float rate) {
  constexpr int64_t kAhead = 64;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) __builtin_prefetch(rows + ids[i + kAhead] * row_step, 1);
    float* __restrict row = rows + ids[i] * row_step;
    const float* __restrict gradient = gradients + samples[i] * dim;
    for (int64_t j = 0; j < dim; ++j) row[j] -= rate * gradient[j];
  }
}

}  // namespace

TableSteps::TableSteps(const ClickWork& work, const std::vector<ClickBatch>& batches, int replicas,
                       Order order)
    : work_(work),
      batches_(batches),
      replicas_count_(replicas),
      order_(order),
      step_({.learning_rate = work.learning_rate}),
      update_(update_of(work)),
      strategy_({.num_hosts = 1, .num_cores = replicas}),
      replicas_(replicas) {
  for (int64_t s = 0; s <= batches[0].samples; ++s) splits_.push_back(s * work.bag);
  order == Order::kFixed ? make_engine() : make_tables();
  for (int r = 0; r < replicas; ++r) make_replica(r);
}

void TableSteps::make_tables() {
  for (const int64_t rows : work_.rows) {
    tables_.emplace_back(
        work_.dim, update_.rule->slots(),
        distribute::LocalRows(distribute::Partition(rows, distribute::Sharding{}), 0, 1));
  }
}

void TableSteps::make_engine() {
  distribute::EngineConfiguration configuration;
  configuration.num_tensor_cores = replicas_count_;
  for (size_t t = 0; t < work_.rows.size(); ++t) {
    configuration.tables.push_back({.name = "table " + std::to_string(t),
                                    .rows = work_.rows[t],
                                    .dim = work_.dim,
                                    .combiner = kernels::Combiner::kSum,
                                    .num_features = 1,
                                    .update = update_,
                                    .learning_rate = work_.learning_rate});
    configuration.features.push_back(
        {.name = "feature " + std::to_string(t), .table_id = static_cast<int>(t)});
  }
  engine_ = std::make_unique<distribute::EmbeddingEngine>(configuration);
}

void TableSteps::make_replica(int replica) {
  Replica& me = replicas_[replica];
  const int64_t all = batches_[0].samples;
  const int64_t first = all * replica / replicas_count_;
  const int64_t samples = all * (replica + 1) / replicas_count_ - first;
  const bool pooled = work_.bag > 1;
  for (const ClickBatch& batch : batches_) {
    auto& bags = me.bags.emplace_back();
    auto& features = me.features.emplace_back();
    for (const std::vector<int64_t>& ids : batch.ids) {
      const std::span mine = std::span(ids).subspan(first * work_.bag, samples * work_.bag);
      bags.push_back(
          {.ids = mine.data(), .splits = pooled ? splits_.data() : nullptr, .samples = samples});
      if (engine_ == nullptr) continue;
      distribute::FeatureBatch& feature = features.emplace_back();
      feature.ids = Tensor::from(mine, {std::ssize(mine)});
      if (pooled) {
        feature.row_splits =
            Tensor::from(std::span<const int64_t>(splits_).first(samples + 1), {samples + 1});
      }
    }
  }
  const int64_t n = samples * work_.dim;
  std::vector<float> gradient(n);
  fill(gradient.data(), n, 1e-3F);
  me.gradients.assign(work_.rows.size(), gradient);
  me.found.assign(work_.rows.size(), std::vector<float>(n));
  me.routed.resize(replicas_count_);
  me.gradient_tensors.assign(work_.rows.size(), Tensor::from(gradient, {samples, work_.dim}));
}

void TableSteps::step(int batch) {
  strategy_.run([&] {
    const int replica = current_replica_context()->replica;
    order_ == Order::kFixed ? fixed_step(replica, batch) : free_step(replica, batch);
  });
}

void TableSteps::fixed_step(int replica, int batch) {
  Replica& me = replicas_[replica];
  auto found = engine_->lookup(strategy_.communicator(), me.features[batch]);
  const distribute::TableStep step = {.learning_rate = step_.learning_rate};
  engine_->apply(strategy_.communicator(), std::move(found.ticket), me.gradient_tensors,
                 std::vector(work_.rows.size(), step));
}

void TableSteps::route_rows(Replica& me, int batch) {
  for (RoutedIds& routed : me.routed) {
    routed.ends.clear();
    routed.size = 0;
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    const Bags& bags = me.bags[batch][t];
    const int64_t most = bags.samples * work_.bag;
    for (RoutedIds& routed : me.routed) {
      const auto room = static_cast<size_t>(routed.size + most);
      if (routed.ids.size() >= room) continue;
      routed.ids.resize(2 * room);
      routed.samples.resize(2 * room);
    }
    const int64_t* id = bags.ids;
    for (int64_t s = 0; s < bags.samples; ++s) {
      for (int64_t i = 0; i < work_.bag; ++i, ++id) {
        RoutedIds& to = me.routed[owner_of(*id, replicas_count_)];
        to.ids[to.size] = *id;
        to.samples[to.size++] = static_cast<uint32_t>(s);
      }
    }
    for (RoutedIds& routed : me.routed) routed.ends.push_back(routed.size);
  }
}

// The contributions of all replicas for the rows of one owner, starting with its own.
void TableSteps::collect(Replica& me, int owner, size_t table) {
  const auto replica_at = [&](int k) -> const Replica& {
    return replicas_[(owner + k) % replicas_count_];
  };
  int64_t most = 1;
  for (int k = 0; k < replicas_count_; ++k) {
    const RoutedIds& routed = replica_at(k).routed[owner];
    most += routed.ends[table] - routed.begin(table);
  }
  Sums& sums = me.owned;
  const size_t places = std::bit_ceil(static_cast<size_t>(2 * most));
  sums.places.assign(places, -1);
  sums.ids.clear();
  const int64_t dim = work_.dim;
  if (std::ssize(sums.values) < most * dim) sums.values.resize(most * dim);
  for (int k = 0; k < replicas_count_; ++k) {
    const RoutedIds& routed = replica_at(k).routed[owner];
    const float* gradients = replica_at(k).gradients[table].data();
    for (int64_t i = routed.begin(table); i < routed.ends[table]; ++i) {
      const int64_t id = routed.ids[i];
      const float* __restrict gradient = gradients + routed.samples[i] * dim;
      size_t at = place_of(id) & (places - 1);
      while (sums.places[at] >= 0 && sums.ids[sums.places[at]] != id) at = (at + 1) & (places - 1);
      if (sums.places[at] < 0) {
        sums.places[at] = static_cast<int32_t>(sums.ids.size());
        std::copy_n(gradient, dim, sums.values.data() + std::ssize(sums.ids) * dim);
        sums.ids.push_back(id);
        tables_[table].prefetch_to_write(id);
      } else {
        float* __restrict sum = sums.values.data() + sums.places[at] * dim;
        for (int64_t j = 0; j < dim; ++j) sum[j] += gradient[j];
      }
    }
  }
}

void TableSteps::free_step(int replica, int batch) {
  Replica& me = replicas_[replica];
  for (size_t t = 0; t < tables_.size(); ++t) {
    tables_[t].look_up(me.bags[batch][t], kernels::Combiner::kSum, me.found[t].data());
  }
  route_rows(me, batch);
  strategy_.communicator().barrier("routed ids");
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!work_.adagrad) {
      const int64_t row_step = tables_[t].memory().row_bytes / static_cast<int64_t>(sizeof(float));
      for (int k = 0; k < replicas_count_; ++k) {
        const Replica& from = replicas_[(replica + k) % replicas_count_];
        const RoutedIds& routed = from.routed[replica];
        const int64_t first = routed.begin(t);
        // The table returns const rows, but the caller may write those of this table.
        step_rows(const_cast<float*>(tables_[t].row(0)), row_step, work_.dim,
                  routed.ids.data() + first, routed.samples.data() + first, routed.ends[t] - first,
                  from.gradients[t].data(), static_cast<float>(step_.learning_rate));
      }
      continue;
    }
    collect(me, replica, t);
    RowKeys keys(0);
    tables_[t].update(update_, me.owned.ids, me.owned.values.data(), step_, keys);
  }
  strategy_.communicator().barrier("rows");
}

std::vector<float> TableSteps::some_rows() const {
  std::vector<float> out, row(work_.dim);
  for (size_t t = 0; t < work_.rows.size(); ++t) {
    for (int64_t i = 0; i < kRowsOfCheck; ++i) {
      const int64_t id = batches_[0].ids[t][i];
      if (engine_ != nullptr) {
        engine_->read_rows(static_cast<int>(t), 0, id, id + 1, row.data());
      } else {
        tables_[t].read(0, id, row.data());
      }
      out.insert(out.end(), row.begin(), row.end());
    }
  }
  return out;
}

}  // namespace keel::bench
