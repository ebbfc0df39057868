// A small training problem and the results of Keras 3.16.0: five steps over a kernel [4, 3] and a
// bias [3], whose 15 numbers are concatenated here.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/update_rule.h>
#include <keel/optimizers/optimizer.h>

#include "tests/support/optimizers.h"

namespace keel::testing_support {

using Numbers = std::array<float, 15>;

struct GoldenRun {
  std::vector<Numbers> after;            // after each step
  std::map<std::string, Numbers> slots;  // after the last step, by slot name
};

inline constexpr Numbers kInitial = {0.44161215f, 0.727587f,    -1.7196478f, 1.9415181f,
                                     -1.3445414f, 0.13989426f,  -0.5998727f, 1.1079614f,
                                     -1.2478242f, 0.9592743f,   -1.4115111f, -0.86866075f,
                                     0.41317615f, -0.12561056f, 0.72782415f};
inline constexpr std::array<Numbers, 5> kGradients = {
    Numbers{0.7648206f, -0.7231186f, 0.5796767f, -0.059204135f, -1.134243f, -0.59070665f,
            -0.5215774f, -0.11082502f, 0.9569775f, 0.33532873f, -0.66826355f, 0.68892384f,
            -1.7745333f, 0.7553391f, 0.9821682f},
    Numbers{0.07983765f, -0.5058375f, -0.63437945f, 0.35724452f, -0.72898275f, 0.08086885f,
            0.5146385f, 0.07738202f, -1.1692219f, 0.88569003f, 0.8964013f, 0.046572227f,
            0.21381181f, -0.3201065f, 0.20103428f},
    Numbers{-0.05565045f, 1.0098275f, 0.34757105f, -1.0446589f, 0.22385624f, -0.22763437f,
            0.08159867f, 0.57532704f, 0.019507462f, 0.003746677f, -0.7481493f, -1.2292806f,
            0.4969583f, -0.14066905f, 0.0736497f},
    Numbers{1.0190599f, 1.0687823f, -0.2692529f, -0.49148354f, -0.8384779f, -0.37534174f,
            0.40037653f, 0.40527752f, 1.0511285f, 0.877171f, 0.6010989f, -0.30024457f, -1.2591575f,
            -0.5180101f, -0.4781866f},
    Numbers{-0.54258543f, -0.45982638f, 0.0968299f, 0.9700499f, -0.2823639f, -0.20923848f,
            0.17143238f, -0.2203112f, -0.6529806f, 0.53796595f, 0.6333874f, 1.2226036f,
            -0.16157871f, 0.9511268f, 0.56667805f}};

inline std::vector<Tensor> kernel_and_bias(const Numbers& numbers) {
  const std::span<const float> all(numbers);
  return {Tensor::from(all.first(12), {4, 3}), Tensor::from(all.subspan(12), {3})};
}

inline Numbers together(const std::vector<Variable>& kernel_bias) {
  Numbers out;
  const Tensor kernel = kernel_bias[0].read(), bias = kernel_bias[1].read();
  std::ranges::copy(kernel.data<float>(), out.begin());
  std::ranges::copy(bias.data<float>(), out.begin() + 12);
  return out;
}

inline void expect_golden(const Numbers& received, const Numbers& expected, const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(received[i], expected[i], 2e-6 + 1e-5 * std::abs(expected[i])) << what << ", " << i;
  }
}

inline std::vector<Variable> golden_variables() {
  const std::vector<Tensor> initial = kernel_and_bias(kInitial);
  return {Variable(initial[0], {.name = "kernel"}), Variable(initial[1], {.name = "bias"})};
}

// Runs the problem and compares the variables after each step, and the slots at the end.
inline void expect_runs_as(const OptimizerHandle& optimizer, const GoldenRun& expected) {
  const std::vector<Variable> variables = golden_variables();
  for (size_t step = 0; step < kGradients.size(); ++step) {
    const std::vector<Tensor> gradients = kernel_and_bias(kGradients[step]);
    optimizer->apply_gradients({gradients[0], gradients[1]}, variables);
    expect_golden(together(variables), expected.after[step],
                  ("step " + std::to_string(step)).c_str());
  }
  EXPECT_EQ(optimizer->iterations(), 5);
  const std::vector<Variable> of_kernel = optimizer->slots(variables[0]);
  const std::vector<Variable> of_bias = optimizer->slots(variables[1]);
  ASSERT_EQ(of_kernel.size(), expected.slots.size());
  for (size_t i = 0; i < of_kernel.size(); ++i) {
    const std::string& name = of_kernel[i].name();
    EXPECT_EQ(of_kernel[i].path(), "kernel/" + name);
    expect_golden(together({of_kernel[i], of_bias[i]}), expected.slots.at(name), name.c_str());
  }
}

// The beginning of the config of a class: its name and the defaults of the common options.
inline std::string common_config(const std::string& name, const std::string& learning_rate) {
  return R"({"name": ")" + name + R"(", "learning_rate": )" + learning_rate +
         R"(, "weight_decay": null, "clipnorm": null, "global_clipnorm": null, )"
         R"("clipvalue": null, "use_ema": false, "ema_momentum": 0.99, )"
         R"("ema_overwrite_frequency": null, "loss_scale_factor": null, )"
         R"("gradient_accumulation_steps": null, )";
}

// The config is unchanged after it is written to a file and read again.
inline void expect_config_round_trip(const OptimizerHandle& optimizer) {
  const std::string text = to_json(optimizers::serialize(*optimizer));
  const OptimizerHandle copy = optimizers::deserialize(parse_json(text));
  EXPECT_EQ(copy->class_name(), optimizer->class_name());
  EXPECT_EQ(copy->name(), optimizer->name());
  EXPECT_EQ(to_json(optimizers::serialize(*copy)), text);
}

}  // namespace keel::testing_support
