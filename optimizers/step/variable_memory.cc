#include <keel/optimizers/step/variable_memory.h>

#include <algorithm>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/framework/base/parallel.h>

namespace keel {
namespace {

constexpr int64_t kRowsOfBlock = 256;

template <class T>
bool are_packed(const std::vector<Variable>& parts, int64_t dim) {
  const auto n = std::ssize(parts);
  for (int64_t p = 0; p < n; ++p) {
    const Tensor& value = VariableStorage(parts[p]).value();
    if (!value.is_view() || !value.held_once() || value.owners() != n) return false;
    const auto [first, step] = value.rows<T>();
    if (step != n * dim || first != VariableStorage(parts[0]).value().rows<T>().first + p * dim)
      return false;
  }
  return true;
}

// If it throws, nothing has changed.
template <class T>
void pack(const std::vector<Variable>& parts, int64_t dim) {
  const int64_t rows = parts[0].shape()[0], step = std::ssize(parts) * dim;
  Tensor packed = Tensor::uninitialized({rows, step}, parts[0].dtype());
  T* const to = packed.mutable_data<T>().data();
  parallel_for(rows, kRowsOfBlock, [&](int64_t begin, int64_t end) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const auto [first, of_row] = VariableStorage(parts[p]).value().rows<T>();
      T* const part = to + static_cast<int64_t>(p) * dim;
      for (int64_t r = begin; r < end; ++r) std::copy_n(first + r * of_row, dim, part + r * step);
    }
  });
  std::vector<Tensor> views;
  for (const Variable& part : parts) {
    views.push_back(packed.columns(std::ssize(views) * dim, part.shape()));
  }
  for (size_t p = 0; p < parts.size(); ++p) VariableStorage(parts[p]).replace(std::move(views[p]));
}

template <class T>
VariableMemory packed(const std::vector<Variable>& parts, int64_t dim) {
  if (!are_packed<T>(parts, dim)) {
    pack<T>(parts, dim);
  } else {
    // A tape must not mistake the value after the step for the value that it recorded, so the
    // variable gets a new tensor handle of the same memory.
    for (const Variable& part : parts)
      VariableStorage(part).replace(VariableStorage(part).value().aliased());
  }
  // Views are read-only, but no other handle holds these, so writing to them is safe.
  T* const first = const_cast<T*>(VariableStorage(parts[0]).value().rows<T>().first);
  VariableMemory out = {.values = first,
                        .row_step = std::ssize(parts) * dim,
                        .regularization = parts[0].row_regularization()};
  for (int64_t p = 1; p < std::ssize(parts); ++p) out.slots.push_back(first + p * dim);
  return out;
}

void* elements_of(const Variable& variable) {
  return variable.dtype() == DType::kFloat64
             ? static_cast<void*>(VariableStorage(variable).elements<double>().data())
             : VariableStorage(variable).elements<float>().data();
}

}  // namespace

int64_t row_size(const Variable& variable) {
  const Shape& shape = variable.shape();
  return shape.rank() == 0 ? 1 : shape.slice(1, shape.rank()).size();
}

VariableMemory memory_of(const Variable& variable, const std::vector<Variable>& slots) {
  VariableMemory out = {.values = elements_of(variable),
                        .row_step = row_size(variable),
                        .regularization = variable.row_regularization()};
  for (const Variable& slot : slots) out.slots.push_back(elements_of(slot));
  return out;
}

VariableMemory packed_memory_of(const Variable& table, const std::vector<Variable>& slots) {
  if (slots.empty()) {
    VariableStorage(table).make_unique();
    return memory_of(table, slots);
  }
  std::vector<Variable> parts = {table};
  parts.insert(parts.end(), slots.begin(), slots.end());
  const int64_t dim = row_size(table);
  return table.dtype() == DType::kFloat64 ? packed<double>(parts, dim) : packed<float>(parts, dim);
}

}  // namespace keel
