#include <keel/layers/training/compile/step_data.h>

#include <absl/strings/str_join.h>
#include <algorithm>

namespace keel {

bool given(const Tensors& tensors) {
  if (tensors.is_sequence()) return !tensors.items().empty();
  if (!tensors.is_leaf()) return true;
  return tensors.leaf().layout() != Layout::kDense || tensors.leaf().tensor();
}

StepData unpack_x_y_sample_weight(const Tensors& element, const char* caller) {
  if (!element.is_sequence()) return {.x = element};
  const auto& items = element.items();
  if (items.empty() || items.size() > 3) {
    throw ValueError(caller, ": batches must be x, (x, y) or (x, y, sample_weight), received ",
                     element.structure());
  }
  StepData out{.x = items[0]};
  if (items.size() > 1) out.y = items[1];
  if (items.size() > 2) out.sample_weight = items[2];
  return out;
}

Tensors pack_x_y_sample_weight(const StepData& data, const char* caller) {
  if (!given(data.y)) {
    if (given(data.sample_weight)) {
      throw ValueError(caller, ": sample_weight requires labels; pass y");
    }
    return Tensors::tuple({data.x});
  }
  if (!given(data.sample_weight)) return Tensors::tuple({data.x, data.y});
  return Tensors::tuple({data.x, data.y, data.sample_weight});
}

int64_t rows_of(const StepData& data) {
  const std::vector<TensorLike> leaves = flatten(given(data.y) ? data.y : data.x);
  return leaves.empty() ? 0 : leaves[0].spec().shape[0];
}

std::vector<Tensor> match_outputs(const Tensors& given_tensors, const Tensors& outputs,
                                  const std::vector<std::string>& names, const char* caller,
                                  const char* what) {
  std::vector<Tensor> out(names.size());
  if (!given(given_tensors)) return out;
  const auto refuse = [&] {
    throw ValueError(caller, ": the ", what, " must have the structure of the model's outputs, ",
                     outputs.structure(), ", or be a dict with the output names ",
                     absl::StrJoin(names, ", "), "; received ", given_tensors.structure());
  };
  if (!given_tensors.is_dict()) {
    const std::vector<TensorLike> leaves = flatten(given_tensors);
    if (leaves.size() != names.size()) refuse();
    for (size_t i = 0; i < leaves.size(); ++i) out[i] = leaves[i].tensor();
    return out;
  }
  const std::vector<std::string> paths = flatten_paths(given_tensors);
  const std::vector<TensorLike> leaves = flatten(given_tensors);
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto it = std::ranges::find(names, paths[i]);
    if (it == names.end()) refuse();
    out[static_cast<size_t>(it - names.begin())] = leaves[i].tensor();
  }
  return out;
}

}  // namespace keel
