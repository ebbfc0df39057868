// RowSum: accumulates a sum of rows of a table.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/constant_dim.h>
#include <keel/framework/kernels/embedding/int8_rows.h>
#include <keel/framework/kernels/half_parts.h>

namespace keel::kernels {

// Accumulates rows of type T or, where T is float, of 16-bit floats or Int8Row. The sum is kept in
// registers if kDim is a multiple of their size, else in `out` itself. It starts at 0. Call store()
// at the end.
template <int64_t kDim, class T>
class RowSum {
  // Parts have the size of the widest register of any target. Narrower machines use several
  // registers per part and compute the same bits.
  static constexpr int64_t kPart = 64 / static_cast<int64_t>(sizeof(T));
  typedef T Part __attribute__((vector_size(64)));
  // memcpy() would copy through the stack, in halves.
  typedef T PartInMemory __attribute__((vector_size(64), aligned(alignof(T)), may_alias));

 public:
  static constexpr bool kInRegisters = kDim > 0 && kDim % kPart == 0;

  RowSum(int64_t dim, T* out) : dim_(dim), out_(out) {
    if constexpr (kInRegisters) {
      for (Part& part : sums_) part = Part{};
    } else {
      std::fill_n(out_, dim_, T{0});
    }
  }
  // Adds `row`, multiplied by `weight` if kWeighted.
  template <bool kWeighted, class Row = T>
  void add(const Row* __restrict row, T weight) {
    if constexpr (kInRegisters) {
      for (int64_t i = 0; i < kCount; ++i) {
        const Part part = load(row + i * kPart);
        sums_[i] += kWeighted ? weight * part : part;
      }
    } else {
      T* __restrict out = out_;
      for (int64_t j = 0; j < dim_; ++j) {
        const T x = value(row[j]);
        out[j] += kWeighted ? weight * x : x;
      }
    }
  }
  template <bool kWeighted>
  void add(const Int8Row& row, T weight) {
    if constexpr (kInRegisters) {
      for (int64_t i = 0; i < kCount; ++i) {
        const Part part = row.offset + row.scale * load_part(row.codes + i * kPart);
        sums_[i] += kWeighted ? weight * part : part;
      }
    } else {
      T* __restrict out = out_;
      for (int64_t j = 0; j < dim_; ++j) out[j] += kWeighted ? weight * row[j] : row[j];
    }
  }
  // Divides the sum by `divisor`. The result is 0 if `divisor` is 0.
  void divide(T divisor) {
    if constexpr (kInRegisters) {
      for (Part& part : sums_) part = divisor == 0 ? Part{} : part / divisor;
    } else {
      for (int64_t j = 0; j < dim_; ++j) out_[j] = divisor == 0 ? T{0} : out_[j] / divisor;
    }
  }
  // Writes the sum to `out`.
  void store() {
    if constexpr (kInRegisters) {
      for (int64_t i = 0; i < kCount; ++i) {
        *reinterpret_cast<PartInMemory*>(out_ + i * kPart) = sums_[i];
      }
    }
  }

 private:
  static Part load(const T* from) { return *reinterpret_cast<const PartInMemory*>(from); }
  template <class Half>
  static Part load(const Half* from) {
    return load_part(from);
  }
  static T value(T x) { return x; }
  template <class Half>
  static T value(Half x) {
    return to_float(x);
  }

  static constexpr int64_t kCount = kInRegisters ? kDim / kPart : 1;
  Part sums_[kCount];
  const int64_t dim_;
  T* const out_;
};

}  // namespace keel::kernels
