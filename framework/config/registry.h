// Registry<Base>: makes objects derived from Base from their class name and Config.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <keel/framework/config/config.h>

namespace keel {

// The name of a class as a template argument, given as a string literal.
template <size_t kSize>
struct ClassName {
  // Converts a literal.
  constexpr ClassName(const char (&literal)[kSize]) {  // NOLINT: implicit
    std::copy_n(literal, kSize, text);
  }
  char text[kSize] = {};  // ends with a zero
};

// The facts about a class that files of Keras contain besides its config.
struct ClassTraits {
  // The Python package that has a class of this name: "keras" or "keras_rs". "keel" means that only
  // this library has the class, so that Keras rejects files with it. Empty for classes of the user,
  // whose package is a part of the name: "Package>Class".
  std::string package = "keel";
  // For a layer: the parameters of call() in Keras, in their order: "x0, x". A flag is written with
  // its default: "query, value, use_causal_mask=false". A layer whose call() has `training` names
  // it: "inputs, training". So does a layer that takes a mask: "mask", or "query_mask" for the
  // input `query`.
  std::string call = "inputs";
  // For a layer: keys that Keras writes and for which this class has no option. "sparse=false" may
  // be dropped if it has this value (JSON) or is null, "fused=*" has no effect.
  std::string ignored_keys = "";  // NOLINT: without a value, GCC warns where it is left out
};

// Returns {"module", "class_name", "config", "registered_name"}, the form of objects in Keras 3.
// `kind` is the last part of the module: "layers". A user's class without a package is written as
// one of Keras.
Config to_keras_object(const ClassTraits& traits, const std::string& kind,
                       const std::string& class_name, Config config);

namespace registry_internal {

// ClassTraits with literals, which need no code where a class registers.
struct LiteralTraits {
  const char* package = "keel";
  const char* call = "inputs";
  const char* ignored_keys = "";

  ClassTraits traits() const;
};

// The classes of a registry by name, for every Base. Pointers to objects are those to their Base.
class Classes {
 public:
  using Maker = std::function<std::shared_ptr<void>(const Config&)>;

  explicit Classes(std::string what) : what_(std::move(what)) {}
  void add(const std::string& class_name, Maker maker, ClassTraits traits);
  std::shared_ptr<const void> add_in_scope(const std::string& class_name, Maker maker);
  void set_name(std::type_index type, const std::string& class_name);
  std::shared_ptr<void> make(const std::string& name, const Config& config) const;
  std::vector<std::string> class_names() const;
  std::optional<std::string> name_of(std::type_index type) const;
  ClassTraits traits(const std::string& class_name) const;

 private:
  struct Entry {
    Maker maker;
    ClassTraits traits;
  };
  const std::string what_;
  mutable std::mutex mutex_;  // guards classes_ and names_
  std::map<std::string, Entry> classes_;
  std::map<std::type_index, std::string> names_;  // of set_name()
};

}  // namespace registry_internal

// A registry of classes. Thread safe: classes may be added while objects are made.
template <class Base>
class Registry {
 public:
  // Makes an object from its config.
  using Maker = std::function<std::shared_ptr<Base>(const Config&)>;

  // `what` names the kind of class in messages, e.g. "layer".
  explicit Registry(std::string what) : classes_(std::move(what)) {}

  // Adds a class T. T has T::kClassName and either a static T::from_config(config) that returns a
  // shared pointer, or T::Options with `fields` and a constructor from T::Options.
  template <class T>
  void add(ClassTraits traits = ClassTraits{.package = ""}) {
    classes_.add(T::kClassName, make_object<T>, std::move(traits));
  }
  // Adds a class of this library; see KEEL_REGISTER.
  template <class T>
  void add_builtin(const registry_internal::LiteralTraits& traits) {
    classes_.add(T::kClassName, make_object<T>, traits.traits());
  }
  // Adds a class of the user under another name than T::kClassName, such as "Package>Class".
  // Objects of this class are serialized under that name.
  template <class T>
  void add_as(const std::string& class_name) {
    classes_.add(class_name, make_object<T>, ClassTraits{.package = ""});
    classes_.set_name(std::type_index(typeid(T)), class_name);
  }
  // Adds several classes with the same traits.
  template <class... T>
  void add_all(const ClassTraits& traits = ClassTraits{.package = ""}) {
    (add<T>(traits), ...);
  }
  // Adds a class with its own factory function. Replaces a class of the same name.
  void add(const std::string& class_name, Maker maker,
           ClassTraits traits = ClassTraits{.package = ""}) {
    classes_.add(class_name, std::move(maker), std::move(traits));
  }

