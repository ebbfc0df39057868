#include <algorithm>
#include <cmath>

#include <keel/layers/training/compile/step_data.h>

namespace keel {

Tensor class_weight_to_sample_weights(const Tensor& labels, const ClassWeight& weights,
                                      const char* caller) {
  if (labels.rank() != 1 && labels.rank() != 2) {
    throw ValueError(
        caller,
        ": class_weight requires labels of shape [batch] or [batch, classes], received shape ",
        labels.shape());
  }
  const int64_t rows = labels.dim(0);
  const int64_t columns = labels.rank() == 1 ? 1 : labels.dim(1);
  const Tensor numbers = labels.cast(DType::kFloat64);
  const auto values = numbers.data<double>();
  Tensor out = Tensor::uninitialized({rows}, DType::kFloat32);
  const auto weight = out.mutable_data<float>();
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = values.subspan(i * columns, columns);
    const auto label = columns == 1 ? static_cast<int64_t>(std::nearbyint(row[0]))
                                    : std::ranges::max_element(row) - row.begin();
    const auto it = weights.find(label);
    weight[i] = it == weights.end() ? 1.0F : static_cast<float>(it->second);
  }
  return out;
}

Tensors with_class_weights(const Tensors& batch, const ClassWeight& weights, const char* caller) {
  StepData data = unpack_x_y_sample_weight(batch, caller);
  if (given(data.sample_weight)) {
    throw ValueError(caller, ": received both class_weight and sample weights; pass one of them");
  }
  const std::vector<TensorLike> labels = flatten(data.y);
  if (labels.size() != 1) {
    throw ValueError(caller,
                     ": class_weight requires a model with one output; pass sample weights "
                     "instead; received labels ",
                     data.y.structure());
  }
  data.sample_weight = class_weight_to_sample_weights(labels[0].tensor(), weights, caller);
  return pack_x_y_sample_weight(data, caller);
}

}  // namespace keel
