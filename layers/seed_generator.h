// SeedGenerator: random numbers that differ at each call of a layer (keras.random.SeedGenerator).
#pragma once

#include <optional>

#include <keel/autodiff/variable.h>
#include <keel/framework/random.h>

namespace keel {

// The random numbers of one call on one replica: the numbers of `stream` from position `first` on.
// `first` is a multiple of four, so positions in stream.bits() can be used as well: the words of
// this call start at first / 4.
struct RandomNumbers {
  RandomStream stream;
  uint64_t first = 0;
};

// Generates random numbers that are a function of the seed, the number of earlier calls, the
// replica and their position. They do not depend on the number of threads. The number of calls is a
// variable, so a restored checkpoint continues the sequence. A layer holds a generator and passes
// its state to add_state() when it is built:
//   void build_weights(const TensorSpec&) override { add_state(random_.make_state()); }
class SeedGenerator {
 public:
  // Uses `seed`, or the next stream of set_random_seed() if it is unset.
  explicit SeedGenerator(std::optional<int64_t> seed) : stream_(next_random_stream(seed)) {}

  // Creates the variable `seed_generator_state` (int64, shape {1}). Call it once, before next().
  Variable make_state();
  // Returns the numbers of the next call and increments the number of calls. Do not use it in
  // symbolic calls, which consume no random numbers.
  RandomNumbers next() const;

 private:
  const RandomStream stream_;
  Variable calls_;
};

}  // namespace keel
