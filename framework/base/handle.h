// Handle<T>: a shared, never-null reference to a layer, model or optimizer.
//
//   using Dense = Handle<DenseLayer>;
//   Dense dense({.units = 64, .activation = "relu"});   // makes a DenseLayer
//   Dense same = dense;                                 // shares it, as in Python
//   dense->kernel();                                    // reaches the object
#pragma once

#include <concepts>
#include <memory>
#include <utility>

namespace keel {

// Tags the making of a handle from an existing object. Without it `Flatten({})` would
// choose the shared_ptr constructor and make a null handle.
struct Adopt {};
inline constexpr Adopt kAdopt;

template <class T>
class Handle {
 public:
  // The default argument lets a braced options list choose T::Options.
  template <class U = T>
  explicit Handle(typename U::Options options) : ptr_(std::make_shared<U>(std::move(options))) {}
  Handle(Adopt, std::shared_ptr<T> object) : ptr_(std::move(object)) {}
  template <std::derived_from<T> U>
  Handle(Handle<U> other) : ptr_(std::move(other).shared()) {}  // NOLINT: implicit upcast

  T* operator->() const { return ptr_.get(); }
  T& operator*() const { return *ptr_; }
  const std::shared_ptr<T>& shared() const& { return ptr_; }
  std::shared_ptr<T> shared() && { return std::move(ptr_); }
  // True for handles of the same object.
  friend bool operator==(const Handle& a, const Handle& b) { return a.ptr_ == b.ptr_; }

 private:
  std::shared_ptr<T> ptr_;
};

}  // namespace keel
