// Tensor: an immutable, dense, row-major array, held by a shared handle.
//
// Copying a Tensor copies a pointer. Two Tensors that share a buffer can never
// see each other change: bytes are written only while one owner holds them (see
// mutable_data), so a Tensor kept by a tape, a graph or another thread stays
// what it was. Const members may be called from any number of threads.
//
// The rows of a *view* (columns, repeated) do not follow each other in its buffer: it has rows()
// and clone(), but no data().
//
// A *symbolic* Tensor (made by layers::input) has a spec and a producer but no
// bytes. Every op and layer accepts one and returns symbolic results.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/device.h>
#include <keel/framework/tensor_spec.h>

namespace keel {

class GraphNode;  // autodiff/graph.h

// The rows of a tensor along its first axis: row r begins `step` elements after row r - 1.
template <class T>
struct TensorRows {
  const T* first;
  int64_t step;
};

class Tensor {
 public:
  Tensor() = default;  // empty: holds no tensor; only operator bool may be asked

  // Makers. All of them allocate; `values.size()` must equal `shape.size()` (ValueError).
  static Tensor uninitialized(const Shape& shape, DType dtype);
  static Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32);  // "" for strings
  template <Element T>
  static Tensor full(const Shape& shape, const T& value);
  template <Element T>
  static Tensor scalar(const T& value) {
    return full<T>({}, value);
  }
  template <Element T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <Element T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape);
  template <Element T>
  static Tensor from(const std::vector<T>& values, const Shape& shape);
  static Tensor symbolic(TensorSpec spec, std::shared_ptr<const GraphNode> producer = nullptr,
                         int output = 0);

  explicit operator bool() const { return impl_ != nullptr; }
  bool is_symbolic() const;

  const TensorSpec& spec() const;  // RuntimeError if empty, as every member below
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }
  int rank() const { return shape().rank(); }
  int64_t dim(int axis) const { return shape()[axis]; }  // axis may be negative
  int64_t size() const { return shape().size(); }

  // Values. TypeError if T is not dtype(); RuntimeError if symbolic, or a view, but for rows(),
  // which is for who looks at some rows of a table.
  template <Element T>
  std::span<const T> data() const;
  template <Element T>
  TensorRows<T> rows() const;  // ValueError for a scalar
  bool is_view() const { return impl_ != nullptr && row_bytes() >= 0; }
  template <Element T>
  T item() const;  // ValueError unless size() == 1
  template <Element T>
  std::vector<T> to_vector() const;

  // Writable elements, for the op that has just made this tensor.
  // RuntimeError if anyone else shares the buffer.
  template <Element T>
  std::span<T> mutable_data();
  bool unique() const;     // true if this handle is the buffer's only owner, and no view
  bool held_once() const;  // no other handle is a copy of this one
  int owners() const;      // tensors, not counting copied handles, that share the buffer

  // The bytes without their type, for kernels that only move data. TypeError for strings.
  std::span<const std::byte> raw() const;
  std::span<std::byte> mutable_raw();

  // Same bytes, other shape of the same size. Never copies; RuntimeError for a view.
  Tensor reshaped(const Shape& shape) const;
  // Same bytes, new identity: a tape sees a different tensor.
  Tensor aliased() const;
  // Views of the same bytes. ValueError if they do not have them, TypeError for strings.
  // Of each row, the elements from `begin` on that a row of `shape`, which has as many, needs.
  Tensor columns(int64_t begin, const Shape& shape) const;
  // [rows, this shape...], every row this tensor.
  Tensor repeated(int64_t rows) const;
  // A copy of the elements that nobody shares, row after row.
  Tensor clone() const;
  // This tensor; of a view a clone with its identity, so that a tape sees one tensor.
  Tensor contiguous() const;
  // The values converted as a C++ cast converts them (to bool: x != 0); what an integer cannot hold
  // becomes the nearest that it can, NaN becomes 0. TypeError to or from
  // string. Not differentiable: ops::cast is.
  Tensor cast(DType dtype) const;

  // Which steps of this tensor count (Keras's mask): bool, of a shape that this one's begins with.
  // It belongs to the handle, so copies have it and results of ops do not: layers pass it on as
  // each defines (Layer::compute_mask). Empty if all count.
  Tensor mask() const { return mask_ == nullptr ? Tensor() : *mask_; }
  Tensor with_mask(const Tensor& mask) const;  // an empty one takes it away

  // Where the bytes were made. The host for symbolic tensors.
  Device device() const;
  uint64_t id() const;  // unique in the process for the life of the tensor
  const std::shared_ptr<const GraphNode>& producer() const;  // null unless symbolic
  int producer_output() const;

 private:
  struct Impl;
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  int64_t row_bytes() const;  // from row to row of a view; negative for others
  Tensor view(const Shape& shape, int64_t first_byte, int64_t row_bytes) const;
  const void* first_element(DType expected) const;
  const void* elements(DType expected) const;
  void* mutable_elements(DType expected);

  std::shared_ptr<Impl> impl_;
  std::shared_ptr<const Tensor> mask_;
};

// "Tensor(shape=(2, 2), dtype=float32, [1, 2, 3, 4])"; long ones are cut after 16 values.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

template <Element T>
Tensor Tensor::full(const Shape& shape, const T& value) {
  Tensor out = uninitialized(shape, DTypeOf<T>::kValue);
  std::ranges::fill(out.mutable_data<T>(), value);
  return out;
}
template <Element T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != shape.size()) {
    throw ValueError("Tensor.from: ", values.size(), " values for shape ", shape);
  }
  Tensor out = uninitialized(shape, DTypeOf<T>::kValue);
  std::ranges::copy(values, out.mutable_data<T>().begin());
  return out;
}
template <Element T>
Tensor Tensor::from(std::initializer_list<T> values, const Shape& shape) {
  return from(std::span<const T>(values.begin(), values.size()), shape);
}
template <Element T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape) {
  if constexpr (std::same_as<T, bool>) {  // vector<bool> is no span
    Tensor out = uninitialized(shape, DType::kBool);
    if (static_cast<int64_t>(values.size()) != shape.size()) {
      throw ValueError("Tensor.from: ", values.size(), " values for shape ", shape);
    }
    std::ranges::copy(values, out.mutable_data<bool>().begin());
    return out;
  } else {
    return from(std::span<const T>(values), shape);
  }
}
template <Element T>
std::span<const T> Tensor::data() const {
  return {static_cast<const T*>(elements(DTypeOf<T>::kValue)), static_cast<size_t>(size())};
}
template <Element T>
TensorRows<T> Tensor::rows() const {
  if (rank() == 0) throw ValueError("Tensor.rows: needs rows, has shape ", shape());
  const auto* first = static_cast<const T*>(first_element(DTypeOf<T>::kValue));
  if (is_view()) return {first, row_bytes() / static_cast<int64_t>(sizeof(T))};
  return {first, shape().slice(1, rank()).size()};
}
template <Element T>
T Tensor::item() const {
  if (size() != 1) throw ValueError("Tensor.item: needs one element, has shape ", shape());
  return data<T>()[0];
}
template <Element T>
std::vector<T> Tensor::to_vector() const {
  const auto values = data<T>();
  return {values.begin(), values.end()};
}
template <Element T>
std::span<T> Tensor::mutable_data() {
  return {static_cast<T*>(mutable_elements(DTypeOf<T>::kValue)), static_cast<size_t>(size())};
}

}  // namespace keel
