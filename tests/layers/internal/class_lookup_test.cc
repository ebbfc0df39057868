#include <keel/layers/internal/class_lookup.h>

#include <gtest/gtest.h>

namespace keel::class_lookup_test {

constexpr ClassAlias kAliases[] = {{"logcosh", "LogCosh"}, {"mse", "Mine"}};
const std::vector<std::string> kClasses = {"KLDivergence", "LogCosh", "MeanSquaredError"};

TEST(FindClassTest, TakesClassNamesInBothSpellings) {
  EXPECT_EQ(find_class(kClasses, {}, "MeanSquaredError"), "MeanSquaredError");
  EXPECT_EQ(find_class(kClasses, {}, "mean_squared_error"), "MeanSquaredError");
  EXPECT_EQ(find_class(kClasses, {}, "kl_divergence"), "KLDivergence");
  EXPECT_EQ(find_class(kClasses, {}, "meansquarederror"), "");
}

TEST(FindClassTest, TakesCommonAliasesUnlessTheCallerHasTheSame) {
  EXPECT_EQ(find_class(kClasses, {}, "mse"), "MeanSquaredError");
  EXPECT_EQ(find_class(kClasses, kAliases, "mse"), "Mine");
  EXPECT_EQ(find_class(kClasses, kAliases, "logcosh"), "LogCosh");
}

}  // namespace keel::class_lookup_test
