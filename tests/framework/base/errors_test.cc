#include <keel/framework/base/errors.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include <keel/framework/base/dtype.h>
#include <keel/framework/base/shape.h>

namespace keel::errors_test {
namespace {

enum Unscoped { kFirst, kSecond };
struct Printed {
  int value;
  friend std::ostream& operator<<(std::ostream& out, const Printed& printed) {
    return out << "<" << printed.value << ">";
  }
};

// Prints the arguments with operator<<.
template <class... Args>
std::string streamed(const Args&... args) {
  std::ostringstream out;
  ((out << args), ...);
  return out.str();
}

TEST(ErrorsTest, StrPrintsEveryTypeLikeAStream) {
  const auto expect_equal = [](const auto&... args) { EXPECT_EQ(str(args...), streamed(args...)); };
  expect_equal();
  expect_equal("literal", std::string("text"), std::string_view("view"), 'c', std::string());
  expect_equal(true, false, 1, -2, 3U, short{-4}, int64_t{-5}, std::numeric_limits<int64_t>::min(),
               std::numeric_limits<uint64_t>::max());
  expect_equal(int8_t{'a'}, uint8_t{'b'}, kSecond, Printed{7}, DType::kFloat32,
               Shape({2, kUnknown}), std::filesystem::path("/a b"));
}

TEST(ErrorsTest, ANullPointerIsAnEmptyText) {
  const char* const none = nullptr;
  EXPECT_EQ(str("a", none, "b"), "ab");
}

TEST(ErrorsTest, StrPrintsNumbersWithSixDigitsLikeAStream) {
  for (const double value :
       {0.0, -0.0, 1.5, 0.1, 1.0 / 3, 1e20, 1e-7, 1e5, 1e6, 999999.5, 123456789.0, 1e-4, 1e-5,
        std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(),
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(str(value), streamed(value));
    EXPECT_EQ(str(static_cast<float>(value)), streamed(static_cast<float>(value)));
  }
  EXPECT_EQ(str(std::nan("")), "nan");
}

TEST(ErrorsTest, MessagesAreMadeFromTheirPartsAndClassesAreRelated) {
  try {
    throw InvalidIdError("table 'item': id ", 7, " of ", std::string("5"));
  } catch (const ValueError& error) {
    const ValueError copy = error;
    EXPECT_STREQ(copy.what(), "table 'item': id 7 of 5");
  }
  EXPECT_THROW(throw IoError("a"), Error);
  EXPECT_THROW(throw TypeError("a"), std::runtime_error);
}

}  // namespace
}  // namespace keel::errors_test
