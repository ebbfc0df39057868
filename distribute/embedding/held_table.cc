#include "distribute/embedding/held_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "framework/kernels/constant_dim.h"
#include "framework/parallel.h"

namespace keel::distribute {
namespace {

using kernels::StorageType;

constexpr int64_t kRowsPerBlock = 256;
constexpr size_t kRowsAtOnce = 64;
constexpr auto kNumbers = [] {
  std::array<int64_t, kRowsAtOnce> out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  return out;
}();

}  // namespace

HeldTable::HeldTable(int64_t dim, const std::vector<Slot>& slots, const HeldRows& rows,
                     StorageType storage)
    : rows_(rows), dim_(dim), storage_(storage) {
  const Shape shape = {rows_.count(), dim_};
  if (is_half(0)) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(kernels::BFloat16));
    data_.push_back(Tensor::zeros({rows_.count(), dim_ * kBytes}, DType::kUint8));
    weights_ = data_[0].mutable_data<uint8_t>().data();
    pointers_.push_back(nullptr);
    memory_.push_back({.base = weights_, .row_bytes = dim_ * kBytes});
  } else {
    data_.push_back(Tensor::zeros(shape));
  }
  for (const Slot& slot : slots) {
    data_.push_back(Tensor::full<float>(shape, static_cast<float>(slot.initial)));
  }
  for (size_t part = pointers_.size(); part < data_.size(); ++part) {
    pointers_.push_back(data_[part].mutable_data<float>().data());
    memory_.push_back(
        {.base = pointers_[part], .row_bytes = dim_ * static_cast<int64_t>(sizeof(float))});
  }
  if (!is_half(0)) weights_ = pointers_[0];
}

void HeldTable::read(int part, int64_t row, float* out) const {
  const int64_t position = rows_.position(row);
  if (!is_half(part)) {
    std::copy_n(pointers_[part] + position * dim_, dim_, out);
  } else if (storage_ == StorageType::kBFloat16) {
    kernels::to_floats(weights<kernels::BFloat16>(position), dim_, out);
  } else {
    kernels::to_floats(weights<kernels::Float16>(position), dim_, out);
  }
}

void HeldTable::read_rows(std::span<const int64_t> rows, float* out) const {
  constexpr size_t kAhead = 32;
  for (size_t i = 0; i < rows.size(); ++i, out += dim_) {
    if (i + kAhead < rows.size()) ask_for(rows[i + kAhead]);
    read(0, rows[i], out);
  }
}

void HeldTable::write(int part, int64_t row, const float* values) {
  const int64_t position = rows_.position(row);
  if (!is_half(part)) {
    std::copy_n(values, dim_, pointers_[part] + position * dim_);
  } else if (storage_ == StorageType::kBFloat16) {
    kernels::round_to_nearest(values, dim_, weights<kernels::BFloat16>(position));
  } else {
    kernels::round_to_nearest(values, dim_, weights<kernels::Float16>(position));
  }
}

void HeldTable::look_up(const kernels::Bags& bags, kernels::Combiner combiner, float* out) const {
  kernels::visit_storage(storage_, [&](auto element) {
    const auto* table = weights<decltype(element)>(0);
    if (bags.splits == nullptr) {
      kernels::gather_rows(table, dim_, bags.ids, bags.samples, out);
    } else {
      kernels::pooled_gather(table, dim_, bags, combiner, out);
    }
  });
}

void HeldTable::initialize(int part, int64_t rows, const InitializerFunction& initializer,
                           const RandomStream& stream) {
  const Shape whole = {rows, dim_};
  parallel_for(rows_.count(), kRowsPerBlock, [&](int64_t begin, int64_t end) {
    std::vector<float> rounded(is_half(part) ? dim_ : 0);
    for (int64_t position = begin; position < end; ++position) {
      const int64_t row = rows_.row_at(position);
      if (row >= rows) continue;
      const std::span<float> values =
          is_half(part) ? rounded
                        : std::span(pointers_[part] + position * dim_, static_cast<size_t>(dim_));
      initializer.fill(values, row * dim_, whole, stream);
      if (is_half(part)) write(part, row, values.data());
    }
  });
}

