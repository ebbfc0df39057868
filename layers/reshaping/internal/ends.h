// The numbers of positions that Cropping and ZeroPadding layers remove or add.
#pragma once

#include <array>
#include <string>

#include <keel/framework/base/errors.h>
#include <keel/layers/axes.h>

namespace keel {

// Returns the numbers for each axis.
inline std::array<Padding1D, 1> ends_of(const Padding1D& padding) { return {padding}; }
template <int N>
std::array<Padding1D, N> ends_of(const Paddings<N>& paddings) {
  std::array<Padding1D, N> out;
  for (int i = 0; i < N; ++i) out[i] = paddings[i];
  return out;
}

// Throws ValueError, naming `caller` and the option, for a negative number.
inline void check_ends(const auto& paddings, const char* option, const std::string& caller) {
  for (const auto& [before, after] : ends_of(paddings)) {
    if (before >= 0 && after >= 0) continue;
    throw ValueError(caller, ": ", option, " must not be negative, received ", before, " and ",
                     after);
  }
}

}  // namespace keel
