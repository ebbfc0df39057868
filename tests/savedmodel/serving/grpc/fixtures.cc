// Writes the models that the tests of gRPC publish: `serving_grpc_fixtures FOLDER`.
//
//   kinds.keras    an input of each dtype, "f", "d", "i", "l", "b", "u", "c" and "s", to "f_out",
//   ... layouts.keras  sparse "tags" [6] to "sums" [2], ragged "words" of strings to "words_out"
#include <filesystem>
#include <iostream>

#include <keel/layers/core/core.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

Functional kinds_model() {
  const std::vector<std::pair<std::string, DType>> kinds = {
      {"f", DType::kFloat32}, {"d", DType::kFloat64}, {"i", DType::kInt32}, {"l", DType::kInt64},
      {"b", DType::kBool},    {"u", DType::kUint8},   {"c", DType::kInt8},  {"s", DType::kString}};
  Tensors::Dict inputs, outputs;
  for (const auto& [name, dtype] : kinds) {
    const Shape shape = name == "f" ? Shape({2}) : Shape();
    const Tensor input = layers::input({.shape = shape, .dtype = dtype, .name = name});
    IdentityOptions options = {.name = name + "_out"};
    if (dtype == DType::kFloat64) options.dtype = "float64";
    inputs.emplace(name, input);
    outputs.emplace(name + "_out", layers::Identity(options)(input));
  }
  return Functional({.inputs = inputs, .outputs = outputs, .name = "kinds"});
}

Functional layouts_model() {
  const SparseTensor tags =
      layers::sparse_input({.shape = {6}, .dtype = DType::kInt64, .name = "tags"});
  const RaggedTensor words = layers::ragged_input({.dtype = DType::kString, .name = "words"});
  return Functional({.inputs = {{"tags", tags}, {"words", words}},
                     .outputs = {{"sums", layers::EmbedReduce({.input_dim = 10,
                                                               .output_dim = 2,
                                                               .embeddings_initializer = "ones",
                                                               .combiner = "sum",
                                                               .name = "sums"})(tags)},
                                 {"words_out", layers::Identity({.name = "words_out"})(words)}},
                     .name = "layouts"});
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: serving_grpc_fixtures FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  keel::save_model(keel::kinds_model(), (folder / "kinds.keras").string());
  keel::save_model(keel::layouts_model(), (folder / "layouts.keras").string());
  return 0;
}
