// Writes the models that the tests of the Python package load: `python_fixtures FOLDER`.
//
//   kinds.keras    returns dense inputs of every dtype
//   ragged.keras   returns ragged inputs of several dtypes
//   sparse.keras   returns sparse inputs of several dtypes
//   tables.keras   two tables, one large enough to be mapped; tables.h5 is the same model
//   int8.keras     the same model with tables of int8
#include <filesystem>
#include <iostream>

#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

// A model that returns its inputs: "x" as "x_out".
Functional echo(const std::vector<TensorLike>& inputs, const std::vector<std::string>& names) {
  std::map<std::string, Tensors> takes, gives;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string out = names[i] + "_out";
    takes.emplace(names[i], inputs[i]);
    gives.emplace(out, layers::Identity({.name = out})(Tensors(inputs[i])));
  }
  return Functional({.inputs = Tensors::dict({takes.begin(), takes.end()}),
                     .outputs = Tensors::dict({gives.begin(), gives.end()})});
}

void write_kinds(const std::string& path) {
  const std::vector<std::string> names = {"float32", "float64", "int32", "int64",
                                          "bool",    "uint8",   "int8",  "string"};
  const std::vector<DType> dtypes = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                                     DType::kInt64,   DType::kBool,    DType::kUint8,
                                     DType::kInt8,    DType::kString};
  std::vector<TensorLike> inputs;
  for (size_t i = 0; i < names.size(); ++i) {
    inputs.emplace_back(layers::input({.shape = {2}, .dtype = dtypes[i], .name = names[i]}));
  }
  save_model(echo(inputs, names), path);
}

void write_ragged(const std::string& path) {
  save_model(echo({layers::ragged_input({.dtype = DType::kFloat32, .name = "float32"}),
                   layers::ragged_input({.dtype = DType::kInt64, .name = "int64"}),
                   layers::ragged_input({.dtype = DType::kString, .name = "string"})},
                  {"float32", "int64", "string"}),
             path);
}

void write_sparse(const std::string& path) {
  save_model(
      echo({layers::sparse_input({.shape = {6}, .dtype = DType::kFloat32, .name = "float32"}),
            layers::sparse_input({.shape = {6}, .dtype = DType::kInt64, .name = "int64"}),
            layers::sparse_input({.shape = {6}, .dtype = DType::kString, .name = "string"})},
           {"float32", "int64", "string"}),
      path);
}

// 20,000 users and 100 items.
Functional tables() {
  const Tensor user = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "user"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const Tensor users = layers::Flatten({.name = "flat"})(
      layers::Embedding({.input_dim = 20'000, .output_dim = 16, .name = "users"})(user));
  const Tensor items =
      layers::EmbedReduce({.input_dim = 100, .output_dim = 4, .name = "items"})(seen).tensor();
  const Tensor all = layers::Concatenate({.name = "all"})(Tensors::list({users, items})).tensor();
  return Functional({.inputs = {{"seen", seen}, {"user", user}},
                     .outputs = {{"score", layers::Dense({.units = 1, .name = "score"})(all)}}});
}

void write_all(const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_kinds(folder + "/kinds.keras");
  write_ragged(folder + "/ragged.keras");
  write_sparse(folder + "/sparse.keras");
  const Functional model = tables();
  save_model(model, folder + "/tables.keras");
  save_model(model, folder + "/tables.h5");
  save_model(model, folder + "/int8.keras", {.table_dtype = "int8"});
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw keel::ValueError("usage: python_fixtures FOLDER");
    keel::write_all(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "python_fixtures: " << error.what() << '\n';
    return 2;
  }
}
