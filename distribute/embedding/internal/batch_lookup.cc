#include <keel/distribute/embedding/internal/batch_lookup.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <keel/distribute/internal/placement.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/update_rule.h>

namespace keel::distribute {
namespace {

void quantize(const Quantization& q, std::span<float> values) {
  const double quantum = (q.upper - q.lower) / static_cast<double>(q.num_buckets - 1);
  for (float& x : values) {
    const double clipped = std::clamp<double>(x, q.lower, q.upper);
    x = static_cast<float>(std::floor((clipped - q.lower) / quantum + 0.5) * quantum + q.lower);
  }
}

}  // namespace

void BatchLookup::fetch(Communicator& communicator, const std::vector<FeatureBatch>& features) {
  const profile::Scope scope(profile::Phase::kLookup, "fetch rows");
  elsewhere_.resize(tables_.size());
  for (auto& ids : elsewhere_) ids.clear();
  for (size_t f = 0; f < features.size(); ++f) {
    const int t = tables_.table_of(f);
    const LocalRows& rows = tables_.shard(t).rows();
    for (const int64_t id : features[f].ids.data<int64_t>()) {
      if (!rows.contain(id)) elsewhere_[t].push_back(id);
    }
  }
  remote_.fetch(communicator, tables_.shards(), elsewhere_, tables_.label());
}

std::vector<Tensor> BatchLookup::run(Communicator& communicator,
                                     const std::vector<FeatureBatch>& features,
                                     std::span<const std::shared_ptr<KeyedLookup>> keyed,
                                     std::vector<Tensor> values) {
  if (communicator.placement().processes() > 1) fetch(communicator, features);
  const profile::Scope scope(profile::Phase::kLookup, "pool");
  values.resize(features.size());
  std::vector<int64_t> next_remote(tables_.size(), 0);
  for (size_t f = 0; f < features.size(); ++f) {
    if (values[f]) continue;
    const FeatureBatch& batch = features[f];
    const size_t t = tables_.table_of(f);
    const TableShard& table = tables_.shard(t);
    const kernels::Bags bags = bags_of(batch);
    values[f] = Tensor::uninitialized({bags.samples, table.dim()}, DType::kFloat32);
    float* to = values[f].mutable_data<float>().data();
    const KeyedLookup* const keys = keyed.empty() ? nullptr : keyed[t].get();
    const bool has_fresh = keys != nullptr && !keys->given_rows.empty();
    if (!table.rows().all() || tables_[t].quantization || has_fresh) {
      pool_by_pointer(f, batch, keys, next_remote, to);
    } else {
      table.look_up(bags, tables_[t].combiner, to);
    }
  }
  return values;
}

// Pools rows through pointers. The rows are held here, fetched from other processes, the initial
// rows of new ids, or copied first because they are quantized or stored as 16-bit floats.
void BatchLookup::pool_by_pointer(size_t feature, const FeatureBatch& batch,
                                  const KeyedLookup* keyed, std::vector<int64_t>& next_remote,
                                  float* out) {
  const size_t t = tables_.table_of(feature);
  const TableShard& table = tables_.shard(t);
  const auto ids = batch.ids.data<int64_t>();
  const auto& quantization = tables_[t].quantization;
  const bool copies = quantization || table.storage() != kernels::StorageType::kFloat32;
  copies_.resize(copies ? ids.size() * table.dim() : 0);
  float* copy = copies_.data();
  rows_.clear();
  for (const int64_t id : ids) {
    const bool is_fresh = keyed != nullptr && id < 0;
    const bool here = !is_fresh && table.rows().contain(id);
    const float* there = nullptr;
    if (is_fresh) {
      there = &keyed->given_rows[(-1 - id) * table.dim()];
    } else if (!here) {
      there = remote_.row(t, next_remote[t]++);
    }
    if (!copies) {
      rows_.push_back(here ? table.row(id) : there);
      continue;
    }
    here ? table.read(0, id, copy) : static_cast<void>(std::copy_n(there, table.dim(), copy));
    rows_.push_back(copy);
    copy += table.dim();
  }
  if (quantization) quantize(*quantization, copies_);
  if (quantization && keyed != nullptr) {
    // Row 0 is no row that could be quantized, but the zeros that ids without a row read.
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == 0) std::fill_n(&copies_[i * table.dim()], table.dim(), 0.0F);
    }
  }
  kernels::Bags bags = bags_of(batch);
  if (bags.splits != nullptr) {
    kernels::pool_rows(rows_.data(), table.dim(), bags, tables_[t].combiner, out);
  } else {
    kernels::gather_rows(rows_.data(), table.dim(), bags.samples, out);
  }
}

}  // namespace keel::distribute
