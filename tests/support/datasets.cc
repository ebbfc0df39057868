#include "tests/support/datasets.h"

#include <numeric>
#include <vector>

namespace keel::testing_support {

data::Dataset range_dataset(int64_t n) {
  std::vector<int64_t> values(n);
  std::iota(values.begin(), values.end(), int64_t{0});
  return data::Dataset::from_tensor_slices(Tensors(Tensor::from(values, {n})));
}

}  // namespace keel::testing_support
