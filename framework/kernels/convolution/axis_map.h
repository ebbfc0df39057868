// AxisMap: a sparse matrix that is applied along one axis, for example to resize it.
#pragma once

#include <cstdint>
#include <vector>

namespace keel::kernels {

// Row i of the matrix has the elements [starts[i], starts[i + 1]), with their columns and weights.
struct AxisMap {
  struct Element {
    int64_t column;
    double weight;
  };
  int64_t columns = 0;
  std::vector<int64_t> starts = {0};
  std::vector<Element> elements = {};

  int64_t rows() const { return std::ssize(starts) - 1; }
  void add_row(const std::vector<Element>& row);
  AxisMap transposed() const;
};

// Computes y[o, i, :] = the sum over the elements of row i of weight x[o, column, :]. x is
// [outer, map.columns, inner] and y [outer, map.rows(), inner]. T is float or double. The sums have
// one fixed order.
template <class T>
void map_axis(const AxisMap& map, int64_t outer, int64_t inner, const T* x, T* y);

}  // namespace keel::kernels
