// Handle<T>: a shared, never-null reference to a layer, model or optimizer.
//
//   using Dense = Handle<DenseLayer>;
//   Dense dense({.units = 64, .activation = "relu"});   // makes a DenseLayer
//   Dense same = dense;                                 // shares it, as in Python
//   dense->kernel();                                    // reaches the object
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace keel {

// Tag of the constructor that makes a handle from an existing object. Without the tag,
// `Flatten({})` would select the shared_ptr constructor and make a null handle.
struct Adopt {};
// The value of the tag: Handle<T>(kAdopt, object).
inline constexpr Adopt kAdopt;

// Makes an object. A class may name a base class with a virtual destructor in U::OwnedAs, so that
// it shares the code that owns objects with other classes of that base.
template <class U, class... Args>
std::shared_ptr<U> make_owned(Args&&... args) {
  if constexpr (requires { typename U::OwnedAs; }) {
    static_assert(std::has_virtual_destructor_v<typename U::OwnedAs>);
    U* const object = new U(std::forward<Args>(args)...);
    return {std::shared_ptr<typename U::OwnedAs>(static_cast<typename U::OwnedAs*>(object)),
            object};
  } else {
    return std::make_shared<U>(std::forward<Args>(args)...);
  }
}

// A shared reference to a T. Copies refer to the same object, and it is never null unless moved
// from.
template <class T>
class Handle {
 public:
  // Makes a new T from its options. This is a template so that T may be a class without Options,
  // such as an abstract base.
  template <class U = T>
  explicit Handle(typename U::Options options) : ptr_(make_owned<U>(std::move(options))) {}
  // Shares an existing object, which must not be null.
  Handle(Adopt, std::shared_ptr<T> object) : ptr_(std::move(object)) {}
  // Converts a handle of a derived class.
  template <std::derived_from<T> U>
  Handle(Handle<U> other) : ptr_(std::move(other).shared()) {}  // NOLINT: implicit upcast

  // Give access to the object.
  T* operator->() const { return ptr_.get(); }
  T& operator*() const { return *ptr_; }
  // Returns the shared pointer to the object.
  const std::shared_ptr<T>& shared() const& { return ptr_; }
  std::shared_ptr<T> shared() && { return std::move(ptr_); }
  // Returns true if both handles refer to the same object, whatever its state.
  friend bool operator==(const Handle& a, const Handle& b) { return a.ptr_ == b.ptr_; }

 private:
  std::shared_ptr<T> ptr_;
};

}  // namespace keel
