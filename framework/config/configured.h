// Configured: the type of options for which Keras accepts None, a name or an object (regularizers,
// constraints).
#pragma once

#include <memory>
#include <string>

#include <keel/framework/config/registry.h>

namespace keel {

// Converts a Keras name to a class name: "unit_norm" to "UnitNorm", "l1_l2" to "L1L2". Class names
// are unchanged.
std::string class_name_of(const std::string& name);

// Holds an immutable object, which copies share, or nothing (None). Base must have virtual
// functions class_name() and get_config(), and a static function registry() that returns the
// registry of its classes.
template <class Base>
class Configured {
 public:
  Configured() = default;  // nothing
  // Make an object of the named class with default parameters. Throw ValueError if the name is
  // unknown.
  Configured(const char* name) : Configured(std::string(name)) {}            // NOLINT: implicit
  Configured(const std::string& name) : Configured(name, Config::dict()) {}  // NOLINT: implicit
  // Shares an object, or holds nothing if it is null.
  explicit Configured(std::shared_ptr<const Base> object) : object_(std::move(object)) {}
  // Makes an object of the named class. Throws ValueError if the name is unknown, and the
  // exceptions of the class's constructor.
  Configured(const std::string& name, const Config& config)
      : object_(Base::registry().make(class_name_of(name), config)) {}

  explicit operator bool() const { return object_ != nullptr; }
  // Return the object. Must not be called if there is none.
  const Base& operator*() const { return *object_; }
  const Base* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<const Base> object_;
};

// Returns null or {"class_name": ..., "config": ...}.
template <class Base>
Config encode(const Configured<Base>& value) {
  if (!value) return {};
  return Config::dict({{"class_name", value->class_name()}, {"config", value->get_config()}});
}

// Reads the forms that encode() writes, or a name.
template <class Base>
void decode(const Config& config, Configured<Base>& value) {
  if (config.is_null()) {
    value = {};
  } else if (config.is_string()) {
    value = Configured<Base>(config.string());
  } else {
    const Config* inner = config.find("config");
    value = Configured<Base>(config["class_name"].string(),
                             inner == nullptr || inner->is_null() ? Config::dict() : *inner);
  }
}

}  // namespace keel
