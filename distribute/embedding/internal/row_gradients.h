// RowGradients: what one replica's batch adds to the rows of one table.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <keel/framework/kernels/embedding/row_groups.h>

namespace keel::distribute {

// A feature of the table: its ids, and the gradient of what they were pooled into, [samples, dim];
// null for zeros.
struct PooledGradient {
  kernels::Bags bags;  // splits may be null
  const float* gradient = nullptr;
};

// The groups of the features of one table of so many rows.
void group_rows(std::span<const kernels::Bags> features, int64_t rows, kernels::RowGroups& out);

// Keeps its memory from step to step. Points into the gradients it was filled from.
class RowGradients {
 public:
  // First which rows, of group_rows(), then what the same features add to them.
  void exchange_groups(kernels::RowGroups& groups) { std::swap(groups_, groups); }
  void fill(std::span<const PooledGradient> features, kernels::Combiner combiner, int64_t dim);

  // Groups are rows of the table; their entries stand in the order feature, sample, position.
  const kernels::RowGroups& groups() const { return groups_; }
  const kernels::RowSources& sources() const { return sources_; }

 private:
  void fill_rows(std::span<const PooledGradient> features, kernels::Combiner combiner, int64_t dim,
                 bool scale);
  void fill_gains(std::span<const PooledGradient> features, kernels::Combiner combiner);

  kernels::RowGroups groups_;
  kernels::RowSources sources_;
  std::vector<float> rows_, gains_;
  std::vector<uint32_t> row_of_;
};

}  // namespace keel::distribute
