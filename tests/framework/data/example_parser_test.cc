// Tests framework/data/example.cc and internal/example_wire.cc.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/tfrecord.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::data::example_parser_test {

using testing::HasSubstr;
using testing_support::floats;
using testing_support::ids;
using testing_support::message_of;
using testing_support::strings;
using testing_support::TemporaryFolder;

using Int64s = std::vector<int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

// Builds wire format by hand. All lengths here are below 128.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
         bytes;
}
std::string entry(const std::string& name, const std::string& feature) {
  return field(1, field(1, name) + field(2, feature));
}
std::string example(const std::string& entries) { return field(1, entries); }
std::string packed_ints(const std::string& varints) { return field(3, field(1, varints)); }

FeatureSpecs one(const FeatureSpec& spec) { return {{"x", spec}}; }
FeatureSpecs fixed_int(const Shape& shape = {}) {
  return one(FixedLenFeature{.shape = shape, .dtype = DType::kInt64});
}

Int64s parsed_ints(const std::string& bytes) {
  const Tensors out = parse_example(strings({bytes}), one(RaggedFeature{DType::kInt64}));
  return out["x"].leaf().ragged().values.to_vector<int64_t>();
}

template <class E>
std::string error(const Strings& examples, const FeatureSpecs& specs) {
  return message_of<E>([&] { parse_example(strings(examples), specs); });
}

