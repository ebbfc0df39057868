#include <keel/framework/config/config.h>

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::config_test {

using testing::HasSubstr;
using testing_support::message_of;

TEST(ConfigTest, HoldsOneValueOfItsKind) {
  EXPECT_TRUE(Config().is_null());
  EXPECT_TRUE(Config(true).boolean());
  EXPECT_EQ(Config(3).integer(), 3);
  EXPECT_EQ(Config(2.5).number(), 2.5);
  EXPECT_EQ(Config("x").string(), "x");
  EXPECT_EQ(Config::list({1, "a"}).items().size(), 2U);
  EXPECT_TRUE(Config::dict().is_dict());
  EXPECT_TRUE(Config(3).is_number());
  EXPECT_FALSE(Config(3.0).is_integer());
  EXPECT_FALSE(Config(true).is_number());
}

TEST(ConfigTest, IntegersAndDoublesConvertWhereExact) {
  EXPECT_EQ(Config(3).number(), 3.0);
  EXPECT_EQ(Config(3.0).integer(), 3);
  EXPECT_THROW(Config(3.5).integer(), TypeError);
  EXPECT_NE(Config(3), Config(3.0));
}

TEST(ConfigTest, AWrongKindIsATypeErrorThatNamesTheKind) {
  EXPECT_THROW(Config("x").boolean(), TypeError);
  EXPECT_THROW(Config(true).integer(), TypeError);
  EXPECT_THROW(Config().number(), TypeError);
  EXPECT_THROW(Config(1).string(), TypeError);
  EXPECT_THROW(Config::dict().items(), TypeError);
  EXPECT_THROW(Config::list({}).entries(), TypeError);
  EXPECT_THROW(Config(1).find("x"), TypeError);
  EXPECT_THROW(Config::list({}).set("x", 1), TypeError);
  EXPECT_THROW(Config::list({}).erase("x"), TypeError);
  EXPECT_THROW(Config::dict().push_back(1), TypeError);
  EXPECT_THAT(message_of<TypeError>([] { Config::list({}).string(); }), HasSubstr("a list"));
}

TEST(ConfigTest, KeysKeepTheirOrder) {
  Config config = Config::dict({{"b", 1}, {"a", 2}});
  config.set("c", 3);
  config.set("b", 4);
  EXPECT_EQ(config, Config::dict({{"b", 4}, {"a", 2}, {"c", 3}}));
  EXPECT_NE(config, Config::dict({{"a", 2}, {"b", 4}, {"c", 3}}));
  config.erase("a");
  config.erase("not there");
  EXPECT_EQ(config, Config::dict({{"b", 4}, {"c", 3}}));
  EXPECT_EQ(config.find("a"), nullptr);
  EXPECT_THROW(config["a"], ValueError);
}

TEST(ConfigTest, ListsGrow) {
  Config list = Config::list({});
  list.push_back("x");
  EXPECT_EQ(list, Config::list({"x"}));
}

TEST(ConfigTest, ValuesOfOptionsAreEncodedAndDecoded) {
  std::optional<int64_t> number = 7;
  decode(Config(), number);
  EXPECT_EQ(number, std::nullopt);
  decode(Config(9), number);
  EXPECT_EQ(number, 9);
  EXPECT_TRUE(encode(std::optional<int64_t>()).is_null());
  std::vector<std::string> words;
  decode(Config::list({"a", "b"}), words);
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(encode(words), Config::list({"a", "b"}));
  Shape shape;
  decode(Config::list({Config(), 3}), shape);
  EXPECT_EQ(shape, (Shape{kUnknown, 3}));
  EXPECT_EQ(encode(shape), Config::list({Config(), 3}));
}

TEST(ConfigTest, ADtypeIsANameOrAPolicyOfKeras) {
  DType dtype = DType::kFloat32;
  decode(Config("int64"), dtype);
  EXPECT_EQ(dtype, DType::kInt64);
  decode(Config::dict(
             {{"class_name", "DTypePolicy"}, {"config", Config::dict({{"name", "float64"}})}}),
         dtype);
  EXPECT_EQ(dtype, DType::kFloat64);
  EXPECT_EQ(encode(dtype), Config("float64"));
  EXPECT_THROW(decode(Config("float7"), dtype), ValueError);
}

struct PointOptions {
  int64_t x = 1;
  double y = 2.0;
  std::string name = "p";
  static constexpr void fields(auto& self, auto&& field) {
    field("x", self.x);
    field("y", self.y);
    field("name", self.name);
  }
};

// Options whose `fields` lack a member, with and without saying so.
struct ForgetfulOptions {
  std::optional<double> rate = {};
  std::vector<Shape> shapes = {};
  std::function<double(int64_t)> schedule = {};
  std::string name = {};
  static constexpr void fields(auto& self, auto&& field) {
    field("rate", self.rate);
    field("shapes", self.shapes);
    field("name", self.name);
  }
};
struct FunctionOptions {
  std::optional<double> rate = {};
  std::function<double(int64_t)> schedule = {};
  static constexpr const char* kUnsaved[] = {"schedule"};  // a function
  static constexpr void fields(auto& self, auto&& field) { field("rate", self.rate); }
};
// These cannot be counted, and are not checked.
struct DerivedOptions : PointOptions {
  bool flag = false;
};
struct RuntimeOptions {
  int64_t x = 1, y = 2;
  static void fields(auto& self, auto&& field) { field("x", self.x); }
};

// to_config() and from_config() of ForgetfulOptions do not compile. The message names the struct:
//   static assertion failed due to requirement 'kFieldsListAllMembers<ForgetfulOptions>'
TEST(ConfigTest, AMemberThatTheFieldsDoNotListIsACompileTimeError) {
  using config_internal::CountableFields;
  using config_internal::kFieldsListAllMembers;
  static_assert(kFieldsListAllMembers<PointOptions>);
  static_assert(CountableFields<ForgetfulOptions>);
  static_assert(config_internal::has_members<ForgetfulOptions, 4>());
  static_assert(!kFieldsListAllMembers<ForgetfulOptions>);
  static_assert(kFieldsListAllMembers<FunctionOptions>);
  static_assert(!CountableFields<DerivedOptions>);
  static_assert(!CountableFields<RuntimeOptions>);
  EXPECT_EQ(to_config(FunctionOptions{.rate = 0.5}), Config::dict({{"rate", 0.5}}));
  EXPECT_EQ(to_config(RuntimeOptions{.x = 3}), Config::dict({{"x", 3}}));
}

TEST(ConfigTest, OptionsRoundTripThroughTheirConfig) {
  const Config config = to_config(PointOptions{.x = 5, .name = "q"});
  EXPECT_EQ(config, Config::dict({{"x", 5}, {"y", 2.0}, {"name", "q"}}));
  EXPECT_EQ(to_config(from_config<PointOptions>(config, "Point")), config);
  EXPECT_EQ(from_config<PointOptions>(Config::dict(), "Point").y, 2.0);
}

TEST(ConfigTest, UnknownKeysAndWrongKindsNameTheClassAndTheKey) {
  const auto message = [](const Config& config) -> std::string {
    return message_of<Error>([&] { from_config<PointOptions>(config, "Point"); });
  };
  EXPECT_THROW(from_config<PointOptions>(Config::dict({{"z", 1}}), "Point"), ValueError);
  EXPECT_THROW(from_config<PointOptions>(Config::dict({{"x", "1"}}), "Point"), TypeError);
  const std::string unknown = message(Config::dict({{"z", 1}}));
  EXPECT_THAT(unknown, HasSubstr("Point"));
  EXPECT_THAT(unknown, HasSubstr("'z'"));
  const std::string wrong = message(Config::dict({{"y", "1"}}));
  EXPECT_THAT(wrong, HasSubstr("Point"));
  EXPECT_THAT(wrong, HasSubstr("'y'"));
}

}  // namespace keel::config_test
