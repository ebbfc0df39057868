#include <keel/distribute/embedding/internal/table_shard.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/constant_dim.h>

namespace keel::distribute {
namespace {

using kernels::StorageType;

constexpr int64_t kRowsPerBlock = 256;
constexpr int64_t kRowsPerCopy = 4096;
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
constexpr size_t kRowsAtOnce = 64;
constexpr auto kNumbers = [] {
  std::array<int64_t, kRowsAtOnce> out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  return out;
}();

// Returns the bytes of a row's weights, rounded up to whole floats so that the slots are aligned.
int64_t bytes_of_weights(int64_t dim, StorageType storage) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  if (storage == StorageType::kFloat32) return dim * kFloat;
  return (dim * static_cast<int64_t>(sizeof(kernels::BFloat16)) + kFloat - 1) / kFloat * kFloat;
}

std::vector<int64_t> widths_of(int64_t dim, const std::vector<Slot>& slots) {
  std::vector<int64_t> out = {dim};
  for (const Slot& slot : slots) out.push_back(slot.per_row ? 1 : dim);
  return out;
}

int64_t bytes_of_slots(const std::vector<int64_t>& widths) {
  int64_t elements = 0;
  for (size_t part = 1; part < widths.size(); ++part) elements += widths[part];
  return elements * static_cast<int64_t>(sizeof(float));
}

}  // namespace

TableShard::TableShard(int64_t dim, const std::vector<Slot>& slots, const LocalRows& rows,
                       StorageType storage)
    : rows_(rows),
      dim_(dim),
      widths_(widths_of(dim, slots)),
      storage_(storage),
      weight_bytes_(bytes_of_weights(dim, storage)),
      row_bytes_(weight_bytes_ + bytes_of_slots(widths_)),
      data_(Tensor::zeros({rows.count(), row_bytes_}, DType::kUint8)),
      base_(reinterpret_cast<char*>(data_.mutable_data<uint8_t>().data())) {
  point_to_parts(slots);
  parallel_for(rows_.count(), kRowsPerBlock, [&](int64_t begin, int64_t end) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto initial = static_cast<float>(slots[i].initial);
      if (initial == 0) continue;
      for (int64_t position = begin; position < end; ++position) {
        const auto part = static_cast<int>(i) + 1;
        std::fill_n(floats(part, position), width(part), initial);
      }
    }
  });
}

TableShard::TableShard(int64_t dim, const std::vector<Slot>& slots, StorageType storage,
                       size_t most_bytes)
    // The number of rows is only a bound: positions are below 2^32 (KeyDirectory).
    : rows_(Partition(int64_t{1} << 33, {}), 0, 1),
      dim_(dim),
      widths_(widths_of(dim, slots)),
      storage_(storage),
      weight_bytes_(bytes_of_weights(dim, storage)),
      row_bytes_(weight_bytes_ + bytes_of_slots(widths_)),
      reserved_(most_bytes),
      base_(reserved_.data()) {
  point_to_parts(slots);
}

void TableShard::point_to_parts(const std::vector<Slot>& slots) {
  auto* next = reinterpret_cast<float*>(base_ + weight_bytes_);
  pointers_.push_back(is_half(0) ? nullptr : weights<float>(0));
  for (const Slot& slot : slots) {
    pointers_.push_back(next);
    next += slot.per_row ? 1 : dim_;
    initial_slots_.push_back(static_cast<float>(slot.initial));
  }
}

void TableShard::reset(int64_t row, const float* weights) {
  write(0, row, weights);
  for (size_t slot = 0; slot < initial_slots_.size(); ++slot) {
    const auto part = static_cast<int>(slot) + 1;
    std::fill_n(floats(part, rows_.position(row)), width(part), initial_slots_[slot]);
  }
}

void TableShard::clear(int64_t row) {
  std::memset(base_ + rows_.position(row) * row_bytes_, 0, row_bytes_);
}

void TableShard::read(int part, int64_t row, float* out) const {
  const int64_t position = rows_.position(row);
  if (!is_half(part)) {
    std::copy_n(floats(part, position), width(part), out);
  } else if (storage_ == StorageType::kBFloat16) {
    kernels::to_floats(weights<kernels::BFloat16>(position), dim_, out);
  } else {
    kernels::to_floats(weights<kernels::Float16>(position), dim_, out);
  }
}

