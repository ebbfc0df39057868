// Writes the models that the tests of the server publish: `serving_fixtures FOLDER`.
//
//   step_1.keras ... step_8.keras  "user" [1] int64 and "x" [1] to [k, k * x] in version k
//   slow.keras                     "x" [1] to [1]; a row takes some 20 us
//   shop.keras                     dense, ragged and string inputs, a signature for examples
//   table.keras, table.h5          "id" [1] to row "id" of a table of 8 MiB
//   same.keras                     ragged "seen" and sparse "tags" [6], passed on
//   kinds.keras                    an input [1] of each dtype, passed on
//   plain.keras                    a Sequential of one Dense on [2], whose input has no name
//
// `serving_fixtures FOLDER ROWS` writes only table.keras, with a table of ROWS rows of 64 bytes.
#include <filesystem>
#include <iostream>
#include <map>

#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

Functional step_model(int version) {
  const Initializer same = initializers::constant(version);
  const Tensor user = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "user"});
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  const Tensor row = layers::Flatten({.name = "flat"})(layers::Embedding(
      {.input_dim = 100, .output_dim = 1, .embeddings_initializer = same, .name = "users"})(user));
  const Tensor product = layers::Dense(
      {.units = 1, .use_bias = false, .kernel_initializer = same, .name = "product"})(x);
  return Functional({.inputs = {{"user", user}, {"x", x}},
                     .outputs = layers::Concatenate({.name = "y"})(Tensors::list({row, product})),
                     .name = "step"});
}

Functional slow_model() {
  constexpr int64_t kUnits = 512;
  constexpr int kLayers = 6;
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  Tensor hidden = layers::Dense({.units = kUnits, .activation = "tanh", .name = "first"})(x);
  for (int i = 0; i < kLayers; ++i) {
    hidden =
        layers::Dense({.units = kUnits, .activation = "tanh", .name = str("hidden_", i)})(hidden);
  }
  return Functional(
      {.inputs = x, .outputs = layers::Dense({.units = 1, .name = "y"})(hidden), .name = "slow"});
}

Functional shop_model() {
  const Tensor age = layers::input({.shape = {2}, .name = "age"});
  const Tensor user = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "user"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const Tensor users = layers::Flatten({.name = "flat"})(
      layers::Embedding({.input_dim = 8, .output_dim = 2, .name = "users"})(user));
  const Tensor items =
      layers::EmbedReduce({.input_dim = 10, .output_dim = 3, .name = "items"})(seen).tensor();
  const Tensor all =
      layers::Concatenate({.name = "all"})(Tensors::list({age, users, items})).tensor();
  return Functional({.inputs = {{"age", age}, {"seen", seen}, {"user", user}},
                     .outputs = layers::Dense({.units = 1, .name = "score"})(all),
                     .name = "shop"});
}

Functional table_model(int64_t rows) {
  constexpr int64_t kDim = 16;  // 64 bytes a row
  const Tensor id = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "id"});
  const Tensor found =
      layers::Embedding({.input_dim = rows, .output_dim = kDim, .name = "items"})(id);
  return Functional({.inputs = {{"id", id}},
                     .outputs = layers::Flatten({.name = "row"})(found),
                     .name = "table"});
}

Functional same_model() {
  const RaggedTensor seen = layers::ragged_input({.name = "seen"});
  const SparseTensor tags = layers::sparse_input({.shape = {6}, .name = "tags"});
  return Functional(
      {.inputs = {{"seen", seen}, {"tags", tags}},
       .outputs = {{"seen", layers::Identity({.name = "a"})(Tensors(TensorLike(seen))).leaf()},
                   {"tags", layers::Identity({.name = "b"})(Tensors(TensorLike(tags))).leaf()}},
       .name = "same"});
}

Functional kinds_model() {
  Tensors::Dict inputs, outputs;
  const std::map<std::string, DType> kinds = {{"f32", DType::kFloat32}, {"f64", DType::kFloat64},
                                              {"i32", DType::kInt32},   {"i64", DType::kInt64},
                                              {"u8", DType::kUint8},    {"i8", DType::kInt8},
                                              {"flag", DType::kBool},   {"text", DType::kString}};
  for (const auto& [name, dtype] : kinds) {
    // The layer would cast float64 to the dtype of its policy.
    const DTypePolicy policy = dtype == DType::kFloat64 ? DTypePolicy(dtype) : DTypePolicy();
    const Tensor x = layers::input({.shape = {1}, .dtype = dtype, .name = name});
    inputs.emplace(name, x);
    outputs.emplace(name, layers::Identity({.name = "same_" + name, .dtype = policy})(x));
  }
  return Functional({.inputs = Tensors(std::move(inputs)),
                     .outputs = Tensors(std::move(outputs)),
                     .name = "kinds"});
}

void write_all(const std::string& folder) {
  constexpr int kVersions = 8;
  std::filesystem::create_directories(folder);
  for (int version = 1; version <= kVersions; ++version) {
    save_model(step_model(version), str(folder, "/step_", version, ".keras"));
  }
  save_model(slow_model(), folder + "/slow.keras");
  constexpr int64_t kTableRows = 1 << 17;
  const Functional table = table_model(kTableRows);
  save_model(table, folder + "/table.keras");
  save_model(table, folder + "/table.h5");
  save_model(same_model(), folder + "/same.keras");
  save_model(kinds_model(), folder + "/kinds.keras");
  save_model(Sequential({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2}}),
                                    layers::Dense({.units = 1})}}),
             folder + "/plain.keras");
  save_model(
      shop_model(), folder + "/shop.keras",
      {.signatures = {
           {"serve_examples",
            {{"age", {.feature = data::FixedLenFeature{.shape = {2}, .dtype = DType::kFloat32}}},
             {"user", {.feature = data::FixedLenFeature{.shape = {1}, .dtype = DType::kInt64}}},
             {"seen", {.feature = data::RaggedFeature{.dtype = DType::kInt64}}}}}}});
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: serving_fixtures FOLDER [ROWS]\n";
    return 2;
  }
  if (argc == 3) {
    keel::save_model(keel::table_model(std::stoll(argv[2])), argv[1] + std::string("/table.keras"));
  } else {
    keel::write_all(argv[1]);
  }
  return 0;
}
