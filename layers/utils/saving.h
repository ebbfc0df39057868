// Classes of your own in files (keras.saving): registration under a package, and scopes.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/config/registry.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularizers.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

namespace optimizers {
// The registry of optimizers.
Registry<Optimizer>& optimizer_registry();
}  // namespace optimizers

namespace saving {

// A class that can be registered: a layer or model, a loss, a metric, an optimizer, a regularizer
// or a constraint.
template <class T>
concept Serializable =
    std::derived_from<T, Layer> || std::derived_from<T, Loss> || std::derived_from<T, Metric> ||
    std::derived_from<T, Optimizer> || std::derived_from<T, RegularizerFunction> ||
    std::derived_from<T, ConstraintFunction>;

// Returns the registry of classes of this kind.
template <Serializable T>
auto& registry_of() {
  if constexpr (std::derived_from<T, Layer>) {
    return layer_registry();
  } else if constexpr (std::derived_from<T, Loss>) {
    return loss_registry();
  } else if constexpr (std::derived_from<T, Metric>) {
    return metric_registry();
  } else if constexpr (std::derived_from<T, Optimizer>) {
    return optimizers::optimizer_registry();
  } else {
    return T::registry();
  }
}

// Registers a class as "package>name", as the decorator of this name does in Keras, and returns
// this name. Layers, losses, metrics and optimizers of the class are written to files under it. The
// default of `name` is T::kClassName without its package. The class needs what its registry
// requires, see layers/registry.h. Throws ValueError for an empty package, and if the package or
// the name contains '>'.
template <Serializable T>
std::string register_keras_serializable(const std::string& package = "Custom",
                                        const std::string& name = {});

// Returns the name under which the class of an object is written to files: "Package>Class" if it
// was registered under a package, otherwise its class name.
template <Serializable T>
std::string get_registered_name(const T& object) {
  return registry_of<T>().name_of(object);
}

// A class and the name by which files refer to it in a CustomObjectScope.
class CustomObject {
 public:
  // Returns the object for class T.
  template <Serializable T>
  static CustomObject of(const std::string& name = T::kClassName) {
    return CustomObject([name] {
      auto& registry = registry_of<T>();
      return registry.add_in_scope(name, registry.template maker_of<T>());
    });
  }
  // Makes the class known until the result is destroyed; for CustomObjectScope.
  std::shared_ptr<const void> enter() const { return enter_(); }

 private:
  explicit CustomObject(std::function<std::shared_ptr<const void>()> enter)
      : enter_(std::move(enter)) {}
  std::function<std::shared_ptr<const void>()> enter_;
};

// Makes classes known to load_model(), deserialize() and names of options while it is alive
// (keras.saving.CustomObjectScope). They take precedence over registered classes of the same name.
// In contrast to Keras, the scope applies to all threads. Scopes must end in reverse order.
//
//   const saving::CustomObjectScope scope({saving::CustomObject::of<MyLayer>()});
//   ModelHandle model = load_model("model.keras");
class CustomObjectScope {
 public:
  // Begins the scope.
  explicit CustomObjectScope(const std::vector<CustomObject>& objects);
  ~CustomObjectScope();  // ends the scope
  CustomObjectScope(const CustomObjectScope&) = delete;
  CustomObjectScope& operator=(const CustomObjectScope&) = delete;

 private:
  std::vector<std::shared_ptr<const void>> entered_;
};

// Returns "package>name", where `name` defaults to the last part of `class_name`. Throws the
// ValueErrors of register_keras_serializable().
std::string qualified_name(const std::string& package, const std::string& name,
                           const std::string& class_name);

template <Serializable T>
std::string register_keras_serializable(const std::string& package, const std::string& name) {
  const std::string qualified = qualified_name(package, name, T::kClassName);
  registry_of<T>().template add_as<T>(qualified);
  return qualified;
}

}  // namespace saving
}  // namespace keel
