#include <keel/layers/training/internal/output_names.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

namespace keel {
namespace {

std::string unused(const std::string& name, const std::vector<std::string>& used) {
  std::string out = name;
  for (int k = 1; std::ranges::find(used, out) != used.end(); ++k) out = absl::StrCat(name, "_", k);
  return out;
}

std::vector<std::string> candidates(const Model& model, size_t count) {
  std::vector<std::string> out = model.output_layer_names();
  if (out.size() == count) return out;
  out.clear();
  for (size_t i = 1; i <= count; ++i) out.push_back(absl::StrCat("output_", i));
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
