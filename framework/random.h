// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A number depends only on (seed, purpose, index), not on threads, shards or the
// order of draws.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <keel/framework/tensor.h>

namespace keel {

// An unbounded sequence of random numbers.
struct RandomStream {
  uint64_t seed = 0;     // the seed of the program or of one object
  uint64_t purpose = 0;  // distinguishes the streams of one seed

  // Returns four independent 32-bit words for position `index`. Other values of `lane` give further
  // independent words.
  std::array<uint32_t, 4> bits(uint64_t index, uint64_t lane = 0) const;
  // Returns the stream whose bits(index) are this stream's bits(index, lane).
  RandomStream at_lane(uint64_t lane) const;

  // The following functions fill out[i] with the number at index first + i. uniform() draws from
  // [low, high).
  void uniform(std::span<float> out, uint64_t first, float low, float high) const;
  void normal(std::span<float> out, uint64_t first, float mean, float stddev) const;
  // Draws normal numbers restricted to two standard deviations around the mean.
  void truncated_normal(std::span<float> out, uint64_t first, float mean, float stddev) const;
  // Draws uniform integers from [0, bound) without measurable bias: each probability is within
  // 2^-64 of 1 / bound. Throws ValueError unless bound >= 1.
  void uniform_int(std::span<int64_t> out, uint64_t first, int64_t bound) const;
  // Returns a random permutation of 0 ... n - 1 in O(n) time. Throws ValueError if `n` is negative.
  std::vector<int64_t> permutation(int64_t n) const;
};

// Sets the seed of all streams that have no seed of their own (keras.utils.set_random_seed) and
// restarts their numbering. Streams are numbered in the order in which they are created, so a
// program that builds the same objects in the same order draws the same numbers. The default seed
// is 0, so programs are reproducible without a call. Thread safe.
void set_random_seed(uint64_t seed);
// Returns the next stream of the program, or, if `seed` is given, the stream that depends on `seed`
// alone. Thread safe.
RandomStream next_random_stream(std::optional<int64_t> seed = {});

}  // namespace keel
