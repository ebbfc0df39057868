#include <keel/layers/utils/saving.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>

namespace keel::saving_test {

using saving::CustomObject;
using saving::CustomObjectScope;
using saving::register_keras_serializable;

struct TimesOptions {
  double factor = 1;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("factor", self.factor);
  }
};

// A layer of the user, without a package in its name. Classes differ by `kAdded`.
template <int kAdded>
class Times final : public OptionsLayer<TimesOptions> {
 public:
  static constexpr char kClassName[] = "Times";
  explicit Times(Options options) : OptionsLayer(kClassName, std::move(options)) {}

 private:
  Tensor call(const Tensor& x, const CallContext&) override {
    return ops::scale(x, options_.factor + kAdded);
  }
};

float result_of(const LayerHandle<Layer>& layer) {
  return layer(Tensor::full<float>({1}, 1)).item<float>();
}

Config config_of(const std::string& class_name) {
  return Config::dict({{"class_name", class_name}, {"config", Config::dict({{"factor", 2.0}})}});
}

TEST(SavingTest, ClassesAreWrittenWithTheirPackage) {
  EXPECT_EQ(register_keras_serializable<Times<0>>("SavingTest"), "SavingTest>Times");
  EXPECT_EQ((register_keras_serializable<Times<10>>("Other")), "Other>Times");
  EXPECT_EQ((register_keras_serializable<Times<20>>("SavingTest", "More")), "SavingTest>More");
  const LayerHandle<Layer> layer = make_layer<Times<10>>(TimesOptions{.factor = 3});
  EXPECT_EQ(saving::get_registered_name(*layer), "Other>Times");
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(config["class_name"], Config("Other>Times"));
  EXPECT_EQ(result_of(layers::deserialize(config)), 13);
  EXPECT_EQ(result_of(layers::deserialize(config_of("SavingTest>Times"))), 2);
  EXPECT_EQ(result_of(layers::deserialize(config_of("SavingTest>More"))), 22);
  EXPECT_EQ(saving::get_registered_name(*layers::Dense({.units = 1})), "Dense");
}

TEST(SavingTest, ModelsHoldThePackageOfTheirLayers) {
  register_keras_serializable<Times<0>>("SavingTest");
  const Sequential model(
      {.layers = {layers::Dense({.units = 1}), make_layer<Times<0>>(TimesOptions{.factor = 4})}});
  const Config config = layers::serialize(*model);
  EXPECT_EQ(config["config"]["layers"].items().back()["class_name"], Config("SavingTest>Times"));
  EXPECT_EQ(layers::deserialize(config)->class_name(), "Sequential");
}

TEST(SavingTest, RejectsInvalidNames) {
  EXPECT_THROW(register_keras_serializable<Times<0>>(""), ValueError);
  EXPECT_THROW(register_keras_serializable<Times<0>>("A>B"), ValueError);
  EXPECT_THROW(register_keras_serializable<Times<0>>("A", "B>C"), ValueError);
}

TEST(SavingTest, ScopesMakeClassesKnown) {
  EXPECT_THROW(layers::deserialize(config_of("Times")), ValueError);
  {
    const CustomObjectScope scope(
        {CustomObject::of<Times<1>>(), CustomObject::of<Times<2>>("Two")});
    EXPECT_EQ(result_of(layers::deserialize(config_of("Times"))), 3);
    EXPECT_EQ(result_of(layers::deserialize(config_of("Two"))), 4);
    {
      const CustomObjectScope inner({CustomObject::of<Times<5>>()});
      EXPECT_EQ(result_of(layers::deserialize(config_of("Times"))), 7);
    }
    EXPECT_EQ(result_of(layers::deserialize(config_of("Times"))), 3);
  }
  EXPECT_THROW(layers::deserialize(config_of("Times")), ValueError);
  EXPECT_THROW(layers::deserialize(config_of("Two")), ValueError);
}

TEST(SavingTest, ScopesTakePrecedenceOverBuiltinClasses) {
  {
    const CustomObjectScope scope({CustomObject::of<Times<1>>("Activation")});
    EXPECT_EQ(result_of(layers::deserialize(config_of("Activation"))), 3);
  }
  EXPECT_EQ(layer_registry().traits("Activation").package, "keras");
}

}  // namespace keel::saving_test
