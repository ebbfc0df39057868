// SharedFunction: a function object for option structs. Copies share one function and compare equal
// by its identity.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace keel {

template <class Signature>
class SharedFunction;

// Converts from every callable that std::function accepts. An empty std::function gives an empty
// SharedFunction. Two objects are equal if they are
// - copies of one SharedFunction,
// - the same plain function,
// - function objects of one class without members (a lambda that captures nothing),
// - references (std::ref) to the same object.
// Any other function object is copied when it is converted, so two conversions of it are not equal.
template <class Result, class... Args>
class SharedFunction<Result(Args...)> {
 public:
  // The function that is shared.
  using Function = std::function<Result(Args...)>;

  // Makes an empty function.
  SharedFunction() = default;
  SharedFunction(std::nullptr_t) {}  // NOLINT: implicit
  template <class F>
    requires(!std::is_same_v<F, SharedFunction> && std::is_invocable_r_v<Result, F&, Args...>)
  SharedFunction(F callable)  // NOLINT: implicit
  {
    const void* const known = identity_of(callable);
    Function made(std::move(callable));
    if (!made) return;
    function_ = std::make_shared<const Function>(std::move(made));
    identity_ = known != nullptr ? known : function_.get();
  }

  explicit operator bool() const { return function_ != nullptr; }
  // Calls the function, which must not be empty.
  Result operator()(Args... args) const { return (*function_)(std::forward<Args>(args)...); }
  // Returns the function, or null if this is empty.
  const std::shared_ptr<const Function>& function() const { return function_; }

  // Returns a pointer that is equal for equal functions, e.g. for hashing; null if empty.
  const void* identity() const { return identity_; }
  friend bool operator==(const SharedFunction& a, const SharedFunction& b) {
    return a.identity_ == b.identity_;
  }

 private:
  using Plain = Result (*)(Args...);
  template <class F>
  static constexpr char kClassTag = 0;

  // Returns a pointer that is equal for equal callables, or null if only copies of this
  // SharedFunction are equal to it.
  template <class F>
  static const void* identity_of(const F&) {
    return std::is_empty_v<F> ? &kClassTag<F> : nullptr;
  }
  template <class R, class... A>
  static const void* identity_of(R (*plain)(A...)) {
    return reinterpret_cast<const void*>(plain);
  }
  template <class F>
  static const void* identity_of(const std::reference_wrapper<F>& reference) {
    return &reference.get();
  }
  static const void* identity_of(const Function& callable) {
    const Plain* plain = callable.template target<Plain>();
    return plain == nullptr ? nullptr : identity_of(*plain);
  }

  std::shared_ptr<const Function> function_;
  const void* identity_ = nullptr;
};

}  // namespace keel
