// Registry<Base>: makes a Base from its class name and Config.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// Thread safe: user classes may be added while others are made.
template <class Base>
class Registry {
 public:
  using Maker = std::function<std::shared_ptr<Base>(const Config&)>;

  explicit Registry(std::string what) : what_(std::move(what)) {}

  // T has T::kClassName and either a static T::from_config(config) that returns a shared pointer,
  // or T::Options with `fields` and a constructor from T::Options.
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
  // Replaces a class of the same name.
  void add(const std::string& class_name, Maker maker) {
    const std::lock_guard lock(mutex_);
    makers_[class_name] = std::move(maker);
  }

  // ValueError for an unknown class; whatever from_config and the constructor throw.
  std::shared_ptr<Base> make(const std::string& class_name, const Config& config) const {
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

// Stands in the source of a built-in class and defines keel::internal::register_<Class>(registry),
// which the list of built-in classes of that Base calls. The list needs no header of the class, and
// no static initializer that a linker may drop is involved.
#define KEEL_REGISTER(Base, Class)                                                    \
  namespace internal {                                                                \
  void register_##Class(Registry<Base>& registry);                                    \
  void register_##Class(Registry<Base>& registry) { registry.template add<Class>(); } \
  }
#define KEEL_DECLARE_REGISTRATION(Base, Class) void register_##Class(Registry<Base>& registry);