  // Adds a class, or replaces one, until the returned object is destroyed. Objects of several such
  // calls must be destroyed in reverse order.
  std::shared_ptr<const void> add_in_scope(const std::string& class_name, Maker maker) {
    return classes_.add_in_scope(class_name, std::move(maker));
  }
  // Returns a maker of objects of class T.
  template <class T>
  static Maker maker_of() {
    return
        [](const Config& config) { return std::static_pointer_cast<Base>(make_object<T>(config)); };
  }

  // Makes an object. Throws ValueError for an unknown class, and any exception of from_config and
  // the constructor.
  std::shared_ptr<Base> make(const std::string& name, const Config& config) const {
    return std::static_pointer_cast<Base>(classes_.make(name, config));
  }

  // Returns the names of all registered classes in ascending order.
  std::vector<std::string> class_names() const { return classes_.class_names(); }
  // Returns the name under which an object is serialized: that of add_as(), or its class name.
  std::string name_of(const Base& object) const {
    const std::optional<std::string> name = classes_.name_of(std::type_index(typeid(object)));
    return name.has_value() ? *name : std::string(object.class_name());
  }
  // Returns the traits of a class, those of a user's class if the name is unknown.
  ClassTraits traits(const std::string& class_name) const { return classes_.traits(class_name); }

 private:
  // Returns a pointer to Base that owns a Base, so that classes share the code that destroys them.
  template <class T>
  static std::shared_ptr<void> make_object(const Config& config) {
    if constexpr (requires { T::from_config(config); }) {
      return std::shared_ptr<Base>(T::from_config(config));
    } else if constexpr (std::has_virtual_destructor_v<Base>) {
      return std::shared_ptr<Base>(
          static_cast<Base*>(new T(from_config<typename T::Options>(config, T::kClassName))));
    } else {
      return std::shared_ptr<Base>(
          std::make_shared<T>(from_config<typename T::Options>(config, T::kClassName)));
    }
  }

  registry_internal::Classes classes_;
};

}  // namespace keel

// Registers a built-in class, with its ClassTraits:
//   KEEL_REGISTER(Layer, FeatureCrossLayer, .package = "keras_rs", .call = "x0, x")
// Used in the source of the class, the macro defines keel::internal::register_<Class>(registry),
// which the list of built-in classes of that Base calls. The list needs no header of the class, and
// no static initializer is involved that a linker might drop.
#define KEEL_REGISTER(Base, Class, ...)                  \
  namespace internal {                                   \
  void register_##Class(Registry<Base>& registry);       \
  void register_##Class(Registry<Base>& registry) {      \
    registry.template add_builtin<Class>({__VA_ARGS__}); \
  }                                                      \
  }
// Registers the built-in classes of one source. The body of the function
// keel::internal::register_<group>(registry) follows:
//   KEEL_REGISTER_ALL(Loss, margin_losses) {
//     registry.add_all<CircleLoss, HingeLoss>({.package = "keras"});
//   }
#define KEEL_REGISTER_ALL(Base, group)             \
  namespace internal {                             \
  void register_##group(Registry<Base>& registry); \
  }                                                \
  void internal::register_##group(Registry<Base>& registry)
// Declares the function that KEEL_REGISTER or KEEL_REGISTER_ALL defines.
#define KEEL_DECLARE_REGISTRATION(Base, Class) void register_##Class(Registry<Base>& registry);