void TableShard::round_as_stored(std::span<float> values) const {
  if (storage_ == StorageType::kFloat32) return;
  kernels::visit_storage(storage_, [&](auto element) {
    using Element = decltype(element);
    if constexpr (!std::is_same_v<Element, float>) {
      std::vector<Element> rounded(values.size());
      kernels::round_to_nearest(values.data(), std::ssize(values), rounded.data());
      kernels::to_floats(rounded.data(), std::ssize(values), values.data());
    }
  });
}

void TableShard::read_rows(std::span<const int64_t> rows, float* out) const {
  constexpr size_t kAhead = 32;
  for (size_t i = 0; i < rows.size(); ++i, out += dim_) {
    if (i + kAhead < rows.size()) prefetch_to_read(rows[i + kAhead]);
    read(0, rows[i], out);
  }
}

void TableShard::read_rows(int part, int64_t first, std::span<const uint32_t> rows,
                           float* out) const {
  constexpr int64_t kAhead = 32;
  const char* const first_row = part == 0 ? base_ : reinterpret_cast<const char*>(pointers_[part]);
  const int64_t bytes = part == 0 ? weight_bytes_ : width(part) * kFloatBytes;
  parallel_for(std::ssize(rows), kRowsPerCopy, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) {
        const int64_t ahead = rows_.position(first + rows[i + kAhead]);
        kernels::prefetch_row_to_read(first_row + ahead * row_bytes_, bytes);
      }
      read(part, first + rows[i], out + i * width(part));
    }
  });
}

void TableShard::write_rows(int part, int64_t first, int64_t count, const float* values) {
  parallel_for(count, kRowsPerCopy, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) write(part, first + i, values + i * width(part));
  });
}

void TableShard::fill_rows(int part, int64_t first, int64_t count, const float* values) {
  parallel_for(count, kRowsPerCopy, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) write(part, first + i, values);
  });
}

void TableShard::write(int part, int64_t row, const float* values) {
  const int64_t position = rows_.position(row);
  if (!is_half(part)) {
    std::copy_n(values, width(part), floats(part, position));
  } else if (storage_ == StorageType::kBFloat16) {
    kernels::round_to_nearest(values, dim_, weights<kernels::BFloat16>(position));
  } else {
    kernels::round_to_nearest(values, dim_, weights<kernels::Float16>(position));
  }
}

void TableShard::look_up(const kernels::Bags& bags, kernels::Combiner combiner, float* out) const {
  kernels::visit_storage(storage_, [&](auto element) {
    using Element = decltype(element);
    const auto* table = weights<Element>(0);
    if (bags.splits == nullptr) {
      kernels::gather_rows(table, dim_, bags.ids, bags.samples, out, row_step<Element>());
    } else {
      kernels::pooled_gather(table, dim_, bags, combiner, out, row_step<Element>());
    }
  });
}

void TableShard::initialize(int part, int64_t rows, const InitializerFunction& initializer,
                            const RandomStream& stream) {
  const int64_t width_of_part = width(part);
  const Shape whole = {rows, width_of_part};
  parallel_for(rows_.count(), kRowsPerBlock, [&](int64_t begin, int64_t end) {
    std::vector<float> rounded(is_half(part) ? dim_ : 0);
    for (int64_t position = begin; position < end; ++position) {
      const int64_t row = rows_.row_at(position);
      if (row >= rows) continue;
      const std::span<float> values =
          is_half(part) ? rounded
                        : std::span(floats(part, position), static_cast<size_t>(width_of_part));
      initializer.fill(values, row * width_of_part, whole, stream);
      if (is_half(part)) write(part, row, values.data());
    }
  });
}

