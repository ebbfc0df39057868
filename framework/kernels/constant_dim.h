// with_constant_dim: compiles loops over rows for the common row dimensions.
#pragma once

#include <cstdint>

namespace keel::kernels {

// Calls fn.template operator()<kDim>() with kDim == dim if `dim` is a common dimension (8, 16, 32,
// 64 or 128), else with kDim == 0.
template <class Fn>
void with_constant_dim(int64_t dim, const Fn& fn) {
  switch (dim) {
    case 8:
      return fn.template operator()<8>();
    case 16:
      return fn.template operator()<16>();
    case 32:
      return fn.template operator()<32>();
    case 64:
      return fn.template operator()<64>();
    case 128:
      return fn.template operator()<128>();
    default:
      return fn.template operator()<0>();
  }
}

}  // namespace keel::kernels
