#include "distribute/embedding/shard.h"

#include <algorithm>

#include "framework/parallel.h"

namespace keel::distribute {
namespace {

constexpr int64_t kRowsPerBlock = 256;
constexpr int64_t kPrefetchDistance = 8;

}  // namespace

Shard::Shard(int64_t dim, const std::vector<Slot>& slots, const Partition& partition, int index)
    : rows_(partition.rows_of(index)), dim_(dim), partition_(partition), index_(index) {
  data_.push_back(Tensor::zeros({rows_, dim_}));
  for (const Slot& slot : slots) {
    data_.push_back(Tensor::full<float>({rows_, dim_}, static_cast<float>(slot.initial)));
  }
  for (Tensor& t : data_) pointers_.push_back(t.mutable_data<float>().data());
}

void Shard::initialize(int part, int64_t rows, const InitializerFunction& initializer,
                       const RandomStream& stream) {
  const Shape whole = {rows, dim_};
  parallel_for(rows_, kRowsPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t local = begin; local < end; ++local) {
      const int64_t row = partition_.global_row(index_, local);
      if (row >= rows) continue;
      initializer.fill({pointers_[part] + local * dim_, static_cast<size_t>(dim_)}, row * dim_,
                       whole, stream);
    }
  });
}

void Shard::gather(std::span<const int64_t> ids, float* out) const {
  const float* weights = pointers_[0];
  const auto n = static_cast<int64_t>(ids.size());
  for (int64_t i = 0; i < n; ++i) {
    if (i + kPrefetchDistance < n) {
      __builtin_prefetch(weights + partition_.local_row(ids[i + kPrefetchDistance]) * dim_);
    }
    std::copy_n(weights + partition_.local_row(ids[i]) * dim_, dim_, out + i * dim_);
  }
}

void Shard::update(const RowUpdate& update, OwnedRows& rows, const Step& step) {
  const auto n = static_cast<int64_t>(rows.ids.size());
  const auto step_rows = [&](int64_t begin, int64_t end) {
    std::vector<float*> slots(pointers_.size() - 1);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = partition_.local_row(rows.ids[i]) * dim_;
      for (size_t s = 0; s < slots.size(); ++s) slots[s] = pointers_[s + 1] + offset;
      update.apply(pointers_[0] + offset, rows.values.data() + i * dim_, slots.data(), dim_, step);
    }
  };
  // Without accumulation an id may repeat, and its steps follow each other.
  if (update.use_gradient_accumulation) {
    parallel_for(n, kRowsPerBlock, step_rows);
  } else {
    step_rows(0, n);
  }
}

void Shard::update_all(const RowUpdate& update, const OwnedRows& rows, const Step& step) {
  OwnedRows all;
  all.ids.resize(rows_);
  for (int64_t local = 0; local < rows_; ++local) {
    all.ids[local] = partition_.global_row(index_, local);
  }
  all.values.assign(rows_ * dim_, 0.0F);
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    std::copy_n(rows.values.data() + i * dim_, dim_,
                all.values.data() + partition_.local_row(rows.ids[i]) * dim_);
  }
  this->update(update, all, step);
}

}  // namespace keel::distribute
