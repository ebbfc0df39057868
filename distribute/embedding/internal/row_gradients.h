// RowGradients: the gradient of one replica's batch for the rows of one table.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <keel/framework/kernels/embedding/row_groups.h>

namespace keel::distribute {

// A feature of the table: its ids and the gradient of its pooled values, [samples, dim]; null for
// zeros.
struct PooledGradient {
  kernels::Bags bags;  // splits may be null
  const float* gradient = nullptr;
};

// Groups the ids of the features of one table, which has `rows` rows, by row.
void group_rows(std::span<const kernels::Bags> features, int64_t rows, kernels::RowGroups& out);

// Reuses its memory from step to step. Refers to the gradients it was filled from.
class RowGradients {
 public:
  // Call exchange_groups() first, with the result of group_rows(), then fill() with the gradients
  // of the same features.
  void exchange_groups(kernels::RowGroups& groups) { std::swap(groups_, groups); }
  void fill(std::span<const PooledGradient> features, kernels::Combiner combiner, int64_t dim);

  // Groups are rows of the table. Their entries have the order feature, sample, position.
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
