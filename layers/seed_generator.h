// SeedGenerator: random numbers that are others at each call of a layer
// (keras.random.SeedGenerator).
#pragma once

#include <optional>

#include <keel/autodiff/variable.h>
#include <keel/framework/random.h>

namespace keel {

// The numbers of one call on one replica: those of `stream` from `first` on. `first` is a multiple
// of four, so that words of stream.bits() can be counted too: they begin at first / 4.
struct RandomNumbers {
  RandomStream stream;
  uint64_t first = 0;
};

// Numbers are a function of the seed, the number of calls so far, the replica and their position,
// whatever the number of threads. The number of calls is a variable, so that checkpoints take it
// up again. A layer holds a generator and gives its state to add_state() when it is built:
//   void build_weights(const TensorSpec&) override { add_state(random_.make_state()); }
class SeedGenerator {
 public:
  // Unset: the next stream of set_random_seed.
  explicit SeedGenerator(std::optional<int64_t> seed) : stream_(next_random_stream(seed)) {}

  // `seed_generator_state` (int64, shape {1}). Once, before next().
  Variable make_state();
  // The numbers of the next call, which this counts. Not for symbolic calls: they draw nothing.
  RandomNumbers next() const;

 private:
  const RandomStream stream_;
  Variable calls_;
};

}  // namespace keel
