#include <keel/optimizers/step/gradient_check.h>

#include <algorithm>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/optimizers/step/summed_rows.h>

namespace keel {
namespace {

void check_dtype(const std::string& caller, const Variable& variable, const Tensor& gradient) {
  check_floating(caller, variable);
  if (gradient.dtype() != variable.dtype()) {
    throw TypeError(caller, ": the gradient of ", variable.path(), " must be ", variable.dtype(),
                    ", received ", gradient.dtype());
  }
}

void check_slices(const std::string& caller, const Variable& variable,
                  const IndexedSlices& slices) {
  const Shape& shape = variable.shape();
  check_dtype(caller, variable, slices.values);
  if (slices.ids.dtype() != DType::kInt64) {
    throw TypeError(caller, ": the row ids for ", variable.path(), " must be int64, received ",
                    slices.ids.dtype());
  }
  if (slices.dense_shape != shape || shape.rank() == 0 || slices.ids.rank() != 1 ||
      slices.values.shape() != shape.with(0, slices.ids.size())) {
    throw ValueError(caller, ": the IndexedSlices for ", variable.path(), " ", shape,
                     " must hold rows of this shape, received ids ", slices.ids.shape(),
                     " and values ", slices.values.shape(), " of ", slices.dense_shape);
  }
  if (const auto id = first_invalid_id(slices.ids.data<int64_t>(), shape[0])) {
    throw ValueError(caller, ": row ids for ", variable.path(), " must be in [0, ", shape[0],
                     "), received ", *id);
  }
}

// The row ids of a table with dynamic ids are opaque.
void check_keyed(const std::string& caller, const Variable& variable, const Gradient& gradient) {
  if (!gradient.is_slices()) {
    throw TypeError(caller, ": the gradient of ", variable.path(),
                    " must be IndexedSlices, because the table has dynamic ids; received a dense "
                    "tensor");
  }
  const IndexedSlices& slices = gradient.slices();
  check_dtype(caller, variable, slices.values);
  if (slices.ids.dtype() != DType::kInt64 || slices.ids.rank() != 1 ||
      slices.values.shape() != Shape{slices.ids.size(), variable.shape()[1]}) {
    throw ValueError(caller, ": the IndexedSlices for ", variable.path(), " must hold rows of dim ",
                     variable.shape()[1], ", received ids ", slices.ids.shape(), " and values ",
                     slices.values.shape());
  }
}

void check_gradient(const std::string& caller, const Variable& variable, const Gradient& gradient) {
  if (!gradient) return;
  if (VariableStorage(variable).keyed_rows() != nullptr) {
    check_keyed(caller, variable, gradient);
    return;
  }
  if (gradient.is_slices()) {
    check_slices(caller, variable, gradient.slices());
    return;
  }
  const Tensor dense = gradient.dense();
  check_dtype(caller, variable, dense);
  if (dense.shape() != variable.shape()) {
    throw ValueError(caller, ": the gradient of ", variable.path(), " must have shape ",
                     variable.shape(), ", received ", dense.shape());
  }
}

}  // namespace

void check_floating(const std::string& caller, const Variable& variable) {
  if (!is_floating(variable.dtype())) {
    throw TypeError(caller, ": variables must be float32 or float64, received ", variable.dtype(),
                    " for ", variable.path());
  }
}

void check_gradients(const std::string& caller, const std::vector<Gradient>& gradients,
                     const std::vector<Variable>& variables) {
  if (gradients.size() != variables.size()) {
    throw ValueError(caller, ": the lists must have equal lengths, received ", gradients.size(),
                     " gradients and ", variables.size(), " variables");
  }
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < variables.size(); ++i) {
    ids.push_back(variables[i].id());
    check_gradient(caller, variables[i], gradients[i]);
  }
  std::ranges::sort(ids);
  if (std::ranges::adjacent_find(ids) != ids.end()) {
    throw ValueError(caller, ": a variable is listed twice; pass the sum of its gradients");
  }
}

}  // namespace keel
