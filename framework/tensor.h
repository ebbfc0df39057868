// Tensor: an immutable, dense, row-major array behind a shared handle.
//
// Copying a Tensor copies a pointer. Bytes are written only while a single owner holds the buffer
// (see mutable_data()), so a Tensor kept by a tape, a graph or another thread keeps its values.
// Const members may be called from any number of threads.
//
// The rows of a *view* (made by columns() and repeated()) are not contiguous in its buffer: a view
// supports rows() and clone(), but not data().
//
// A *symbolic* Tensor (made by layers::input) has a spec and a producer but no bytes. Every op and
// layer accepts one and returns symbolic results.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/shape.h>
#include <keel/framework/device.h>

namespace keel {

class GraphNode;  // autodiff/operation.h

// The rows of a tensor along its first axis. Row r begins `step` elements after row r - 1.
template <class T>
struct TensorRows {
  const T* first;  // the first element of row 0
  int64_t step;    // elements from one row to the next
};

// A dense tensor. See the top of this file for the sharing rules.
class Tensor {
 public:
  Tensor() = default;  // an empty handle; only operator bool may be called
  // Not inline, to keep the code of callers small.
  ~Tensor();
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept = default;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;

  // Factory functions, which allocate a new buffer (symbolic() allocates none). from() throws
  // ValueError unless `values.size()` equals `shape.size()`.
  static Tensor uninitialized(const Shape& shape, DType dtype);
  static Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32);  // "" for strings
  template <Element T>
  static Tensor full(const Shape& shape, const T& value);  // every element is `value`
  template <Element T>
  static Tensor scalar(const T& value) {  // a tensor of rank 0
    return full<T>({}, value);
  }
  template <Element T>
  static Tensor from(std::span<const T> values, const Shape& shape);  // row-major
  template <Element T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape);  // row-major
  template <Element T>
  static Tensor from(const std::vector<T>& values, const Shape& shape);  // row-major
  // Makes a read-only tensor of elements in memory that `owner` keeps alive, such as a mapped file.
  // The elements must not change. Throws ValueError unless the address is aligned to their size.
  static Tensor from_blob(const void* data, const Shape& shape, DType dtype,
                          std::shared_ptr<const void> owner);
  // Makes a symbolic tensor: output number `output` of the graph node `producer`.
  static Tensor symbolic(TensorSpec spec, std::shared_ptr<const GraphNode> producer = nullptr,
                         int output = 0);

  explicit operator bool() const { return impl_ != nullptr; }  // false for an empty handle
  bool is_symbolic() const;                                    // false for an empty handle

  // The spec. This and all following members throw RuntimeError if the handle is empty.
  const TensorSpec& spec() const;
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }
  int rank() const { return shape().rank(); }
  int64_t dim(int axis) const { return shape()[axis]; }  // `axis` may be negative
  int64_t size() const { return shape().size(); }        // number of elements

  // Values. All of these throw TypeError if T is not dtype() and RuntimeError if the tensor is
  // symbolic. All except rows() throw RuntimeError for a view; use rows() to read a view.
  template <Element T>
  std::span<const T> data() const;
  template <Element T>
  TensorRows<T> rows() const;  // throws ValueError for a scalar
  bool is_view() const { return impl_ != nullptr && row_bytes() >= 0; }  // rows not contiguous
  template <Element T>
  T item() const;  // throws ValueError unless size() == 1
  template <Element T>
  std::vector<T> to_vector() const;  // a copy, row-major

  // The elements, writable by the op that has just made this tensor. RuntimeError if it is shared.
  template <Element T>
  std::span<T> mutable_data();
  // True if this handle alone owns the buffer, which from_blob() did not make, and is not a view.
  bool unique() const;
  bool held_once() const;  // true if no other handle is a copy of this one
  int owners() const;      // tensors that share the buffer; copied handles count once

  // The untyped bytes, for kernels that only move data. Throws TypeError for strings.
  std::span<const std::byte> raw() const;
  std::span<std::byte> mutable_raw();

  // Returns a tensor with the same bytes and another shape of the same size. Never copies. Throws
  // ValueError if the sizes differ and RuntimeError for a view.
  Tensor reshaped(const Shape& shape) const;
  // Returns a tensor with the same bytes and a new id, which a tape treats as a different tensor.
  Tensor aliased() const;
  // Views of the same bytes. They throw ValueError if the request is out of bounds and TypeError
  // for strings. Row r of columns() is the part of row r that starts at element `begin` and fills a
  // row of `shape`.
  Tensor columns(int64_t begin, const Shape& shape) const;
  // repeated() returns [rows, shape()...], in which every row is this tensor.
  Tensor repeated(int64_t rows) const;
  Tensor clone() const;  // a contiguous copy with its own buffer
  // Returns this tensor, or for a view a clone with the same id, so that a tape sees one tensor.
  Tensor contiguous() const;
  // Returns the values converted as by a C++ cast (to bool: x != 0), except that floats outside the
  // range of an integer type are clamped to it and NaN becomes 0. Throws TypeError to or from
  // string. Not differentiable; ops::cast is.
  Tensor cast(DType dtype) const;

  // Returns the Keras mask, which marks the steps that count: a bool tensor whose shape is a prefix
  // of shape(), or an empty handle if all steps count. Copies of the handle keep the mask; results
  // of ops do not. Layers propagate it as Layer::compute_mask defines.
  Tensor mask() const { return mask_ == nullptr ? Tensor() : *mask_; }
  // Returns a copy with another mask; an empty one removes it. Throws ValueError unless it fits.
  Tensor with_mask(const Tensor& mask) const;

  Device device() const;  // where the bytes were allocated; the host for symbolic tensors
  uint64_t id() const;    // unique in the process for the lifetime of the tensor
  const std::shared_ptr<const GraphNode>& producer() const;  // null unless symbolic
  int producer_output() const;  // position among the outputs of the producer

 private:
  struct Impl;
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  int64_t row_bytes() const;  // distance between the rows of a view; negative for other tensors
  Tensor view(const Shape& shape, int64_t first_byte, int64_t row_bytes) const;
  const void* first_element(DType expected) const;
  const void* elements(DType expected) const;
  void* mutable_elements(DType expected);

  std::shared_ptr<Impl> impl_;
  std::shared_ptr<const Tensor> mask_;
};

// Prints "Tensor(shape=(2, 2), dtype=float32, [1, 2, 3, 4])". At most 16 values are printed.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

template <Element T>
std::span<const T> Tensor::data() const {
  return {static_cast<const T*>(elements(DTypeOf<T>::kValue)), static_cast<size_t>(size())};
}
template <Element T>
TensorRows<T> Tensor::rows() const {
  if (rank() == 0) throw ValueError("Tensor.rows: rank must be at least 1, shape is ", shape());
  const auto* first = static_cast<const T*>(first_element(DTypeOf<T>::kValue));
  if (is_view()) return {first, row_bytes() / static_cast<int64_t>(sizeof(T))};
  return {first, shape().slice(1, rank()).size()};
}
template <Element T>
std::span<T> Tensor::mutable_data() {
  return {static_cast<T*>(mutable_elements(DTypeOf<T>::kValue)), static_cast<size_t>(size())};
}

}  // namespace keel

// Most sources copy and destroy vectors of tensors. The code is in instantiations.cc.
extern template std::vector<keel::Tensor>::~vector();
extern template std::vector<keel::Tensor>::vector(const std::vector<keel::Tensor>& other);
extern template std::vector<keel::Tensor>& std::vector<keel::Tensor>::operator=(
    const std::vector<keel::Tensor>& other);
