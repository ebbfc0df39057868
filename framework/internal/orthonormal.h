// Random orthonormal vectors, for the initializer Orthogonal.
#pragma once

#include <cstdint>
#include <vector>

#include <keel/framework/random.h>

namespace keel {

// Returns `count` orthonormal vectors, stored one after another: the Q factor of a QR decomposition
// whose R has a positive diagonal, by Gram-Schmidt. `count` must not exceed `length`.
std::vector<double> orthonormal_vectors(int64_t count, int64_t length, const RandomStream& stream);

}  // namespace keel
