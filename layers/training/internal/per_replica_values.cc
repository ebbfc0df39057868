#include <keel/layers/training/internal/per_replica_values.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/gather_tensors.h>

namespace keel {

Tensor values_of_replicas(distribute::Strategy& strategy, const Variable& variable) {
  const NoGradient pause;
  std::vector<Tensor> values = strategy.run([&] { return variable.read(); }).values();
  if (strategy.process_group().size() > 1) {
    values = distribute::gather_tensors(strategy.process_group(), "the values of replicas", values);
  }
  return ops::stack(values);
}

void set_values_of_replicas(distribute::Strategy& strategy, const Variable& variable,
                            const Tensor& values) {
  const int replicas = strategy.num_replicas_in_sync();
  std::vector<int64_t> dims = {replicas};
  for (const int64_t dim : variable.shape().dims()) dims.push_back(dim);
  if (values.shape() != Shape(dims) || values.dtype() != variable.dtype()) {
    throw ValueError("set_values_of_replicas: the values of ", variable.path(), " in ", replicas,
                     " replicas must have dtype and shape ", variable.dtype(), Shape(dims),
                     ", received ", values.dtype(), values.shape());
  }
  const NoGradient pause;
  const auto local = strategy.distribute_values_from_function([&](int replica) {
    return slice_rows(TensorLike(values), replica, replica + 1).tensor().reshaped(variable.shape());
  });
  strategy.run([&](const Tensor& value) { variable.assign(value); }, local);
}

}  // namespace keel
