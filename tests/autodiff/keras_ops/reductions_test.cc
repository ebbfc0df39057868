// Tests cases of autodiff/keras_ops/reductions.cc that Keras's records do not have: values at the
// edges of bins, NaN in argmax(), and gradients of reductions that leave NaN out.
#include <keel/autodiff/keras_ops/reductions.h>

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace keel::reductions_test {

namespace K = keras_ops;
using testing_support::floats;
using Floats = std::vector<float>;

TEST(HistogramTest, EdgesHaveThePrecisionOfTheValues) {
  // Float 0.7 is less than 0.7, and float 0.1 is greater than 0.1. Both are at the edges of bins of
  // numpy, whose edges of float32 numbers are float32 numbers.
  const auto [counts, edges] = K::histogram(floats({0.1F, 0.3F, 0.7F, 1}, {4}), 10, {{0, 1}});
  EXPECT_EQ(counts.to_vector<float>(), (Floats{0, 1, 0, 1, 0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(edges.to_vector<float>()[7], 0.7F);
  const auto [inside, ends] = K::histogram(floats({0.1F, 0.7F, 0.7F}, {3}), 1, {{0.7, 0.9}});
  EXPECT_EQ(inside.to_vector<float>(), Floats{2});
  EXPECT_EQ(K::histogram(floats({0.1F}, {1}), 1, {{0, 0.1}}).first.to_vector<float>(), Floats{1});
}

}  // namespace keel::reductions_test
