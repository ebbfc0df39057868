#include <keel/framework/kernels/convolution/axis_map.h>

#include <algorithm>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/convolution/fused.h>

namespace keel::kernels {

void AxisMap::add_row(const std::vector<Element>& row) {
  elements.insert(elements.end(), row.begin(), row.end());
  starts.push_back(std::ssize(elements));
}

AxisMap AxisMap::transposed() const {
  std::vector<std::vector<Element>> lists(columns);
  for (int64_t row = 0; row < rows(); ++row) {
    for (int64_t at = starts[row]; at < starts[row + 1]; ++at) {
      lists[elements[at].column].push_back({.column = row, .weight = elements[at].weight});
    }
  }
  AxisMap out = {.columns = rows()};
  for (const auto& list : lists) out.add_row(list);
  return out;
}

template <class T>
void map_axis(const AxisMap& map, int64_t outer, int64_t inner, const T* x, T* y) {
  constexpr int64_t kGrain = 16384;  // elements of a block
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(inner, 1));
  parallel_for(outer * map.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % map.rows();
      const T* const slice = x + i / map.rows() * map.columns * inner;
      T* __restrict out = y + i * inner;
      std::fill_n(out, inner, T{0});
      for (int64_t at = map.starts[row]; at < map.starts[row + 1]; ++at) {
        const T* const from = slice + map.elements[at].column * inner;
        const T weight = static_cast<T>(map.elements[at].weight);
        for (int64_t k = 0; k < inner; ++k) out[k] = fused_multiply_add(weight, from[k], out[k]);
      }
    }
  });
}

template void map_axis(const AxisMap&, int64_t, int64_t, const float*, float*);
template void map_axis(const AxisMap&, int64_t, int64_t, const double*, double*);

}  // namespace keel::kernels
