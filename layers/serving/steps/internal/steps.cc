#include <keel/layers/serving/steps/internal/steps.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/autodiff/tape.h>
#include <keel/layers/internal/input_context.h>

namespace keel {

void ProductStep::run(const PlanCall& call) const {
  const PlanRows x = call[x_], y = call[y_];
  const int64_t in = matrix_->inner(), units = matrix_->columns();
  const bool relu = function_.kind() == RowFunction::Kind::kRelu;
  if (repeats_ == 1) {
    matrix_->multiply(x.data, x.stride, call.rows, y.data, y.stride, relu);
  } else {
    for (int64_t r = 0; r < call.rows; ++r) {
      matrix_->multiply(x[r], in, repeats_, y[r], units, relu);
    }
  }
  if (relu || function_.kind() == RowFunction::Kind::kLinear) return;
  for (int64_t r = 0; r < call.rows; ++r) {
    for (int64_t i = 0; i < repeats_; ++i) function_.apply(y[r] + i * units, units);
  }
}

std::string ProductStep::what() const {
  return absl::StrCat("product ", matrix_->inner(), " x ", matrix_->columns(), ", ",
                      function_.name());
}

void MapStep::run(const PlanCall& call) const {
  const PlanRows x = call[x_], y = call[y_];
  for (int64_t r = 0; r < call.rows; ++r) {
    std::copy_n(x[r], width_, y[r]);
    for (int64_t i = 0; i < width_; i += length_) function_.apply(y[r] + i, length_);
  }
}

void AffineStep::run(const PlanCall& call) const {
  const PlanRows x = call[x_], y = call[y_];
  const auto& [center, factor, offset] = numbers_;
  const auto width = std::ssize(center);
  for (int64_t r = 0; r < call.rows; ++r) {
    const float* in = x[r];
    float* out = y[r];
    if (divides_) {
      for (int64_t i = 0; i < width; ++i) out[i] = (in[i] - center[i]) / factor[i] + offset[i];
    } else {
      for (int64_t i = 0; i < width; ++i) out[i] = (in[i] - center[i]) * factor[i] + offset[i];
    }
  }
}

void CopyStep::run(const PlanCall& call) const {
  const PlanRows from = call[from_], to = call[to_];
  for (int64_t r = 0; r < call.rows; ++r) std::copy_n(from[r], width_, to[r]);
}

void ConvertStep::run(const PlanCall& call) const {
  const TensorView& view = call.view(from_);
  if (view.rows != call.batch || view.values != call.batch * width_) {
    throw RuntimeError("ServingPlan: a called layer returned ", view.shape, " for ", call.batch,
                       " rows; each row requires ", width_, " values");
  }
  const PlanRows to = call[to_];
  visit_numeric(view.dtype, "ServingPlan", [&]<class T>(const T&) {
    const T* const from = static_cast<const T*>(view.data) + call.begin * width_;
    for (int64_t r = 0; r < call.rows; ++r) {
      for (int64_t i = 0; i < width_; ++i) to[r][i] = static_cast<float>(from[r * width_ + i]);
    }
  });
}

void CallStep::run(const PlanCall& call) const {
  const NoGradient pause;
  const Tensors inputs = map_structure(inputs_, [&](const Input& input) -> TensorLike {
    if (!input.is_rows) return call.tensor(input.value);
    const int64_t width = input.row_shape.size();
    Tensor out = Tensor::uninitialized(Shape{call.rows} + input.row_shape, DType::kFloat32);
    float* const to = out.mutable_data<float>().data();
    const PlanRows from = call[input.value];
    for (int64_t r = 0; r < call.rows; ++r) std::copy_n(from[r], width, to + r * width);
    return out;
  });
  const VariableSnapshot::Scope scope(*copies_);
  const Tensors outputs = [&] {
    try {
      return operation_->replay(inputs, options_);
    } catch (const InvalidIdError& error) {
      throw_for_inputs(sources_, error);
    }
  }();
  size_t i = 0;
  for_each_leaf(outputs, [&](const std::string&, const TensorLike& output) {
    call.set_tensor(outputs_[i++], output);
  });
}

TensorLike PlanCall::tensor(PlanValue value) const {
  const int slot = (*places)[value.number].slot;
  TensorLike& kept = (*tensors)[slot];
  if (!kept.values()) kept = copy_of((*views)[slot]);
  return kept;
}

void PlanCall::set_tensor(PlanValue value, TensorLike tensor) const {
  const int slot = (*places)[value.number].slot;
  (*views)[slot] = view_of(tensor);
  (*tensors)[slot] = std::move(tensor);
}

}  // namespace keel
