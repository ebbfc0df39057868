// Shard: the rows of one table, and their slots, that one replica owns.
#pragma once

#include <vector>

#include "distribute/embedding/partition.h"
#include "distribute/embedding/row_exchange.h"
#include "distribute/embedding/row_update.h"
#include "framework/initializers.h"

namespace keel::distribute {

// Row ids are those of the whole table everywhere; all must be owned by this shard. Written by
// its replica alone, between collectives.
class Shard {
 public:
  // Weights zero, slots at their initial values.
  Shard(int64_t dim, const std::vector<Slot>& slots, const Partition& partition, int index);

  // Draws exactly what a table of the first `rows` rows would hold in those that are here; see
  // row() for `part`.
  void initialize(int part, int64_t rows, const InitializerFunction& initializer,
                  const RandomStream& stream);

  // out[i] = the row of ids[i].
  void gather(std::span<const int64_t> ids, float* out) const;
  // Steps each row by its gradient, in the order given; `rows.values` may be changed.
  void update(const RowUpdate& update, OwnedRows& rows, const Step& step);
  // Steps every row, by zero where `rows` has none.
  void update_all(const RowUpdate& update, const OwnedRows& rows, const Step& step);

  // Elements of the weights (part 0) or of slot part - 1.
  const float* row(int part, int64_t id) const {
    return data_[part].data<float>().data() + partition_.local_row(id) * dim_;
  }
  float* mutable_row(int part, int64_t id) {
    return pointers_[part] + partition_.local_row(id) * dim_;
  }

 private:
  const int64_t rows_;  // owned
  const int64_t dim_;
  const Partition partition_;
  const int index_;
  std::vector<Tensor> data_;      // weights, then slots, each [rows, dim]
  std::vector<float*> pointers_;  // to the elements of data_
};

}  // namespace keel::distribute
