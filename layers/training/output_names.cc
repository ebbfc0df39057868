#include <keel/layers/training/output_names.h>

#include <algorithm>

#include <keel/layers/functional.h>
#include <keel/layers/naming.h>
#include <keel/layers/sequential.h>

namespace keel {
namespace {

std::string unused(const std::string& name, const std::vector<std::string>& used) {
  std::string out = name;
  for (int k = 1; std::ranges::find(used, out) != used.end(); ++k) out = str(name, "_", k);
  return out;
}

// Of the layer or op that made an output of a graph.
std::string maker_of(const TensorLike& output) {
  const Operation& operation = *output.values().producer()->operation;
  if (const auto* layer = dynamic_cast<const Layer*>(&operation)) return layer->name();
  return to_snake_case(operation.class_name());
}

std::vector<std::string> candidates(const Model& model, size_t count) {
  std::vector<std::string> out;
  if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
    for (const TensorLike& output : flatten(functional->outputs())) out.push_back(maker_of(output));
  } else if (const auto* sequential = dynamic_cast<const SequentialModel*>(&model)) {
    const auto layers = sequential->layers();
    if (!layers.empty()) out.push_back(layers.back()->name());
  }
  if (out.size() == count) return out;
  out.clear();
  for (size_t i = 1; i <= count; ++i) out.push_back(str("output_", i));
  return out;
}

}  // namespace

std::vector<std::string> output_names(const Model& model, const Tensors& outputs) {
  std::vector<std::string> paths = flatten_paths(outputs);
  if (outputs.is_dict()) return paths;
  std::vector<std::string> out;
  for (const std::string& name : candidates(model, paths.size())) {
    out.push_back(unused(name, out));
  }
  return out;
}

}  // namespace keel
