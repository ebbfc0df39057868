#include <keel/layers/embedding/tables/internal/id_rows.h>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::id_rows_test {

using testing_support::message_of;

using Ids = std::vector<int64_t>;
using Values = std::vector<float>;

const IdRowsOptions kAll = {.vocabulary_size = 100};

IdRows rows_of(const TensorLike& ids, const std::optional<TensorLike>& weights = {},
               const IdRowsOptions& options = kAll) {
  return to_id_rows("test", ids, weights, options);
}

TEST(IdRowsTest, RankOneIdsAreRows) {
  const IdRows rows = rows_of(Tensor::from<int32_t>({7, 9}, {2}));
  EXPECT_EQ(rows.ids.to_vector<int64_t>(), (Ids{7, 9}));
  EXPECT_EQ(rows.row_splits.to_vector<int64_t>(), (Ids{0, 1, 2}));
  EXPECT_EQ(rows.rows(), 2);
}

TEST(IdRowsTest, WeightsOfRankOneAreKeptForSumOnly) {
  const Tensor ids = Tensor::from<int64_t>({7, 9}, {2});
  const Tensor weights = Tensor::from<float>({2, 3}, {2});
  EXPECT_FALSE(rows_of(ids, weights).weights);
  const IdRows sum = rows_of(ids, weights, {.vocabulary_size = 100, .combiner = "sum"});
  EXPECT_EQ(sum.weights.to_vector<float>(), (Values{2, 3}));
}

TEST(IdRowsTest, RaggedRowsAreTruncated) {
  const RaggedTensor ids = RaggedTensor::from_rows<int64_t>({{1, 2, 3}, {}, {4}});
  const RaggedTensor weights = RaggedTensor::from_rows<float>({{1, 2, 3}, {}, {4}});
  const IdRows rows = rows_of(ids, weights, {.vocabulary_size = 100, .max_row_length = 2});
  EXPECT_EQ(rows.ids.to_vector<int64_t>(), (Ids{1, 2, 4}));
  EXPECT_EQ(rows.weights.to_vector<float>(), (Values{1, 2, 4}));
  EXPECT_EQ(rows.row_splits.to_vector<int64_t>(), (Ids{0, 2, 2, 3}));
}

TEST(IdRowsTest, SparseRowsMayBeEmptyAtTheEnd) {
  const SparseTensor ids = {.indices = Tensor::from<int64_t>({0, 0, 0, 3, 1, 1}, {3, 2}),
                            .values = Tensor::from<int64_t>({5, 6, 7}, {3}),
                            .dense_shape = {3, 4}};
  const IdRows rows = rows_of(ids);
  EXPECT_EQ(rows.ids.to_vector<int64_t>(), (Ids{5, 6, 7}));
  EXPECT_EQ(rows.row_splits.to_vector<int64_t>(), (Ids{0, 2, 3, 3}));
}

TEST(IdRowsTest, OneWeightMayApplyToAllIds) {
  const IdRows rows = rows_of(Tensor::zeros({2, 2}, DType::kInt64), Tensor::scalar<float>(3));
  EXPECT_EQ(rows.weights.to_vector<float>(), (Values{3, 3, 3, 3}));
}

TEST(IdRowsTest, ErrorsNameTheCaller) {
  const auto message = [](const TensorLike& ids) -> std::string {
    return message_of<Error>([&] { rows_of(ids); });
  };
  EXPECT_EQ(message(Tensor::from<int64_t>({1, 100}, {2})),
            "test: id 100 at position 1 is outside the table of 100 rows");
  EXPECT_EQ(message(Tensor::zeros({1, 1, 1}, DType::kInt64)),
            "test: ids must have shape [rows] or [rows, n], received (1, 1, 1)");
}

TEST(IdRowsTest, RejectsWeightsOfAnotherKindOrShape) {
  const Tensor ids = Tensor::zeros({2, 2}, DType::kInt64);
  EXPECT_THROW(rows_of(ids, RaggedTensor::from_rows<float>({{1, 1}, {1, 1}})), TypeError);
  EXPECT_THROW(rows_of(ids, Tensor::zeros({2, 2}, DType::kString)), TypeError);
  EXPECT_THROW(rows_of(ids, Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(rows_of(ids, Tensor::zeros({3})), ValueError);
}

}  // namespace keel::id_rows_test
