#include <keel/autodiff/keras_ops/operand.h>

#include <algorithm>
#include <numeric>

#include <keel/autodiff/ops.h>

namespace keel::keras_ops {
namespace {

// The order in which dtypes replace each other.
int rank_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 0;
    case DType::kUint8:
    case DType::kInt8:
      return 1;
    case DType::kInt32:
      return 2;
    case DType::kInt64:
      return 3;
    case DType::kFloat32:
      return 4;
    case DType::kFloat64:
      return 5;
    case DType::kString:
      break;
  }
  throw TypeError(
      "keras_ops: strings cannot be combined with numbers; convert them to numbers first");
}

DType wider(DType a, DType b) {
  if (a == b) return a;
  if (rank_of(a) == rank_of(b)) return DType::kInt32;  // uint8 and int8
  return rank_of(a) > rank_of(b) ? a : b;
}

}  // namespace

std::vector<int> Axes::of(int rank) const {
  std::vector<int> out(all_ ? rank : 0);
  std::iota(out.begin(), out.end(), 0);
  for (const int axis : list_) {
    if (axis < -rank || axis >= rank) {
      throw ValueError("keras_ops: axis ", axis, " is out of range for rank ", rank,
                       "; pass an axis in [-rank, rank)");
    }
    out.push_back(axis < 0 ? axis + rank : axis);
  }
  std::ranges::sort(out);
  if (std::ranges::adjacent_find(out) != out.end()) {
    throw ValueError("keras_ops: an axis is listed twice; list each axis once");
  }
  return out;
}

DType result_type(std::initializer_list<Operand> operands) {
  DType out = DType::kBool;
  for (const Operand& x : operands) {
    if (!x.is_number()) out = wider(out, x.tensor().dtype());
  }
  for (const Operand& x : operands) {
    if (!x.is_number()) continue;
    const DType kind = x.tensor().dtype();
    if (kind == DType::kFloat64 && !is_floating(out)) out = DType::kFloat32;
    if (kind == DType::kInt64 && out == DType::kBool) out = DType::kInt32;
  }
  return out;
}

namespace internal {

std::pair<Tensor, Tensor> promoted(const Operand& a, const Operand& b) {
  const DType dtype = result_type({a, b});
  return {ops::cast(a.tensor(), dtype), ops::cast(b.tensor(), dtype)};
}

std::pair<Tensor, Tensor> promoted_floating(const Operand& a, const Operand& b) {
  DType dtype = result_type({a, b});
  if (!is_floating(dtype)) dtype = DType::kFloat32;
  return {ops::cast(a.tensor(), dtype), ops::cast(b.tensor(), dtype)};
}

Tensor floating(const Tensor& x) {
  return is_floating(x.dtype()) ? x : ops::cast(x, DType::kFloat32);
}

Tensor countable(const Tensor& x) {
  const bool small =
      x.dtype() == DType::kBool || x.dtype() == DType::kUint8 || x.dtype() == DType::kInt8;
  return small ? ops::cast(x, DType::kInt32) : x;
}

}  // namespace internal
}  // namespace keel::keras_ops
