#include <keel/framework/config/registry.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::registry_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::message_of;

struct Shape2D {
  virtual ~Shape2D() = default;
  virtual double area() const = 0;
};

struct SquareOptions {
  double side = 1;
  static constexpr void fields(auto& self, auto&& field) { field("side", self.side); }
};
struct Square final : Shape2D {
  static constexpr char kClassName[] = "Square";
  using Options = SquareOptions;
  explicit Square(Options options) : side(options.side) {}
  double area() const override { return side * side; }
  double side;
};

struct Point final : Shape2D {
  static constexpr char kClassName[] = "Point";
  static std::shared_ptr<Point> from_config(const Config&) { return std::make_shared<Point>(); }
  double area() const override { return 0; }
};

TEST(RegistryTest, ClassesAreMadeFromTheirConfigs) {
  Registry<Shape2D> registry("shape");
  registry.add_all<Square, Point>();
  EXPECT_EQ(registry.make("Square", Config::dict({{"side", 3}}))->area(), 9);
  EXPECT_EQ(registry.make("Point", {})->area(), 0);
  EXPECT_THAT(registry.class_names(), ElementsAre("Point", "Square"));
  EXPECT_THAT(message_of([&] { registry.make("Circle", {}); }),
              HasSubstr("unknown shape class 'Circle'; register it first"));
}

TEST(RegistryTest, ALaterClassReplacesMakerAndTraits) {
  Registry<Shape2D> registry("shape");
  registry.add<Square>({.package = "keras", .call = "x0, x"});
  EXPECT_EQ(registry.traits("Square").package, "keras");
  EXPECT_EQ(registry.traits("Square").call, "x0, x");
  registry.add("Square", [](const Config&) { return std::make_shared<Point>(); });
  EXPECT_EQ(registry.make("Square", {})->area(), 0);
  EXPECT_EQ(registry.traits("Square").package, "");
  EXPECT_EQ(registry.traits("Square").call, "inputs");
}

TEST(RegistryTest, UnknownClassesHaveTheTraitsOfAUser) {
  const Registry<Shape2D> registry("shape");
  EXPECT_EQ(registry.traits("Mine>Circle").package, "");
  EXPECT_EQ(registry.traits("Mine>Circle").ignored_keys, "");
}

TEST(RegistryTest, ObjectsHaveTheModuleOfTheirPackage) {
  const auto written = [](const char* package, const char* class_name) {
    return to_json(to_keras_object({.package = package}, "losses", class_name, Config::dict()));
  };
  EXPECT_EQ(written("keras", "Huber"),
            R"({"module": "keras.losses", "class_name": "Huber", "config": {}, )"
            R"("registered_name": null})");
  EXPECT_EQ(written("keel", "Power"),
            R"({"module": "keel.losses", "class_name": "Power", "config": {}, )"
            R"("registered_name": "keel>Power"})");
  EXPECT_EQ(written("", "Mine>Power"), R"({"module": null, "class_name": "Power", "config": {}, )"
                                       R"("registered_name": "Mine>Power"})");
  EXPECT_EQ(written("", "Power"), written("keras", "Power"));
}

}  // namespace keel::registry_test
