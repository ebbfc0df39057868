// Registry<Base>: makes objects derived from Base from their class name and Config.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// A registry of classes. Thread safe: classes may be added while objects are made.
template <class Base>
class Registry {
 public:
  using Maker = std::function<std::shared_ptr<Base>(const Config&)>;

  // `what` names the kind of class in messages, e.g. "layer".
  explicit Registry(std::string what) : what_(std::move(what)) {}

  // Adds a class T. T has T::kClassName and either a static T::from_config(config) that returns a
  // shared pointer, or T::Options with `fields` and a constructor from T::Options.
  template <class T>
  void add() {
    add(T::kClassName, [](const Config& config) -> std::shared_ptr<Base> {
      if constexpr (requires { T::from_config(config); }) {
        return T::from_config(config);
      } else {
        return std::make_shared<T>(from_config<typename T::Options>(config, T::kClassName));
      }
    });
  }
  // Adds a class with its own factory function. Replaces a class of the same name.
  void add(const std::string& class_name, Maker maker) {
    const std::lock_guard lock(mutex_);
    makers_[class_name] = std::move(maker);
  }

  // Makes an object. Throws ValueError for an unknown class, and any exception of from_config and
  // the constructor.
  std::shared_ptr<Base> make(const std::string& class_name, const Config& config) const {
    // The maker is called without the lock, so that it may use the registry itself.
    Maker maker;
    {
      const std::lock_guard lock(mutex_);
      const auto it = makers_.find(class_name);
      if (it == makers_.end()) {
        throw ValueError("unknown ", what_, " class '", class_name, "'; register it first");
      }
      maker = it->second;
    }
    return maker(config);
  }

  // Returns the names of all registered classes in ascending order.
  std::vector<std::string> class_names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [name, maker] : makers_) out.push_back(name);
    return out;
  }

 private:
  const std::string what_;
  mutable std::mutex mutex_;  // guards makers_
  std::map<std::string, Maker> makers_;
};

}  // namespace keel

// Registers a built-in class. Used in the source of the class, the macro defines
// keel::internal::register_<Class>(registry), which the list of built-in classes of that Base
// calls. The list needs no header of the class, and no static initializer is involved that a linker
// might drop.
#define KEEL_REGISTER(Base, Class)                                                    \
  namespace internal {                                                                \
  void register_##Class(Registry<Base>& registry);                                    \
  void register_##Class(Registry<Base>& registry) { registry.template add<Class>(); } \
  }
// Declares the function that KEEL_REGISTER defines.
#define KEEL_DECLARE_REGISTRATION(Base, Class) void register_##Class(Registry<Base>& registry);