void HeldTable::step(const RowUpdate& update, std::span<const int64_t> ids, float* gradients,
                     const Step& step, RowKeys& keys) {
  std::array<int64_t, kRowsAtOnce> positions;
  std::array<uint64_t, kRowsAtOnce> keys_of_rows;
  while (!ids.empty()) {
    const size_t n = std::min(ids.size(), kRowsAtOnce);
    for (size_t i = 0; i < n; ++i) positions[i] = rows_.position(ids[i]);
    const std::span some(positions.data(), n);
    if (storage_ == StorageType::kFloat32) {
      update.apply(
          {.values = pointers_[0], .slots = pointers_.data() + 1, .dim = dim_, .rows = some},
          gradients, step);
    } else {
      for (size_t i = 0; i < n; ++i) keys_of_rows[i] = keys.next(ids[i]);
      if (storage_ == StorageType::kBFloat16) {
        step_halves<kernels::BFloat16>(update, some, gradients, step, keys_of_rows);
      } else {
        step_halves<kernels::Float16>(update, some, gradients, step, keys_of_rows);
      }
    }
    ids = ids.subspan(n);
    gradients += static_cast<int64_t>(n) * dim_;
  }
}

// On copies: the rule sees a small table of floats. A row that is stepped several times is rounded
// each time.
template <class Half>
void HeldTable::step_halves(const RowUpdate& update, std::span<const int64_t> positions,
                            float* gradients, const Step& step, std::span<const uint64_t> keys) {
  constexpr int64_t kFloatsAtOnce = 4096;  // a half of the L1 cache
  const auto parts = std::ssize(pointers_);
  const int64_t at_once = update.use_gradient_accumulation
                              ? std::clamp<int64_t>(kFloatsAtOnce / (parts * dim_), 1, kRowsAtOnce)
                              : 1;
  thread_local std::vector<float> copies;  // by part, by row
  thread_local std::vector<float*> starts;
  copies.resize(parts * at_once * dim_);
  starts.clear();
  for (int64_t part = 0; part < parts; ++part) {
    starts.push_back(copies.data() + part * at_once * dim_);
  }
  for (int64_t first = 0; first < std::ssize(positions); first += at_once) {
    const int64_t n = std::min(at_once, std::ssize(positions) - first);
    const auto some = positions.subspan(first, n);
    copy_out<Half>(some, starts);
    update.apply({.values = starts[0],
                  .slots = starts.data() + 1,
                  .dim = dim_,
                  .rows = {kNumbers.data(), static_cast<size_t>(n)}},
                 gradients + first * dim_, step);
    copy_in<Half>(some, starts, keys.subspan(first, n));
  }
}

template <class Half>
void HeldTable::copy_out(std::span<const int64_t> positions, std::span<float* const> to) const {
  kernels::with_constant_dim(dim_, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : dim_;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) * dim;
      kernels::to_floats(weights<Half>(positions[i]), dim, to[0] + row);
      for (size_t part = 1; part < to.size(); ++part) {
        std::memcpy(to[part] + row, pointers_[part] + positions[i] * dim, dim * sizeof(float));
      }
    }
  });
}

template <class Half>
void HeldTable::copy_in(std::span<const int64_t> positions, std::span<float* const> from,
                        std::span<const uint64_t> keys) {
  kernels::with_constant_dim(dim_, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : dim_;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) * dim;
      kernels::round_stochastically(from[0] + row, dim, keys[i], weights<Half>(positions[i]));
      for (size_t part = 1; part < from.size(); ++part) {
        std::memcpy(pointers_[part] + positions[i] * dim, from[part] + row, dim * sizeof(float));
      }
    }
  });
}

}  // namespace keel::distribute
