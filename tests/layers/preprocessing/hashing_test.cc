// Tests layers/preprocessing/internal/hash.cc, values.cc and framework/base/internal/siphash.cc.
#include <algorithm>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/preprocessing/internal/hash.h>
#include <keel/layers/preprocessing/preprocessing.h>

#include "tests/support/layer_contract.h"

namespace keel::hashing_test {

using layers::Hashing;
using testing_support::expect_layer_contract;
using testing_support::int_spec;
using testing_support::string_spec;
using Bins = std::vector<int64_t>;

Bins bins(const Hashing& hashing, const std::vector<std::string>& words) {
  return hashing(Tensor::from(words, {static_cast<int64_t>(words.size())})).to_vector<int64_t>();
}

// The test vector in the paper: key 00 01 ... 0f, input 00 01 ... 0e.
TEST(HashTest, SiphashMatchesItsPaper) {
  std::string input;
  for (char c = 0; c < 15; ++c) input += c;
  EXPECT_EQ(siphash24(0x0706050403020100, 0x0f0e0d0c0b0a0908, input), 0xa129ca6149be45e5);
}

// Expected bins from Keras's documentation.
TEST(HashingTest, SaltedBinsMatchKeras) {
  const std::vector<std::string> words = {"A", "B", "C", "D", "E"};
  EXPECT_EQ(bins(Hashing({.num_bins = 3, .salt = HashingSalt(133, 137)}), words),
            (Bins{1, 2, 1, 0, 2}));
  EXPECT_EQ(bins(Hashing({.num_bins = 3, .salt = 133}), words), (Bins{0, 0, 2, 1, 0}));
}

// The bins of A to E are from Keras's documentation; the others are FarmHash fingerprints modulo
// the number of bins, computed independently of this project.
TEST(HashingTest, UnsaltedBinsMatchKeras) {
  const std::vector<std::string> words = {
      "A", "B", "C", "D", "E", "a rather long sentence of more than thirty-two bytes"};
  EXPECT_EQ(bins(Hashing({.num_bins = 3}), words), (Bins{1, 0, 1, 1, 2, 0}));
  EXPECT_EQ(bins(Hashing({.num_bins = 1000003}), words),
            (Bins{127888, 832648, 203577, 194606, 428307, 163294}));
  EXPECT_EQ(bins(Hashing({.num_bins = 3, .mask_value = "C"}), words), (Bins{1, 1, 0, 2, 1, 2}));
  const Tensor numbers = Tensor::from<int64_t>({1, 2, 3, -4, 0, 123456789}, {6});
  EXPECT_EQ(Hashing({.num_bins = 97})(numbers).to_vector<int64_t>(), (Bins{88, 15, 4, 86, 12, 3}));
  EXPECT_EQ(Hashing({.num_bins = 5, .mask_value = 0})(numbers).to_vector<int64_t>(),
            (Bins{2, 4, 2, 3, 0, 3}));
  EXPECT_EQ(Hashing({.num_bins = 3, .salt = HashingSalt(133, 133)})(numbers).to_vector<int64_t>(),
            (Bins{2, 0, 1, 2, 1, 2}));
}

// Floats are truncated to integers.
TEST(HashingTest, FloatsHashAsTheirIntegers) {
  EXPECT_EQ(Hashing({.num_bins = 3})(Tensor::from<float>({1.5, -.5, 7}, {3})).to_vector<int64_t>(),
            (Bins{0, 1, 1}));
}

// Keras accepts no other dtype for bins.
TEST(HashingTest, ConfigsHaveTheDtypeOfTheBins) {
  EXPECT_EQ(Hashing({.num_bins = 3})->get_config()["dtype"], Config("int64"));
  EXPECT_EQ(Hashing({.num_bins = 3, .output_mode = "count"})->get_config()["dtype"],
            Config("float32"));
}

TEST(HashingTest, BinsAreSpreadOverTheirRange) {
  std::vector<std::string> words;
  for (int i = 0; i < 1000; ++i) words.push_back(std::to_string(i));
  std::vector<int64_t> count(10);
  for (int64_t bin : bins(Hashing({.num_bins = 10}), words)) ++count.at(bin);
  // Five standard deviations of a binomial distribution.
  for (int64_t n : count) EXPECT_NEAR(static_cast<double>(n), 100, 48);
}

TEST(HashingTest, IntegersHashAsTheirDigits) {
  const Hashing hashing({.num_bins = 1000});
  const Bins expected = bins(hashing, {"-12", "7"});
  EXPECT_EQ(hashing(Tensor::from<int64_t>({-12, 7}, {2})).to_vector<int64_t>(), expected);
  EXPECT_EQ(hashing(Tensor::from<int32_t>({-12, 7}, {2})).to_vector<int64_t>(), expected);
}

TEST(HashingTest, BinZeroIsReservedForTheMask) {
  const Hashing hashing({.num_bins = 2, .mask_value = ""});
  EXPECT_EQ(bins(hashing, {"", "a", "b", "c"}), (Bins{0, 1, 1, 1}));
  const Hashing integers({.num_bins = 2, .mask_value = 0});
  EXPECT_EQ(integers(Tensor::from<int64_t>({0, 5}, {2})).to_vector<int64_t>(), (Bins{0, 1}));
}

TEST(HashingTest, RaggedInputsKeepTheirSplits) {
  const RaggedTensor rows = RaggedTensor::from_rows<std::string>({{"a"}, {}, {"b", "a"}});
  const RaggedTensor y = Hashing({.num_bins = 9})(Tensors(rows)).leaf().ragged();
  EXPECT_EQ(y.values.dtype(), DType::kInt64);
  EXPECT_EQ(y.values.data<int64_t>()[0], y.values.data<int64_t>()[2]);
  EXPECT_EQ(y.row_splits.id(), rows.row_splits.id());
}

TEST(HashingTest, EncodesAsLookupsDo) {
  const Hashing hashing({.num_bins = 4, .output_mode = "count"});
  const Tensor y = hashing(Tensor::from<std::string>({"a", "a"}, {1, 2}));
  EXPECT_EQ(y.shape(), Shape({1, 4}));
  EXPECT_EQ(std::ranges::max(y.data<float>()), 2);
}

TEST(HashingTest, SparseEncodingsEqualDenseOnes) {
  const Tensor words = Tensor::from<std::string>({"a", "a", "b", "c"}, {2, 2});
  const SparseTensor y =
      Hashing({.num_bins = 1000, .output_mode = "count", .sparse = true})(Tensors(words))
          .leaf()
          .sparse();
  const Tensor dense = Hashing({.num_bins = 1000, .output_mode = "count"})(words);
  ASSERT_EQ(y.dense_shape, Shape({2, 1000}));
  ASSERT_EQ(y.indices.shape(), Shape({3, 2}));
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t at =
        y.indices.data<int64_t>()[2 * i] * 1000 + y.indices.data<int64_t>()[2 * i + 1];
    EXPECT_EQ(y.values.data<float>()[i], dense.data<float>()[at]);
  }
  EXPECT_THROW(Hashing({.num_bins = 3, .sparse = true}), ValueError);
}

TEST(HashingTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(Hashing({.num_bins = 0}), ValueError);
  EXPECT_THROW(Hashing({.num_bins = 1, .mask_value = ""}), ValueError);
  EXPECT_THROW(Hashing({.num_bins = 2, .output_mode = "some"}), ValueError);
  EXPECT_THROW(Hashing({.num_bins = 2})(Tensor::from<bool>({true}, {1})), TypeError);
}

TEST(HashTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Hashing",
                         .config = R"({"num_bins": 7, "salt": [1, 2]})",
                         .inputs = string_spec({2, 3}),
                         .output = int_spec({2, 3})});
}

}  // namespace keel::hashing_test
