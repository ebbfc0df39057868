#include <keel/framework/base/shape.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"

namespace keel::shape_test {

using testing::HasSubstr;
using testing_support::message_of;

TEST(ShapeTest, KnowsRankDimensionsAndSize) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_EQ((Shape{3, 0}).size(), 0);
}

TEST(ShapeTest, RejectsInvalidDimensions) {
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), ValueError);
  EXPECT_THROW((Shape{-2}), ValueError);
  EXPECT_NO_THROW((Shape{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ShapeTest, RejectsAxesOutOfRange) {
  const Shape shape = {2, 3};
  EXPECT_EQ(shape.normalize_axis(-2), 0);
  EXPECT_THROW(shape.normalize_axis(2), ValueError);
  EXPECT_THROW(shape.normalize_axis(-3), ValueError);
  EXPECT_THROW(shape[2], ValueError);
  EXPECT_THROW(shape.with(2, 1), ValueError);
  EXPECT_THROW(shape.without(2), ValueError);
  EXPECT_THROW(shape.inserted(3, 1), ValueError);
  EXPECT_THROW(Shape()[0], ValueError);
}

TEST(ShapeTest, AnUnknownOrHugeSizeIsAnError) {
  EXPECT_THROW((Shape{kUnknown, 2}.size()), ValueError);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}.size()), ValueError);
  EXPECT_FALSE((Shape{kUnknown, 2}.fully_defined()));
  EXPECT_TRUE((Shape{1, 2}.fully_defined()));
}

TEST(ShapeTest, EditingReturnsNewShapes) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.with(-1, 9), (Shape{2, 3, 9}));
  EXPECT_EQ(shape.without(1), (Shape{2, 4}));
  EXPECT_EQ(shape.drop_last(), (Shape{2, 3}));
  EXPECT_EQ(shape.inserted(0, 7), (Shape{7, 2, 3, 4}));
  EXPECT_EQ(shape.inserted(3, 7), (Shape{2, 3, 4, 7}));
  EXPECT_EQ(shape.inserted(-1, 7), (Shape{2, 3, 4, 7}));
  EXPECT_EQ(shape.slice(1, 3), (Shape{3, 4}));
  EXPECT_EQ(shape.slice(1, 1), Shape());
  EXPECT_EQ(shape + (Shape{5}), (Shape{2, 3, 4, 5}));
  EXPECT_NE(shape, (Shape{2, 3}));
}

TEST(ShapeTest, PrintsLikePython) {
  const auto text = [](const Shape& shape) { return str(shape); };
  EXPECT_EQ(text({}), "()");
  EXPECT_EQ(text({3}), "(3,)");
  EXPECT_EQ(text({kUnknown, 4}), "(?, 4)");
}

TEST(ShapeTest, BroadcastsAsNumpyDoes) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}, "add"), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {5}, "add"), (Shape{5}));
  EXPECT_EQ(broadcast_shapes({0, 3}, {1, 3}, "add"), (Shape{0, 3}));
  EXPECT_EQ(broadcast_shapes({kUnknown, 3}, {1, 3}, "add"), (Shape{kUnknown, 3}));
  EXPECT_EQ(broadcast_shapes({kUnknown}, {kUnknown}, "add"), (Shape{kUnknown}));
  EXPECT_EQ(broadcast_shapes({kUnknown, 3}, {4, 1}, "add"), (Shape{4, 3}));
  EXPECT_THAT(message_of<ValueError>([&] { broadcast_shapes({2, 3}, {2, 4}, "ops.add"); }),
              HasSubstr("ops.add"));
}

TEST(ShapeTest, CompatibleShapesAgreeWhereBothAreKnown) {
  EXPECT_TRUE(compatible({kUnknown, 3}, {5, 3}));
  EXPECT_TRUE(compatible({}, {}));
  EXPECT_FALSE(compatible({kUnknown, 3}, {5, 4}));
  EXPECT_FALSE(compatible({kUnknown}, {5, 4}));
}

}  // namespace keel::shape_test
