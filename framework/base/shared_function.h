// SharedFunction: a function that options hold, shared by its copies and compared by identity.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace keel {

template <class Signature>
class SharedFunction;

// Made from anything that std::function is made from; an empty std::function makes an empty one.
// Equal are
//   copies of one SharedFunction,
//   the same plain function,
//   objects of one class without members (a lambda that captures nothing),
//   references (std::ref) to the same object.
// Any other function object is copied, and each copy is a function of its own.
template <class Result, class... Args>
class SharedFunction<Result(Args...)> {
 public:
  using Function = std::function<Result(Args...)>;

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
  Result operator()(Args... args) const { return (*function_)(std::forward<Args>(args)...); }
  const std::shared_ptr<const Function>& function() const { return function_; }  // null if empty

  // Equal for equal functions, for hashing; null if empty.
  const void* identity() const { return identity_; }
  friend bool operator==(const SharedFunction& a, const SharedFunction& b) {
    return a.identity_ == b.identity_;
  }

 private:
  using Plain = Result (*)(Args...);
  template <class F>
  static constexpr char kClassTag = 0;

  // Null for what only its copies are equal to.
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
