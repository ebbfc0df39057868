// TableShard: the rows of one table, and their slots, that one process holds.
#pragma once

#include <memory>
#include <vector>

#include <keel/distribute/embedding/partition.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/initializers.h>
#include <keel/framework/kernels/embedding/prefetch_row.h>
#include <keel/framework/kernels/embedding/row_groups.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

// The keys that one replica rounds rows with in one update of a table (kernels/half.h): of an
// update and a row and, if the row is stepped several times, of the step.
class RowKeys {
 public:
  explicit RowKeys(uint64_t update) : update_(update) {}
  // Steps of one row follow each other.
  uint64_t next(int64_t row) {
    step_ = row == row_ ? step_ + 1 : 0;
    row_ = row;
    const uint64_t key = kernels::mixed_key(update_, static_cast<uint64_t>(row));
    return step_ == 0 ? key : kernels::mixed_key(key, step_);
  }

 private:
  const uint64_t update_;
  int64_t row_ = -1;
  uint64_t step_ = 0;
};

// Part 0 is the weights, part i slot i - 1. The parts of a row lie side by side: what a step needs
// is in one place, which costs a processor half as much as if it were in several. Rows have the
// numbers that they have in the whole table; all that is asked for must be held here. Replicas read
// any row between updates; in an update each row is written by one of them.
//
// Weights may be kept as 16-bit floats; slots never are. What is written rounds to the nearest one,
// what a step leaves stochastically.
class TableShard {
 public:
  // Weights zero, slots at their initial values.
  TableShard(int64_t dim, const std::vector<Slot>& slots, const LocalRows& rows,
             kernels::StorageType storage = kernels::StorageType::kFloat32);

  const LocalRows& rows() const { return rows_; }
  int64_t dim() const { return dim_; }
  kernels::StorageType storage() const { return storage_; }
  // All parts of the rows.
  kernels::RowMemory memory() const { return {.base = base_, .row_bytes = row_bytes_}; }
  // Weights that are kept as float32.
  const float* row(int64_t row) const { return floats(0, rows_.position(row)); }
  void read(int part, int64_t row, float* out) const;
  // Weights of many rows, [rows.size(), dim].
  void read_rows(std::span<const int64_t> rows, float* out) const;
  // A row that will soon be looked at, or written with its slots.
  void ask_for(int64_t row) const {
    kernels::prefetch_row_to_read(memory().row(rows_.position(row)), weight_bytes_);
  }
  void ask_to_write(int64_t row) const {
    kernels::prefetch_row_to_write(memory().row(rows_.position(row)), row_bytes_);
  }
  void write(int part, int64_t row, const float* values);
  // Of a table all of whose rows are here: pools bags, or gathers rows if there are no splits.
  void look_up(const kernels::Bags& bags, kernels::Combiner combiner, float* out) const;

  // Draws exactly what a table of the first `rows` rows would hold in those that are here.
  void initialize(int part, int64_t rows, const InitializerFunction& initializer,
                  const RandomStream& stream);

  // Steps row ids[i] by gradient i [dim], which may be changed, one after the other. `keys` are
  // those of this update.
  void step(const RowUpdate& update, std::span<const int64_t> ids, float* gradients,
            const Step& step, RowKeys& keys);

 private:
  template <class Half>
  void step_halves(const RowUpdate& update, std::span<const int64_t> positions, float* gradients,
                   const Step& step, std::span<const uint64_t> keys);
  // Rows to and from the rows 0, 1, ... of each part's copy.
  template <class Half>
  void copy_out(std::span<const int64_t> positions, std::span<float* const> to) const;
  template <class Half>
  void copy_in(std::span<const int64_t> positions, std::span<float* const> from,
               std::span<const uint64_t> keys);
  bool is_half(int part) const { return part == 0 && storage_ != kernels::StorageType::kFloat32; }
  template <class T>
  T* weights(int64_t position) const {
    return reinterpret_cast<T*>(base_ + position * row_bytes_);
  }
  // Of a part that is kept as float32.
  float* floats(int part, int64_t position) const {
    return pointers_[part] + position * row_step<float>();
  }
  // From a row to the next, in elements of T.
  template <class T>
  int64_t row_step() const {
    return row_bytes_ / static_cast<int64_t>(sizeof(T));
  }

  const LocalRows rows_;
  const int64_t dim_;
  const kernels::StorageType storage_;
  const int64_t weight_bytes_, row_bytes_;  // slots, which are floats, follow the weights
  Tensor data_;                             // [rows held, row_bytes_], of bytes
  char* base_;                              // its elements
  std::vector<float*> pointers_;            // by part, in the first row; null for 16-bit floats
};

}  // namespace keel::distribute
