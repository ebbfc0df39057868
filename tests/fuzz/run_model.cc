#include "tests/fuzz/run_model.h"

#include <keel/framework/base/internal/allocator.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/fuzz/fuzz_input.h"

namespace keel::fuzz {
namespace {

constexpr int64_t kRows = 2, kUnknownLength = 3, kMostElements = 4096;

// Returns small values of a spec, or nothing for an input that is not tried.
std::optional<Tensor> batch_of(const TensorSpec& spec) {
  if (spec.layout != Layout::kDense || spec.shape.rank() == 0) return {};
  Shape shape = spec.shape;
  int64_t size = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == kUnknown) shape = shape.with(i, i == 0 ? kRows : kUnknownLength);
    if (shape[i] > kMostElements || (size *= shape[i]) > kMostElements) return {};
  }
  if (spec.dtype == DType::kString) {
    return Tensor::from(std::vector<std::string>(static_cast<size_t>(size), "a"), shape);
  }
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(i % 3));
  return Tensor::from(values, shape).cast(spec.dtype);
}

}  // namespace

void run_model(const ModelHandle& model) {
  allow_own_errors([&] {
    const MemoryLimit limit(kTensorBytes);
    const std::optional<ModelInputs> inputs = model->symbolic_inputs();
    if (!inputs) return;
    bool all = true;
    const Tensors batch =
        map_structure(inputs->tensors, [&](const TensorLike& input) -> TensorLike {
          const std::optional<Tensor> made = batch_of(input.spec());
          all = all && made;
          return made.value_or(Tensor::scalar<float>(0));
        });
    if (!all) return;
    allow_own_errors([&] { model(batch); });
    const ServingPlan plan(model);
    plan(batch);
  });
}

}  // namespace keel::fuzz