void TableShard::update(const RowUpdate& row_update, std::span<const int64_t> ids, float* gradients,
                        const Step& step, RowKeys& keys) {
  const bool is_float = storage_ == StorageType::kFloat32;
  // Without accumulation a row may occur several times and is updated once per occurrence.
  const size_t at_once = is_float && !row_update.use_gradient_accumulation ? 1 : kRowsAtOnce;
  std::array<int64_t, kRowsAtOnce> positions;
  std::array<uint64_t, kRowsAtOnce> keys_of_rows;
  while (!ids.empty()) {
    const size_t n = std::min(ids.size(), at_once);
    for (size_t i = 0; i < n; ++i) positions[i] = rows_.position(ids[i]);
    const std::span some(positions.data(), n);
    if (is_float) {
      const TableRows rows = {.values = pointers_[0],
                              .slots = pointers_.data() + 1,
                              .dim = dim_,
                              .row_step = row_step<float>(),
                              .rows = some};
      row_update.prepare(rows, gradients, step);
      row_update.rule->update_rows(rows, gradients, step);
      row_update.clip_weights(rows);
    } else {
      for (size_t i = 0; i < n; ++i) {
        keys_of_rows[i] =
            keys.next(rounding_number_ ? static_cast<int64_t>(rounding_number_(ids[i])) : ids[i]);
      }
      if (storage_ == StorageType::kBFloat16) {
        update_halves<kernels::BFloat16>(row_update, some, gradients, step, keys_of_rows);
      } else {
        update_halves<kernels::Float16>(row_update, some, gradients, step, keys_of_rows);
      }
    }
    ids = ids.subspan(n);
    gradients += static_cast<int64_t>(n) * dim_;
  }
}

// Updates rows on float32 copies, so that rules need no 16-bit code. A row that is updated several
// times is rounded each time.
template <class Half>
void TableShard::update_halves(const RowUpdate& row_update, std::span<const int64_t> positions,
                               float* gradients, const Step& step, std::span<const uint64_t> keys) {
  constexpr int64_t kFloatsAtOnce = 4096;  // half of the L1 cache
  const auto parts = std::ssize(pointers_);
  // Without accumulation a row may occur several times and must be rounded after each update.
  const int64_t at_once = row_update.use_gradient_accumulation
                              ? std::clamp<int64_t>(kFloatsAtOnce / (parts * dim_), 1, kRowsAtOnce)
                              : 1;
  // By part, by row. Only rows of more than kFloatsAtOnce elements need memory of the heap.
  std::array<float, kFloatsAtOnce> small;
  const int64_t needed = parts * at_once * dim_;
  std::vector<float> large(needed > kFloatsAtOnce ? needed : 0);
  float* const copies = large.empty() ? small.data() : large.data();
  std::vector<float*> starts;
  for (int64_t part = 0; part < parts; ++part) starts.push_back(copies + part * at_once * dim_);
  for (int64_t first = 0; first < std::ssize(positions); first += at_once) {
    const int64_t n = std::min(at_once, std::ssize(positions) - first);
    const auto some = positions.subspan(first, n);
    copy_out<Half>(some, starts);
    const TableRows rows = {.values = starts[0],
                            .slots = starts.data() + 1,
                            .dim = dim_,
                            .row_step = dim_,
                            .rows = {kNumbers.data(), static_cast<size_t>(n)}};
    float* const of_rows = gradients + first * dim_;
    row_update.prepare(rows, of_rows, step);
    row_update.rule->update_rows(rows, of_rows, step);
    row_update.clip_weights(rows);
    copy_in<Half>(some, starts, keys.subspan(first, n));
  }
}

template <class Half>
void TableShard::copy_out(std::span<const int64_t> positions, std::span<float* const> to) const {
  kernels::with_constant_dim(dim_, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : dim_;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) * dim;
      kernels::to_floats(weights<Half>(positions[i]), dim, to[0] + row);
      for (size_t part = 1; part < to.size(); ++part) {
        std::memcpy(to[part] + row, floats(static_cast<int>(part), positions[i]),
                    widths_[part] * sizeof(float));
      }
    }
  });
}

template <class Half>
void TableShard::copy_in(std::span<const int64_t> positions, std::span<float* const> from,
                         std::span<const uint64_t> keys) {
  kernels::with_constant_dim(dim_, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : dim_;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) * dim;
      kernels::round_stochastically(from[0] + row, dim, keys[i], weights<Half>(positions[i]));
      for (size_t part = 1; part < from.size(); ++part) {
        std::memcpy(floats(static_cast<int>(part), positions[i]), from[part] + row,
                    widths_[part] * sizeof(float));
      }
    }
  });
}

}  // namespace keel::distribute
