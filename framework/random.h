// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, "Parallel random numbers:
// as easy as 1, 2, 3"). A number depends on (seed, purpose, index) only: never on threads,
// shards, or what was drawn before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <keel/framework/tensor.h>

namespace keel {

// One endless sequence of random numbers.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t purpose = 0;

  // Four independent 32-bit words at position `index`; `lane` makes further ones.
  std::array<uint32_t, 4> bits(uint64_t index, uint64_t lane = 0) const;
  // The stream whose bits(index) are this one's bits(index, lane).
  RandomStream at_lane(uint64_t lane) const;

  // Fills out[i] with the number of index first + i.
  void uniform(std::span<float> out, uint64_t first, float low, float high) const;  // [low, high)
  void normal(std::span<float> out, uint64_t first, float mean, float stddev) const;
  // A normal redrawn until it lies within two stddev of the mean.
  void truncated_normal(std::span<float> out, uint64_t first, float mean, float stddev) const;
  // Uniform in [0, bound), without bias a user could measure.
  void uniform_int(std::span<int64_t> out, uint64_t first, int64_t bound) const;
  // A permutation of 0 ... n - 1. O(n).
  std::vector<int64_t> permutation(int64_t n) const;
};

// Seeds everything drawn without a seed of its own (keras.utils.set_random_seed). Streams are
// numbered from here in the order they are made, so a program that builds the same things in the
// same order gets the same numbers. Without a call the seed is 0: programs repeat by default.
void set_random_seed(uint64_t seed);
// The next stream; or the stream of `seed` alone, if given.
RandomStream next_random_stream(std::optional<int64_t> seed = {});

}  // namespace keel
