// Batches of tf.Example. The input is a batch: of each example its length in two bytes, then it.
#include <algorithm>

#include <keel/framework/data/tfrecord.h>

#include "tests/fuzz/fuzz_input.h"

namespace keel::fuzz {
namespace {

using data::ExampleParser;
using data::FixedLenFeature;
using data::RaggedFeature;
using data::VarLenFeature;

constexpr size_t kMostExamples = 4;

// Two ways to read features of the same names.
const std::vector<ExampleParser>& parsers() {
  static const std::vector<ExampleParser> kParsers = {
      ExampleParser({
          {"i", FixedLenFeature{.shape = {2}, .dtype = DType::kInt64}},
          {"f", FixedLenFeature{.shape = {1, 3}, .default_value = Tensor::scalar<float>(0.5F)}},
          {"s", FixedLenFeature{.dtype = DType::kString,
                                .default_value = Tensor::scalar<std::string>("none")}},
          {"v", VarLenFeature{.dtype = DType::kInt64}},
          {"r", RaggedFeature{.dtype = DType::kString}},
      }),
      ExampleParser({
          {"i", RaggedFeature{.dtype = DType::kInt64}},
          {"f", RaggedFeature{.dtype = DType::kFloat32}},
          {"s", VarLenFeature{.dtype = DType::kString}},
          {"v",
           FixedLenFeature{
               .shape = {0}, .dtype = DType::kInt64, .default_value = Tensor::scalar<int64_t>(1)}},
          {"r", FixedLenFeature{.shape = {2},
                                .dtype = DType::kString,
                                .default_value = Tensor::from<std::string>({"a", "b"}, {2})}},
          {"w", VarLenFeature{.dtype = DType::kFloat32}},
      }),
  };
  return kParsers;
}

}  // namespace
}  // namespace keel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel;
  using namespace keel::fuzz;
  std::string_view left = text_of(data, size);
  std::vector<std::string> examples;
  while (left.size() >= 2 && examples.size() < kMostExamples) {
    const size_t length = static_cast<uint8_t>(left[0]) | static_cast<uint8_t>(left[1]) << 8;
    left.remove_prefix(2);
    examples.emplace_back(left.substr(0, length));
    left.remove_prefix(examples.back().size());
  }
  const auto count = static_cast<int64_t>(examples.size());
  const Tensors batch(Tensor::from<std::string>(examples, {count}));
  for (const auto& parser : parsers()) {
    allow_own_errors([&] { parser(batch); });
  }
  return 0;
}
