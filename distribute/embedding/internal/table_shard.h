// TableShard: the rows of one table and their slots that one process holds.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <keel/distribute/embedding/partition.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/base/internal/reserved_memory.h>
#include <keel/framework/initializers.h>
#include <keel/framework/kernels/embedding/prefetch_row.h>
#include <keel/framework/kernels/embedding/row_groups.h>
#include <keel/framework/tensor.h>
#include <keel/framework/update_rule.h>

namespace keel::distribute {

// The keys of stochastic rounding that one replica uses in one update of a table (kernels/half.h).
// A key depends on the update, the row and, if the row is updated several times, on the count.
class RowKeys {
 public:
  // `update` is the key of an update of a table.
  explicit RowKeys(uint64_t update) : update_(update) {}
  // Returns the key of the next update of `row`. Updates of one row must be consecutive.
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

// Part 0 is the weights, part i is slot i - 1. The parts of a row are adjacent in memory, which
// halves the cost of memory access of an update compared to separate arrays. Rows have their
// numbers in the whole table; rows passed to members must be held here. Replicas may read any row
// between updates; in an update, each row is written by one of them.
//
// A part has dim() elements per row, or one if it is a slot with Slot::per_row.
//
// Weights may be stored as 16-bit floats; slots never are. write() rounds to the nearest value,
// update() rounds stochastically.
class TableShard {
 public:
  // Creates the rows with zero weights and slots at their initial values.
  TableShard(int64_t dim, const std::vector<Slot>& slots, const LocalRows& rows,
             kernels::StorageType storage = kernels::StorageType::kFloat32);
  // Creates a shard without rows, which grow() adds, for at most `most_bytes` bytes. Every row has
  // its own number as its position.
  TableShard(int64_t dim, const std::vector<Slot>& slots, kernels::StorageType storage,
             size_t most_bytes);

  // For shards that grow. Adds rows until there are `rows`. Rows are not moved. Weights and slots
  // of new rows are zero. Throws std::bad_alloc, without a change, if there is not enough memory.
  void grow(int64_t rows) { reserved_.grow(static_cast<size_t>(rows * row_bytes_)); }
  // Sets the weights of a row to `weights` [dim], and its slots to their initial values.
  void reset(int64_t row, const float* weights);
  // Sets the initial values of the slots, by slot.
  void set_initial_slots(std::vector<float> values) { initial_slots_ = std::move(values); }
  const std::vector<float>& initial_slots() const { return initial_slots_; }
  // Overwrites all parts of a row with zeros.
  void clear(int64_t row);
  int64_t row_bytes() const { return row_bytes_; }
  // Returns the memory of float32 weights and slots, without row numbers.
  TableRows parts() const {
    return {.values = pointers_[0],
            .slots = pointers_.data() + 1,
            .dim = dim_,
            .row_step = row_step<float>(),
            .rows = {}};
  }
  int64_t slots() const { return std::ssize(pointers_) - 1; }
  int64_t bytes() const { return static_cast<int64_t>(reserved_.size()); }
  // Rounds float32 values to those that a row of the weights would hold.
  void round_as_stored(std::span<float> values) const;
  // Sets the function that gives the number of a row for stochastic rounding. Unset: the row.
  void set_rounding_numbers(std::function<uint64_t(int64_t row)> number) {
    rounding_number_ = std::move(number);
  }

  const LocalRows& rows() const { return rows_; }
  int64_t dim() const { return dim_; }
  // The number of elements of a row of a part.
  int64_t width(int part) const { return widths_[part]; }
  kernels::StorageType storage() const { return storage_; }
  // The memory of all parts of the rows.
  kernels::RowMemory memory() const { return {.base = base_, .row_bytes = row_bytes_}; }
  // Returns a row of the weights, which must be stored as float32.
  const float* row(int64_t row) const { return floats(0, rows_.position(row)); }
  // Copies a row of a part to `out` [width(part)], as float32.
  void read(int part, int64_t row, float* out) const;
  // Copies the weights of many rows to `out` [rows.size(), dim].
  void read_rows(std::span<const int64_t> rows, float* out) const;
  // Copies many rows of a part to `out` [rows.size(), width(part)], where rows[i] is a row number
  // minus `first`. Runs in parallel.
  void read_rows(int part, int64_t first, std::span<const uint32_t> rows, float* out) const;
  // Prefetch the weights of a row to be read soon, or all its parts to be written.
  void prefetch_to_read(int64_t row) const {
    kernels::prefetch_row_to_read(memory().row(rows_.position(row)), weight_bytes_);
  }
  void prefetch_to_write(int64_t row) const {
    kernels::prefetch_row_to_write(memory().row(rows_.position(row)), row_bytes_);
  }
  // Sets a row of a part from float32 values [width(part)].
  void write(int part, int64_t row, const float* values);
  // Sets the rows [first, first + count) of a part from `values` [count, width(part)], or all of
  // them to `values` [width(part)]. Run in parallel.
  void write_rows(int part, int64_t first, int64_t count, const float* values);
  void fill_rows(int part, int64_t first, int64_t count, const float* values);
  // Pools bags, or gathers rows if there are no splits. All rows of the table must be held here.
  void look_up(const kernels::Bags& bags, kernels::Combiner combiner, float* out) const;

  // Initializes the local rows with exactly the values they would have in a table of `rows` rows.
  void initialize(int part, int64_t rows, const InitializerFunction& initializer,
                  const RandomStream& stream);

  // Updates row ids[i] with gradient i [dim], one after the other. The gradients may be modified.
  // `keys` are those of this update.
  void update(const RowUpdate& row_update, std::span<const int64_t> ids, float* gradients,
              const Step& step, RowKeys& keys);

 private:
  void point_to_parts(const std::vector<Slot>& slots);
  template <class Half>
  void update_halves(const RowUpdate& row_update, std::span<const int64_t> positions,
                     float* gradients, const Step& step, std::span<const uint64_t> keys);
  // Copy rows to, and from, rows 0, 1, ... of each part's buffer.
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
  // The elements of a part that is stored as float32.
  float* floats(int part, int64_t position) const {
    return pointers_[part] + position * row_step<float>();
  }
  // The distance between rows in elements of T.
  template <class T>
  int64_t row_step() const {
    return row_bytes_ / static_cast<int64_t>(sizeof(T));
  }

  const LocalRows rows_;
  const int64_t dim_;
  const std::vector<int64_t> widths_;  // by part
  const kernels::StorageType storage_;
  const int64_t weight_bytes_, row_bytes_;  // float32 slots follow the weights
  Tensor data_;                             // uint8 [local rows, row_bytes_], unless reserved_ is
  ReservedMemory reserved_;                 // used, by shards that grow
  char* base_;                              // the elements of data_ or of reserved_
  std::vector<float> initial_slots_;        // by slot
  std::function<uint64_t(int64_t)> rounding_number_;
  std::vector<float*> pointers_;  // by part, to its first row; null for 16-bit floats
};

}  // namespace keel::distribute
