#include <keel/framework/base/function_ref.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

namespace keel::function_ref_test {

int doubled(int x) { return 2 * x; }
int call(FunctionRef<int(int)> fn, int x) { return fn(x); }

TEST(FunctionRefTest, CallsFunctionsLambdasAndFunctionObjects) {
  const std::function<int(int)> object = doubled;
  int offset = 3;
  EXPECT_EQ(call(doubled, 4), 8);
  EXPECT_EQ(call(&doubled, 4), 8);
  EXPECT_EQ(call(object, 4), 8);
  EXPECT_EQ(call(std::cref(object), 4), 8);
  EXPECT_EQ(call([&](int x) { return x + offset; }, 4), 7);
  EXPECT_EQ(call([](auto x) { return static_cast<char>(x); }, 65), 'A');
}

TEST(FunctionRefTest, ChangesTheCallableItself) {
  auto count = [n = 0](int) mutable { return ++n; };
  call(count, 0);
  const FunctionRef<int(int)> reference = count;
  const FunctionRef<int(int)> copy = reference;  // NOLINT: a copy refers to the same callable
  copy(0);
  EXPECT_EQ(count(0), 3);
}

TEST(FunctionRefTest, ForwardsArgumentsAndResultsWithoutCopies) {
  auto keep = [](std::unique_ptr<int> p) { return p; };
  const FunctionRef<std::unique_ptr<int>(std::unique_ptr<int>)> pass = keep;
  EXPECT_EQ(*pass(std::make_unique<int>(5)), 5);

  std::string text = "a";
  auto same = [](std::string& s) -> std::string& { return s; };
  EXPECT_EQ(&FunctionRef<std::string&(std::string&)>(same)(text), &text);
}

TEST(FunctionRefTest, DropsAResultThatTheSignatureDoesNotReturn) {
  int calls = 0;
  auto counter = [&](int) { return ++calls; };
  const FunctionRef<void(int)> fn = counter;
  fn(1);
  EXPECT_EQ(calls, 1);
}

TEST(FunctionRefTest, ConvertsOnlyFromCallablesOfTheSignature) {
  EXPECT_TRUE((std::is_convertible_v<int (*)(int), FunctionRef<int(int)>>));
  EXPECT_FALSE((std::is_convertible_v<int, FunctionRef<int(int)>>));
  EXPECT_FALSE((std::is_convertible_v<int (*)(std::string), FunctionRef<int(int)>>));
}

}  // namespace keel::function_ref_test
