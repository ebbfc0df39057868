#include <keel/framework/base/shared_function.h>

#include <gtest/gtest.h>

namespace keel::shared_function_test {

using Function = SharedFunction<int(int)>;

int twice(int x) { return 2 * x; }
int thrice(int x) { return 3 * x; }

TEST(SharedFunctionTest, IsEmptyByDefaultAndOfAnEmptyFunction) {
  EXPECT_FALSE(Function());
  EXPECT_FALSE(Function(nullptr));
  EXPECT_FALSE(Function(std::function<int(int)>()));
  EXPECT_EQ(Function().function(), nullptr);
  EXPECT_EQ(Function(), Function(nullptr));
  EXPECT_NE(Function(), Function(twice));
}

TEST(SharedFunctionTest, CallsItsFunction) {
  int by = 5;
  EXPECT_EQ(Function(twice)(4), 8);
  EXPECT_EQ(Function([by](int x) { return by * x; })(4), 20);
}

TEST(SharedFunctionTest, CopiesAreEqual) {
  int by = 5;
  const Function f = [by](int x) { return by * x; };
  const Function copy = f;
  EXPECT_EQ(f, copy);
  EXPECT_EQ(f.identity(), copy.identity());
}

TEST(SharedFunctionTest, PlainFunctionsCompareByAddress) {
  EXPECT_EQ(Function(twice), Function(&twice));
  EXPECT_EQ(Function(twice), Function(std::function<int(int)>(twice)));
  EXPECT_NE(Function(twice), Function(thrice));
}

TEST(SharedFunctionTest, CapturelessLambdasCompareByType) {
  const auto one = [](int x) { return x; };
  const auto other = [](int x) { return x; };
  EXPECT_EQ(Function(one), Function(one));
  EXPECT_NE(Function(one), Function(other));
}

TEST(SharedFunctionTest, EachStatefulObjectIsADifferentFunction) {
  const auto counter = [count = 0](int x) mutable { return count += x; };
  EXPECT_NE(Function(counter), Function(counter));
}

TEST(SharedFunctionTest, ReferencesToOneObjectAreEqual) {
  auto counter = [count = 0](int x) mutable { return count += x; };
  auto other = counter;
  const Function f = std::ref(counter);
  EXPECT_EQ(f, Function(std::ref(counter)));
  EXPECT_NE(f, Function(std::ref(other)));
  f(2);
  EXPECT_EQ(f(3), 5);
}

}  // namespace keel::shared_function_test