TEST(ExampleParserTest, FixedFeaturesBecomeDenseTensors) {
  const Tensor serialized = strings({
      serialize_example(
          {{"id", ids({7})}, {"place", floats({1, 2, 3, 4})}, {"name", strings({"a"})}}),
      serialize_example(
          {{"id", ids({-8})}, {"place", floats({5, 6, 7, 8})}, {"name", strings({""})}}),
  });
  const Tensors out =
      parse_example(serialized, {{"id", FixedLenFeature{.dtype = DType::kInt64}},
                                 {"place", FixedLenFeature{.shape = {2, 2}}},
                                 {"name", FixedLenFeature{.shape = {1}, .dtype = DType::kString}}});
  EXPECT_EQ(out["id"].tensor().shape(), Shape({2}));
  EXPECT_EQ(out["id"].tensor().to_vector<int64_t>(), Int64s({7, -8}));
  EXPECT_EQ(out["place"].tensor().shape(), Shape({2, 2, 2}));
  EXPECT_EQ(out["place"].tensor().to_vector<float>(), Floats({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(out["name"].tensor().shape(), Shape({2, 1}));
  EXPECT_EQ(out["name"].tensor().to_vector<std::string>(), Strings({"a", ""}));
}

TEST(ExampleParserTest, FeaturesOfAnyLengthBecomeSparseOrRaggedTensors) {
  const Tensor serialized =
      strings({serialize_example({{"x", ids({1, 2})}}), serialize_example({}),
               serialize_example({{"x", Tensor()}}), serialize_example({{"x", ids({3, 4, 5})}})});
  const SparseTensor sparse =
      parse_example(serialized, one(VarLenFeature{DType::kInt64}))["x"].leaf().sparse();
  sparse.validate("test");
  EXPECT_EQ(sparse.dense_shape, Shape({4, 3}));
  EXPECT_EQ(sparse.indices.to_vector<int64_t>(), Int64s({0, 0, 0, 1, 3, 0, 3, 1, 3, 2}));
  EXPECT_EQ(sparse.values.to_vector<int64_t>(), Int64s({1, 2, 3, 4, 5}));
  const RaggedTensor ragged =
      parse_example(serialized, one(RaggedFeature{DType::kInt64}))["x"].leaf().ragged();
  ragged.validate("test");
  EXPECT_EQ(ragged.row_splits.to_vector<int64_t>(), Int64s({0, 2, 2, 2, 5}));
  EXPECT_EQ(ragged.values.to_vector<int64_t>(), Int64s({1, 2, 3, 4, 5}));
}

TEST(ExampleParserTest, MissingFeaturesTakeTheDefaultValue) {
  const Strings examples = {serialize_example({}), serialize_example({{"x", Tensor()}})};
  const auto parsed = [&](const Shape& shape, const Tensor& value) {
    const FixedLenFeature spec{.shape = shape, .dtype = value.dtype(), .default_value = value};
    return parse_example(strings(examples), one(spec))["x"].tensor();
  };
  EXPECT_EQ(parsed({}, Tensor::scalar<float>(0.5F)).to_vector<float>(), Floats({0.5F, 0.5F}));
  EXPECT_EQ(parsed({2}, Tensor::scalar<int64_t>(3)).to_vector<int64_t>(), Int64s({3, 3, 3, 3}));
  EXPECT_EQ(parsed({2}, ids({3, 4})).to_vector<int64_t>(), Int64s({3, 4, 3, 4}));
  EXPECT_EQ(parsed({}, Tensor::scalar<std::string>("?")).to_vector<std::string>(),
            Strings({"?", "?"}));
}

TEST(ExampleParserTest, FeaturesWithoutASpecAreSkipped) {
  const std::string bytes = example(entry("other", "\x1F damaged") + entry("x", packed_ints("\5")));
  const Tensors out = parse_example(strings({bytes}), fixed_int());
  EXPECT_EQ(out.entries().size(), 1U);
  EXPECT_EQ(out["x"].tensor().item<int64_t>(), 5);
}

TEST(ExampleParserTest, OfDuplicateFeaturesTheLastCounts) {
  const std::string first = entry("x", packed_ints("\5"));
  EXPECT_EQ(parsed_ints(example(first + entry("y", "") + entry("x", packed_ints("\6\7")))),
            Int64s({6, 7}));
  EXPECT_EQ(parsed_ints(example(first) + example(entry("x", packed_ints("\6")))), Int64s({6}));
  EXPECT_EQ(parsed_ints(example(first + entry("x", ""))), Int64s());
  // If a feature has several kinds of lists, the last kind applies, and all lists of that kind are
  // concatenated.
  EXPECT_EQ(parsed_ints(example(entry("x", packed_ints("\1") + field(1, field(1, "a")) +
                                               packed_ints("\2") + packed_ints("\3")))),
            Int64s({2, 3}));
}

TEST(ExampleParserTest, ListsMayBePackedOrNot) {
  EXPECT_EQ(parsed_ints(example(entry("x", field(3, "\x08\5\x08\x96\x01")))), Int64s({5, 150}));
  EXPECT_EQ(parsed_ints(example(entry("x", field(3, "\x08\5" + field(1, "\6\7") + "\x08\x08")))),
            Int64s({5, 6, 7, 8}));
  const std::string one_float("\x0D\x00\x00\x80\x3F", 5);
  const std::string two_floats = field(1, std::string("\x00\x00\x00\x40\x00\x00\x40\x40", 8));
  const std::string bytes = example(entry("x", field(2, one_float + two_floats)));
  const Tensors out = parse_example(strings({bytes}), one(FixedLenFeature{.shape = {3}}));
  EXPECT_EQ(out["x"].tensor().to_vector<float>(), Floats({1, 2, 3}));
}

TEST(ExampleParserTest, IntegersAreReadInFullRange) {
  const Int64s values = {
      0, -1, 127, 128, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  EXPECT_EQ(parsed_ints(serialize_example({{"x", ids(values)}})), values);
}

TEST(ExampleParserTest, FieldsOfLaterVersionsAreSkipped) {
  const std::string unknown = std::string("\x78\x05", 2) + field(9, "later") +
                              std::string("\x51", 1) + std::string(8, 'x') + "\x55" + "1234";
  const std::string list = field(3, field(1, "\5") + unknown);
  const std::string feature = unknown + list + unknown;
  const std::string inner = field(1, field(1, "x") + field(2, feature));
  EXPECT_EQ(parsed_ints(field(1, inner)), Int64s({5}));
  EXPECT_EQ(parsed_ints(unknown + field(1, inner) + unknown), Int64s({5}));
}

TEST(ExampleParserTest, ErrorsNameExampleFeatureExpectedAndReceived) {
  const std::string good = serialize_example({{"x", ids({1, 2})}});
  EXPECT_EQ(error<ValueError>({good, serialize_example({})}, fixed_int({2})),
            "parse_example: example 1, feature 'x': is missing and has no default value");
  EXPECT_EQ(error<ValueError>({good, serialize_example({{"x", ids({1, 2, 3})}})}, fixed_int({2})),
            "parse_example: example 1, feature 'x': expected 2 values for shape (2,), received 3");
  EXPECT_EQ(error<ValueError>({good, serialize_example({{"x", ids({})}})}, fixed_int({2})),
            "parse_example: example 1, feature 'x': expected 2 values for shape (2,), received 0");
  EXPECT_EQ(error<TypeError>({good, serialize_example({{"x", floats({1})}})}, fixed_int({2})),
            "parse_example: example 1, feature 'x': expected int64, received float32");
  EXPECT_EQ(error<TypeError>({good, serialize_example({{"x", strings({"a"})}})},
                             one(VarLenFeature{DType::kInt64})),
            "parse_example: example 1, feature 'x': expected int64, received string");
}

TEST(ExampleParserTest, TheFirstInvalidExampleIsNamed) {
  Strings examples(1000, serialize_example({{"x", ids({1})}}));
  for (const size_t bad : {900, 300, 700}) examples[bad] = serialize_example({});
  set_num_workers(4);
  EXPECT_THAT(error<ValueError>(examples, fixed_int()), HasSubstr("example 300,"));
  set_num_workers(1);
}

TEST(ExampleParserTest, MalformedBytesAreErrors) {
  const std::string good = example(entry("x", packed_ints("\5")));
  EXPECT_EQ(error<ValueError>({good, "\x0A\x05"}, fixed_int()),
            "parse_example: example 1: the bytes are not a tf.Example; pass the bytes of "
            "SerializeToString() or serialize_example()");
  const std::string too_long(11, '\x80');
  for (const std::string& bytes :
       {std::string("x"), std::string("\x08\x01"), std::string("\x0A"), std::string("\x00", 1),
        std::string("\x0B"), too_long, field(1, "\x08\x01"), field(1, field(1, "\x08\x01"))}) {
    EXPECT_THAT(error<ValueError>({bytes}, fixed_int()), HasSubstr("are not a tf.Example"));
  }
  const std::string long_varint = std::string(10, '\x80') + "\x01";
  for (const std::string& feature :
       {std::string("\x1A"), std::string("\x18\x01"), field(3, "\x0A\x05"), field(3, "\x0D\x01"),
        packed_ints("\x80"), packed_ints(long_varint), field(3, "\x08\x80")}) {
    for (const FeatureSpec& spec : {FeatureSpec(FixedLenFeature{.dtype = DType::kInt64}),
                                    FeatureSpec(VarLenFeature{DType::kInt64})}) {
      EXPECT_EQ(error<ValueError>({example(entry("x", feature))}, one(spec)),
                "parse_example: example 0, feature 'x': the bytes are malformed");
    }
  }
  EXPECT_THAT(
      error<ValueError>({example(entry("x", field(2, field(1, "abc"))))}, one(FixedLenFeature{})),
      HasSubstr("malformed"));
}

// Parsing arbitrary bytes either gives well-formed tensors or throws.
TEST(ExampleParserTest, RandomlyChangedBytesAreSafe) {
  const std::string good = serialize_example({{"a", ids({1, 300, -1})},
                                              {"b", floats({1, 2})},
                                              {"c", strings({"one", "two"})},
                                              {"d", Tensor()}});
  const ExampleParser parse(
      {{"a", RaggedFeature{DType::kInt64}},
       {"b", FixedLenFeature{.shape = {2}, .default_value = Tensor::scalar<float>(0)}},
       {"c", VarLenFeature{DType::kString}},
       {"d", VarLenFeature{DType::kFloat32}}});
  std::mt19937 random(7);
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      const uint32_t kind = random() % 3;
      if (kind == 0) bytes[at] = static_cast<char>(random());
      if (kind == 1) bytes.erase(at, random() % 4);
      if (kind == 2) bytes.insert(at, 1 + random() % 3, static_cast<char>(random()));
      if (bytes.empty()) break;
    }
    try {
      const Tensors out = parse(strings({bytes}));
      out["a"].leaf().ragged().validate("fuzz");
      out["c"].leaf().sparse().validate("fuzz");
      ++parsed;
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_GT(parsed, 0);
  EXPECT_LT(parsed, 20'000);
}

TEST(ExampleParserTest, SpecsAreCheckedWhenTheParserIsMade) {
  EXPECT_THROW(ExampleParser({}), ValueError);
  EXPECT_THROW(ExampleParser(one(FixedLenFeature{.dtype = DType::kInt32})), TypeError);
  EXPECT_THROW(ExampleParser(one(VarLenFeature{DType::kFloat64})), TypeError);
  EXPECT_THROW(ExampleParser(fixed_int({kUnknown})), ValueError);
  EXPECT_THROW(ExampleParser(one(FixedLenFeature{.default_value = Tensor::scalar<int64_t>(1)})),
               TypeError);
  EXPECT_THROW(ExampleParser(one(FixedLenFeature{.shape = {2}, .default_value = floats({1})})),
               ValueError);
}

TEST(ExampleParserTest, OnlyABatchOfStringsIsParsed) {
  const ExampleParser parse(fixed_int());
  EXPECT_THROW(parse(ids({1})), TypeError);
  EXPECT_THROW(parse(Tensor::scalar<std::string>("")), ValueError);
  EXPECT_THROW(parse(Tensors::list({})), TypeError);
  EXPECT_EQ(parse(strings({}))["x"].tensor().shape(), Shape({0}));
  const Tensors none = parse_example(strings({}), one(VarLenFeature{DType::kInt64}));
  EXPECT_EQ(none["x"].leaf().sparse().dense_shape, Shape({0, 0}));
}

TEST(ExampleParserTest, ResultsDoNotDependOnTheNumberOfWorkers) {
  Strings examples;
  Int64s expected;
  for (int64_t i = 0; i < 1000; ++i) {
    const Int64s values(static_cast<size_t>(i % 7), i);
    expected.insert(expected.end(), values.begin(), values.end());
    examples.push_back(serialize_example({{"x", ids(values)}, {str("y", i % 3), floats({1})}}));
  }
  for (const int workers : {1, 4}) {
    set_num_workers(workers);
    const Tensors out = parse_example(strings(examples), one(RaggedFeature{DType::kInt64}));
    EXPECT_EQ(out["x"].leaf().ragged().values.to_vector<int64_t>(), expected);
  }
  set_num_workers(1);
}

TEST(ExampleParserTest, RecordsOfAFileAreBatchedAndParsed) {
  const TemporaryFolder folder;
  {
    TFRecordWriter writer(folder / "a.gz", {.compression_type = "GZIP"});
    for (int64_t i = 0; i < 10; ++i) writer.write(serialize_example({{"x", ids({i})}}));
  }
  const Dataset rows = TFRecordDataset(folder / "a.gz", {.compression_type = "GZIP"})
                           .batch(4)
                           .map(ExampleParser(fixed_int()));
  std::vector<Int64s> batches;
  for (const Tensors& batch : rows) batches.push_back(batch["x"].tensor().to_vector<int64_t>());
  EXPECT_EQ(batches, (std::vector<Int64s>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
}

TEST(SerializeExampleTest, EqualFeaturesMakeEqualBytes) {
  const std::map<std::string, Tensor> features = {
      {"b", ids({1})}, {"a", floats({2})}, {"c", Tensor::from<bool>({true, false}, {2})}};
  const std::string bytes = serialize_example(features);
  EXPECT_EQ(bytes, serialize_example(features));
  EXPECT_EQ(serialize_example({{"x", ids({5})}}), example(entry("x", packed_ints("\5"))));
  const Tensors out = parse_example(strings({bytes}),
                                    {{"c", FixedLenFeature{.shape = {2}, .dtype = DType::kInt64}}});
  EXPECT_EQ(out["c"].tensor().to_vector<int64_t>(), Int64s({1, 0}));
}

}  // namespace keel::data::example_parser_test
