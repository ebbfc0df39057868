// FunctionRef<R(Args...)>: a reference to a callable, for parameters that are only called.
//
// It has the size of two pointers and never allocates. Unlike std::function, it generates no code
// for copies and destruction of the callable, which matters for parameters that take a different
// lambda at every call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace keel {

template <class Signature>
class FunctionRef;

// Refers to a function, lambda or function object, which must outlive the reference. Use it for
// parameters of functions that do not store it; a temporary lambda lives until the call returns.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  // Refers to a function or a function object, which must exist as long as it is called.
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             requires(F& callable, Args... args) {
               static_cast<R>(callable(std::forward<Args>(args)...));
             })
  FunctionRef(F&& callable) noexcept {  // NOLINT: implicit
    using Callable = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Callable>) {
      target_.function = reinterpret_cast<void (*)()>(&callable);
    } else {
      target_.object = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
    }
    call_ = &FunctionRef::call<Callable>;
  }

  // Calls the referenced callable.
  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    void* object;
    void (*function)();
  };

  // The casts make void of a result that the signature does not return.
  template <class Callable>
  static R call(Target target, Args... args) {
    if constexpr (std::is_function_v<Callable>) {
      return static_cast<R>(
          reinterpret_cast<Callable*>(target.function)(std::forward<Args>(args)...));
    } else {
      return static_cast<R>((*static_cast<Callable*>(target.object))(std::forward<Args>(args)...));
    }
  }

  Target target_;
  R (*call_)(Target target, Args... args);
};

}  // namespace keel
