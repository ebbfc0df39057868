// Loops over rows of a usual dimension, compiled for it.
#pragma once

#include <cstdint>

namespace keel::kernels {

// Calls fn.template operator()<kDim>() with the dimension as a constant if it is a usual one, else
// with 0.
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
