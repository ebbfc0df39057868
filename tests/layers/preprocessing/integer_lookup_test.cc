// Tests layers/preprocessing/index_lookup.cc.
#include <gtest/gtest.h>

#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/registry.h>

#include "tests/support/files.h"
#include "tests/support/layer_contract.h"
#include "tests/support/temporary_folder.h"

namespace keel::integer_lookup_test {

using layers::IntegerLookup;
using testing_support::expect_layer_contract;
using testing_support::int_spec;
using Ids = std::vector<int64_t>;

TEST(IntegerLookupTest, MapsIntegersOfBothWidths) {
  const IntegerLookup lookup({.vocabulary = {{12, 1138, 42}}});
  EXPECT_EQ(lookup(Tensor::from<int64_t>({42, 7, 12}, {3})).to_vector<int64_t>(), (Ids{3, 0, 1}));
  EXPECT_EQ(lookup(Tensor::from<int32_t>({1138}, {1})).to_vector<int64_t>(), (Ids{2}));
}

TEST(IntegerLookupTest, UnknownIntegersAreNumberedByRemainder) {
  const IntegerLookup lookup({.num_oov_indices = 3, .vocabulary = {{100}}});
  EXPECT_EQ(lookup(Tensor::from<int64_t>({4, -1, 6, 100}, {4})).to_vector<int64_t>(),
            (Ids{1, 2, 0, 3}));
}

// Expected: FarmHash's fingerprint of "1000", and SipHash-2-4 with the key (7, 9), modulo 3.
TEST(IntegerLookupTest, UnknownIntegersAreNumberedByHashOnRequest) {
  const std::vector<int64_t> vocabulary = {12, 36, 1138, 42};
  const Tensor words = Tensor::from<int64_t>({12, 1138, 42, 42, 1000, 36}, {6});
  const IntegerLookup hashed(
      {.num_oov_indices = 3, .vocabulary = vocabulary, .oov_method = "farmhash"});
  EXPECT_EQ(hashed(words).to_vector<int64_t>(), (Ids{3, 5, 6, 6, 2, 4}));
  const IntegerLookup salted({.num_oov_indices = 3,
                              .vocabulary = vocabulary,
                              .oov_method = "farmhash",
                              .salt = HashingSalt(7, 9)});
  EXPECT_EQ(salted(words).to_vector<int64_t>(), (Ids{3, 5, 6, 6, 2, 4}));
  EXPECT_THROW(IntegerLookup({.oov_method = "other"}), ValueError);
}

TEST(IntegerLookupTest, InvertReturnsIntegers) {
  const IntegerLookup lookup({.vocabulary = {{12, 42}}, .invert = true});
  EXPECT_EQ(lookup(Tensor::from<int64_t>({2, 0, 1}, {3})).to_vector<int64_t>(), (Ids{42, -1, 12}));
}

TEST(IntegerLookupTest, InvertReturnsTheDtypeOfTheVocabulary) {
  const IntegerLookup lookup(
      {.vocabulary = {{7, 9}}, .invert = true, .vocabulary_dtype = DType::kInt32});
  EXPECT_EQ(lookup(Tensor::from<int64_t>({2, 0}, {2})).to_vector<int32_t>(),
            (std::vector<int32_t>{9, -1}));
  EXPECT_EQ(lookup->get_config()["vocabulary_dtype"], Config("int32"));
  EXPECT_THROW(IntegerLookup({.vocabulary_dtype = DType::kFloat32}), ValueError);
}

TEST(IntegerLookupTest, AdaptSortsByFrequencyThenByDescendingValue) {
  const IntegerLookup lookup({.mask_token = 0});
  lookup->adapt(Tensor::from<int64_t>({0, 0, 5, 7, 7, 9}, {6}));
  EXPECT_EQ(lookup->get_vocabulary(), (Ids{0, -1, 7, 9, 5}));
}

TEST(IntegerLookupTest, VocabulariesMayBeReadFromFiles) {
  const testing_support::TemporaryFolder folder;
  testing_support::write_bytes(folder / "ids.txt", "7\n-3\r\n\n");
  const IntegerLookup lookup({.vocabulary = read_vocabulary<int64_t>(folder / "ids.txt")});
  EXPECT_EQ(lookup->get_vocabulary(false), (std::vector<int64_t>{7, -3}));
  EXPECT_EQ(read_vocabulary<std::string>(folder / "ids.txt"),
            (std::vector<std::string>{"7", "-3"}));
  testing_support::write_bytes(folder / "words.txt", "7\nseven");
  EXPECT_THROW(read_vocabulary<int64_t>(folder / "words.txt"), ValueError);
  EXPECT_THROW(read_vocabulary<int64_t>(folder / "none.txt"), IoError);
}

TEST(IntegerLookupTest, ConfigsMustNotNameFiles) {
  for (const char* class_name : {"IntegerLookup", "StringLookup", "TextVectorization"}) {
    const Config config = Config::dict({{"name", "ids"}, {"vocabulary", "/etc/hostname"}});
    EXPECT_THROW(
        layers::deserialize(Config::dict({{"class_name", class_name}, {"config", config}})),
        ValueError);
  }
}

TEST(IntegerLookupTest, RejectsOtherDtypes) {
  const IntegerLookup lookup({.vocabulary = {{1}}});
  EXPECT_THROW(lookup(Tensor::from<float>({1}, {1})), TypeError);
  EXPECT_THROW(lookup(Tensor::from<std::string>({"1"}, {1})), TypeError);
}

TEST(IntegerLookupTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "IntegerLookup",
                         .config = R"({"vocabulary": [3, 4]})",
                         .inputs = int_spec({2, 3}),
                         .output = int_spec({2, 3})});
}

}  // namespace keel::integer_lookup_test
