#include <keel/optimizers/step/post_update.h>

#include <algorithm>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/framework/base/parallel.h>
#include <keel/optimizers/step/summed_rows.h>
#include <keel/optimizers/step/variable_update.h>

namespace keel {
namespace {

template <class T>
void average(const StepPlan& plan, const UpdateRule& rule, const Variable& variable,
             const std::vector<Variable>& slots) {
  const VariableUpdate<T> update(plan, rule, memory_of(variable, slots), 0);
  parallel_for(variable.shape().size(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    VariableUpdate<T>(update).average(begin, end - begin);
  });
}

template <class T>
void write(const Tensor& value, const Variable& variable) {
  std::ranges::copy(value.data<T>(), VariableStorage(variable).elements<T>().begin());
}

template <class T>
void limit_rows(const Variable& variable) {
  const int64_t dim = row_size(variable);
  if (dim == 0) return;
  limit_norms(VariableStorage(variable).elements<T>().data(), variable.shape().size() / dim, dim,
              variable.row_regularization().max_norm);
}

}  // namespace

void limit_row_norms(const Variable& variable) {
  VariableStorage(variable).make_unique();
  variable.dtype() == DType::kFloat64 ? limit_rows<double>(variable) : limit_rows<float>(variable);
}

void average_unchanged(const StepPlan& plan, const UpdateRule& rule, const Variable& variable,
                       const std::vector<Variable>& slots) {
  if (!plan.averages) return;
  if (variable.dtype() == DType::kFloat64) {
    average<double>(plan, rule, variable, slots);
  } else {
    average<float>(plan, rule, variable, slots);
  }
}

void apply_constraint(const Variable& variable) {
  Tensor value = variable.constraint()(variable.read());
  if (value.shape() != variable.shape() || value.dtype() != variable.dtype()) {
    throw ValueError("Optimizer: the constraint of ", variable.path(), " must return ",
                     variable.dtype(), variable.shape(), ", received ", value.dtype(),
                     value.shape());
  }
  // The constraint may have returned its argument, and then there is nothing to write.
  if (value.raw().data() == variable.read().raw().data()) return;
  VariableStorage(variable).make_unique();
  if (variable.dtype() == DType::kFloat64) {
    write<double>(value, variable);
  } else {
    write<float>(value, variable);
  }
}

}  // namespace keel
