#include <gtest/gtest.h>

#include <keel/layers/layer_types.h>

namespace keel::seed_generator_test {

std::vector<float> numbers(const RandomNumbers& random) {
  std::vector<float> out(8);
  random.stream.uniform(out, random.first, 0, 1);
  return out;
}

TEST(SeedGeneratorTest, CountsItsCallsAndDrawsOtherNumbersAtEach) {
  SeedGenerator generator(3);
  const Variable calls = generator.make_state();
  EXPECT_EQ(calls.name(), "seed_generator_state");
  EXPECT_FALSE(calls.trainable());
  const std::vector<float> first = numbers(generator.next());
  const std::vector<float> second = numbers(generator.next());
  EXPECT_NE(first, second);
  EXPECT_EQ(calls.read().item<int64_t>(), 2);
  calls.assign(Tensor::full<int64_t>({1}, 1));
  EXPECT_EQ(numbers(generator.next()), second);
}

TEST(SeedGeneratorTest, TheSeedDecides) {
  SeedGenerator a(3), b(3), c(4);
  for (SeedGenerator* generator : {&a, &b, &c}) generator->make_state();
  const std::vector<float> first = numbers(a.next());
  EXPECT_EQ(first, numbers(b.next()));
  EXPECT_NE(first, numbers(c.next()));
}

}  // namespace keel::seed_generator_test
