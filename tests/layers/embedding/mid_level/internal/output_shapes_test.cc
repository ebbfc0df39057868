#include <keel/layers/embedding/mid_level/internal/output_shapes.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"

namespace keel::output_shapes_test {

using Shapes = std::vector<Shape>;
using fixture::IdRows;
using fixture::ids;
using fixture::ragged;
using fixture::sparse;
using fixture::sparse_at;
using testing::HasSubstr;
using testing_support::message_of;

FeatureConfig feature(int64_t length = 0, std::optional<Shape> output_shape = {}) {
  return {.table = make_table({.vocabulary_size = 8, .dim = 2}),
          .max_sequence_length = length,
          .output_shape = output_shape};
}

OutputShapes one(const FeatureConfig& config) {
  return OutputShapes(Nest<FeatureConfig>{{"f", config}});
}
Shape from_build(const FeatureConfig& config, const OptionalShape& shape) {
  return one(config).of_input_shapes(InputShapes{{"f", shape}})[0];
}
Shape from_input(const FeatureConfig& config, const TensorLike& input) {
  return one(config).of_inputs({input})[0];
}
Tensor dense(const Shape& shape) { return Tensor::zeros(shape, DType::kInt64); }
TensorLike empty_sparse(const Shape& shape) {
  return SparseTensor{.indices = Tensor::zeros({0, shape.rank()}, DType::kInt64),
                      .values = Tensor::zeros({0}, DType::kInt64),
                      .dense_shape = shape};
}

// Returns the output shape after build with these arguments.
OptionalShape settled(const FeatureConfig& config, const Shape& candidate) {
  OutputShapes shapes = one(config);
  shapes.check({candidate});
  shapes.update({candidate});
  try {
    return shapes.fully_defined()[0];
  } catch (const ValueError&) {
    return {};
  }
}

TEST(OutputShapesTest, DenseInputsLoseALastDimensionOfOne) {
  EXPECT_EQ(from_input(feature(), dense({8})), (Shape{8}));
  EXPECT_EQ(from_input(feature(), dense({8, 1})), (Shape{8}));
  EXPECT_EQ(from_input(feature(), dense({8, 3, 1})), (Shape{8, 3}));
  EXPECT_EQ(from_input(feature(5), dense({8, 1})), (Shape{8}));
  EXPECT_THROW(from_input(feature(), dense({})), ValueError);
  EXPECT_THROW(from_input(feature(), dense({8, 3})), ValueError);
}

TEST(OutputShapesTest, SparseInputsLoseTheLastDimensionOrBecomeSequences) {
  EXPECT_EQ(from_input(feature(), empty_sparse({8, 3})), (Shape{8}));
  EXPECT_EQ(from_input(feature(), empty_sparse({8, 3, 4})), (Shape{8, 3}));
  EXPECT_EQ(from_input(feature(5), empty_sparse({8, 3})), (Shape{8, 5}));
  EXPECT_EQ(from_input(feature(5, Shape{8}), empty_sparse({8, 3})), (Shape{8}));
  EXPECT_EQ(from_input(feature(5), empty_sparse({8, 3, 4})), (Shape{8, 3}));
  EXPECT_THROW(from_input(feature(), empty_sparse({8})), ValueError);
}

TEST(OutputShapesTest, RaggedInputsHaveRankTwo) {
  EXPECT_EQ(from_input(feature(), ragged(IdRows{{1}, {}, {2, 3}})), (Shape{3}));
  EXPECT_EQ(from_input(feature(5), ragged(IdRows{{1}, {}, {2, 3}})), (Shape{3, 5}));
  EXPECT_EQ(from_input(feature(5, Shape{3}), ragged(IdRows{{1}, {}, {2, 3}})), (Shape{3}));
  const RaggedTensor deep = {.values = Tensor::zeros({3, 2}, DType::kInt64),
                             .row_splits = ids({0, 1, 3}, {3})};
  EXPECT_THROW(from_input(feature(), deep), ValueError);
}

TEST(OutputShapesTest, ShapesOfBuildLoseTheLastDimensionUnlessItIsTheBatch) {
  EXPECT_EQ(from_build(feature(), Shape{8}), (Shape{8}));
  EXPECT_EQ(from_build(feature(), Shape{8, 3}), (Shape{8}));
  EXPECT_EQ(from_build(feature(), Shape{8, 3, 1}), (Shape{8, 3}));
  EXPECT_EQ(from_build(feature(5), Shape{8, 3}), (Shape{8, 5}));
  EXPECT_EQ(from_build(feature(5), Shape{8, 1}), (Shape{8}));
  EXPECT_EQ(from_build(feature(5, Shape{8}), Shape{8, 3}), (Shape{8}));
  EXPECT_THROW(from_build(feature(), {}), ValueError);
  EXPECT_THROW(from_build(feature(), Shape{}), ValueError);
}

TEST(OutputShapesTest, ShapesOfBuildAreMatchedToFeaturesByPositionAlone) {
  const OutputShapes two(Nest<FeatureConfig>{{"a", feature()}, {"b", feature()}});
  EXPECT_EQ(two.of_input_shapes(
                InputShapes::list({OptionalShape(Shape{4, 1}), OptionalShape(Shape{6, 2, 1})})),
            (Shapes{{4}, {6, 2}}));
  EXPECT_THROW(two.of_input_shapes(InputShapes::list({OptionalShape(Shape{4, 1})})), ValueError);
}

TEST(SpecRowsE, E09_OutputShapesFollowFromTheInputs) {
  const OutputShapes three(Nest<FeatureConfig>::tuple({feature(), feature(), feature()}));
  EXPECT_EQ(three.of_inputs({dense({1, 3, 1}), empty_sparse({2, 4, 2}), empty_sparse({2, 4, 3})}),
            (Shapes{{1, 3}, {2, 4}, {2, 4}}));
}

TEST(SpecRowsE, E10_ASequenceFeatureIsBuiltFromEitherShape) {
  EXPECT_EQ(from_build(feature(3), Shape{2, 2}), (Shape{2, 3}));
  EXPECT_EQ(from_build(feature(3), Shape{2, 3, 2}), (Shape{2, 3}));
}

TEST(SpecRowsE, E11_ABatchSizeIsEnough) {
  OutputShapes shapes(Nest<FeatureConfig>::tuple({feature(), feature(5), feature(0, Shape{2, 4})}));
  const Shapes candidates = shapes.of_batch_size(8);
  EXPECT_EQ(candidates[0], (Shape{8}));
  EXPECT_EQ(candidates[1], (Shape{8, 5}));
  shapes.check(candidates);
  shapes.update(candidates);
  EXPECT_EQ(shapes.fully_defined(), (Shapes{{8}, {8, 5}, {2, 4}}));
  EXPECT_THROW(shapes.of_batch_size(-1), ValueError);
}

TEST(OutputShapesTest, DisagreementsAreErrorsWithPathAndBothShapes) {
  const OutputShapes known = one(feature(0, Shape{2, 4}));
  const std::string what = message_of<ValueError>([&] { known.check({Shape{1, 1}}); });
  EXPECT_THAT(what, HasSubstr("'f'"));
  EXPECT_THAT(what, HasSubstr("(2, 4)"));
  EXPECT_THAT(what, HasSubstr("(1, 1)"));
  EXPECT_THROW(known.check({Shape{2, 4, 1}}), ValueError);
  EXPECT_THROW(one(feature(0, Shape{8})).check({Shape{4, 2}}), ValueError);
}

TEST(OutputShapesTest, UnknownZeroAndFoldedShapesAgree) {
  const OutputShapes known = one(feature(0, Shape{2, 4}));
  EXPECT_NO_THROW(known.check({Shape{2, 4}}));
  EXPECT_NO_THROW(known.check({Shape{kUnknown, 4}}));
  EXPECT_NO_THROW(known.check({Shape{2, 0}}));
  EXPECT_NO_THROW(known.check({Shape{7}}));
  EXPECT_NO_THROW(one(feature(0, Shape{2, 3, 4})).check({Shape{5, 6}}));
  EXPECT_NO_THROW(one(feature()).check({Shape{5, 6}}));
}

TEST(OutputShapesTest, KnownShapesAreKept) {
  EXPECT_EQ(settled(feature(), {2, 3}), OptionalShape(Shape{2, 3}));
  EXPECT_EQ(settled(feature(0, Shape{2, 4}), {2, kUnknown}), OptionalShape(Shape{2, 4}));
  EXPECT_EQ(settled(feature(0, Shape{kUnknown, 3}), {2, 3}), OptionalShape());
  EXPECT_EQ(settled(feature(), {1, kUnknown}), OptionalShape());
  EXPECT_EQ(settled(feature(0, Shape{}), Shape{}), OptionalShape(Shape{}));
}

TEST(OutputShapesTest, UndefinedShapesAreErrorsWithThePath) {
  EXPECT_THAT(message_of<ValueError>([&] { one(feature()).fully_defined(); }), HasSubstr("'f'"));
}

TEST(OutputShapesTest, AnIneffectiveSequenceLengthIsReported) {
  testing::internal::CaptureStderr();
  settled(feature(5), {2, 3});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("max_sequence_length"));
  testing::internal::CaptureStderr();
  settled(feature(5), {2, 5});
  settled(feature(), {2, 3});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace keel::output_shapes_test
