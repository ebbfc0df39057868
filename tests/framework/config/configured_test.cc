#include <keel/framework/config/configured.h>

#include <gtest/gtest.h>

namespace keel::configured_test {

// A class of functions with one option.
class Scale {
 public:
  static constexpr const char* kClassName = "ScaleBy2";

  static std::shared_ptr<Scale> from_config(const Config& config) {
    const Config* value = config.find("factor");
    return std::make_shared<Scale>(value == nullptr ? 1 : value->number());
  }
  static Registry<Scale>& registry() {
    static Registry<Scale> classes("scale");
    static const bool is_filled = [] { return classes.add<Scale>(), true; }();
    static_cast<void>(is_filled);
    return classes;
  }

  explicit Scale(double by) : factor(by) {}
  std::string class_name() const { return kClassName; }
  Config get_config() const { return Config::dict({{"factor", factor}}); }

  double factor;
};

TEST(ConfiguredTest, SnakeCaseNamesBecomeClassNames) {
  EXPECT_EQ(class_name_of("unit_norm"), "UnitNorm");
  EXPECT_EQ(class_name_of("l1_l2"), "L1L2");
  EXPECT_EQ(class_name_of("UnitNorm"), "UnitNorm");
}

TEST(ConfiguredTest, IsEmptyOrHoldsASharedObject) {
  EXPECT_FALSE(Configured<Scale>());
  const Configured<Scale> by_name = "scale_by2";
  EXPECT_EQ(by_name->factor, 1);
  const Configured<Scale> copy = by_name;
  EXPECT_EQ(&*copy, &*by_name);
  EXPECT_EQ(Configured<Scale>("ScaleBy2", Config::dict({{"factor", 3}}))->factor, 3);
}

TEST(ConfiguredTest, UnknownNamesAreErrors) {
  EXPECT_THROW(Configured<Scale>("offset"), ValueError);
}

TEST(ConfiguredTest, ConfigsAreReadBack) {
  Configured<Scale> read;
  decode(encode(Configured<Scale>(std::make_shared<Scale>(5))), read);
  EXPECT_EQ(read->factor, 5);
  decode(Config("scale_by2"), read);
  EXPECT_EQ(read->factor, 1);
  decode(encode(Configured<Scale>()), read);
  EXPECT_FALSE(read);
}

}  // namespace keel::configured_test
