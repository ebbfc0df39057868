#include <keel/optimizers/schedule_free.h>

#include <gtest/gtest.h>

#include "tests/optimizers/golden.h"
#include "tests/support/expectations.h"

namespace keel::schedule_free_test {

using optimizers::ScheduleFreeAdamW;
using testing_support::common_config;
using testing_support::expect_config_round_trip;
using testing_support::expect_same_bits;

TEST(ScheduleFreeAdamWTest, WritesKerasKeys) {
  EXPECT_EQ(to_json(ScheduleFreeAdamW(ScheduleFreeAdamWOptions{})->get_config()),
            common_config("schedule_free_adam_w", "0.0025") +
                R"("beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-08, "warmup_steps": 0})");
  expect_config_round_trip(ScheduleFreeAdamW({.beta_1 = 0.5, .warmup_steps = 10}));
}

TEST(ScheduleFreeAdamWTest, RejectsParametersOutOfRange) {
  EXPECT_THROW(ScheduleFreeAdamW({.beta_1 = 0}), ValueError);
  EXPECT_THROW(ScheduleFreeAdamW({.beta_1 = 1}), ValueError);
  EXPECT_THROW(ScheduleFreeAdamW({.beta_2 = 1}), ValueError);
  EXPECT_THROW(ScheduleFreeAdamW({.epsilon = -1}), ValueError);
  EXPECT_THROW(ScheduleFreeAdamW({.warmup_steps = -1}), ValueError);
  EXPECT_THROW(ScheduleFreeAdamW({.lazy_rows = LazyRows::kClosedForm}), ValueError);
}

TEST(ScheduleFreeAdamWTest, TheFirstSlotStartsWithTheVariable) {
  const ScheduleFreeAdamW optimizer(ScheduleFreeAdamWOptions{});
  const Variable w(Tensor::from<float>({3, -4}, {2}), {.name = "w"});
  optimizer->build({w});
  expect_same_bits(optimizer->slots(w)[0].read(), w.read());
  w.assign(Tensor::zeros({2}));
  EXPECT_EQ(optimizer->slots(w)[0].read().to_vector<float>(), (std::vector<float>{3, -4}));
  // The first step starts with the values that the variable has then.
  optimizer->apply_gradients({Tensor::zeros({2})}, {w});
  EXPECT_EQ(w.read().to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(ScheduleFreeAdamWTest, EvaluatesWithTheAverageOfTheIterates) {
  const ScheduleFreeAdamW optimizer({.learning_rate = 0.1, .beta_2 = 0, .epsilon = 0});
  const Variable w(Tensor::from<float>({1}, {1}), {.name = "w"}),
      other(Tensor::from<float>({5}, {1}), {.name = "other"});
  const Tensor g = Tensor::from<float>({2}, {1});
  for (int i = 0; i < 3; ++i) optimizer->apply_gradients({g}, {w});
  // The iterates are 0.9, 0.8 and 0.7.
  const Tensor trained = w.read();
  optimizer->swap_to_eval({w, other});
  EXPECT_NEAR(w.read().data<float>()[0], 0.8, 1e-6);
  EXPECT_EQ(other.read().data<float>()[0], 5);
  EXPECT_THROW(optimizer->swap_to_eval({w}), RuntimeError);
  optimizer->swap_to_train({w, other});
  EXPECT_NEAR(w.read().data<float>()[0], trained.data<float>()[0], 1e-6);
  EXPECT_THROW(optimizer->swap_to_train({w}), RuntimeError);
}

TEST(ScheduleFreeAdamWTest, DeferredRowsGetTheSameBits) {
  const ScheduleFreeAdamW lazy(
      {.learning_rate = 0.1, .weight_decay = 0.1, .lazy_rows = LazyRows::kReplay});
  const ScheduleFreeAdamW eager({.learning_rate = 0.1, .weight_decay = 0.1});
  Tensor start = Tensor::zeros({6, 2});
  float x = 0;
  for (float& value : start.mutable_data<float>()) value = (x += 0.37F);
  const Variable a(start.clone(), {.name = "a"}), b(start.clone(), {.name = "b"});
  for (int64_t step = 0; step < 20; ++step) {
    const IndexedSlices rows = {.ids = Tensor::from<int64_t>({step % 6, (step * step) % 5}, {2}),
                                .values = Tensor::from<float>({1, -2, 0.5F, 3}, {2, 2}),
                                .dense_shape = {6, 2}};
    lazy->apply_gradients({rows}, {a});
    eager->apply_gradients({rows}, {b});
  }
  expect_same_bits(a.read(), b.read());
  for (size_t s = 0; s < 2; ++s) {
    expect_same_bits(lazy->slots(a)[s].read(), eager->slots(b)[s].read());
  }
}

}  // namespace keel::schedule_free_test
