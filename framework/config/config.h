// The conversion of options and their members to and from Config (config_value.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/framework/base/dtype.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/shape.h>
#include <keel/framework/config/config_value.h>
#include <keel/framework/config/field_check.h>

namespace keel {

// encode() and decode() convert a single value to and from Config. Every type of an option has
// overloads, which are declared next to the type. decode() throws TypeError if the Config has
// another type.
inline Config encode(bool v) { return v; }
inline Config encode(int v) { return v; }
inline Config encode(int64_t v) { return v; }
inline Config encode(double v) { return v; }
inline Config encode(const std::string& v) { return v; }
Config encode(DType v);
Config encode(const Shape& v);  // unknown dimensions become null
// Read a value. A double accepts an integer, and an integer a double without a fraction.
void decode(const Config& c, bool& v);
void decode(const Config& c, int& v);
void decode(const Config& c, int64_t& v);
void decode(const Config& c, double& v);
void decode(const Config& c, std::string& v);
void decode(const Config& c, Shape& v);
void decode(const Config& c, DType& v);  // accepts a name or a Keras DTypePolicy object

// Declared before the overloads of std::optional, so that they can use optional vectors.
template <class T>
Config encode(const std::vector<T>& v);
template <class T>
void decode(const Config& c, std::vector<T>& v);
template <class T>
Config encode(const std::optional<T>& v) {
  return v.has_value() ? encode(*v) : Config();
}
template <class T>
void decode(const Config& c, std::optional<T>& v) {
  v.reset();
  if (c.is_null()) return;
  T value = {};
  decode(c, value);
  v = std::move(value);
}
template <class T>
Config encode(const std::vector<T>& v) {
  Config::List out;
  for (const auto& item : v) out.push_back(encode(item));
  return out;
}
template <class T>
void decode(const Config& c, std::vector<T>& v) {
  v.clear();
  for (const Config& item : c.items()) decode(item, v.emplace_back());
}

namespace config_internal {

// The fields of one options object: what its `fields` pass to operator(). One function per class
// lists them; to_config() and from_config() of all classes share the functions that walk the list.
class FieldList {
 public:
  using Encode = Config (*)(const void*);
  using Decode = void (*)(const Config&, void*);
  // A member of the object under its key, with the conversions of its type.
  struct Field {
    const char* key;
    const void* value;
    Encode encode;
    Decode decode;
  };

  // `reads`: the fields are read from a Config, not written.
  explicit FieldList(bool reads) : reads_(reads) {}
  bool reads() const { return reads_; }
  // Adds a field.
  template <class T>
  void operator()(const char* key, const T& value) {
    add({key, &value, encode_value<T>, decode_value<T>});
  }
  const std::vector<Field>& fields() const { return fields_; }

 private:
  template <class T>
  static Config encode_value(const void* value) {
    return encode(*static_cast<const T*>(value));
  }
  template <class T>
  static void decode_value(const Config& config, void* value) {
    decode(config, *static_cast<T*>(value));
  }
  void add(const Field& field);

  const bool reads_;
  std::vector<Field> fields_;
};

template <class Options>
void list_fields(const void* options, FieldList& list) {
  Options::fields(*static_cast<const Options*>(options), list);
}
using ListFields = void (*)(const void* options, FieldList& list);
Config write_fields(const void* options, ListFields list_fields);
void read_fields(const Config& config, const std::string& caller, void* options,
                 ListFields list_fields);
void reject_unknown_keys(const Config& config, const std::vector<std::string>& known,
                         const std::string& caller);

}  // namespace config_internal

// Returns true unless `fields` are called to write a Config, for a key that is read but not always
// written.
constexpr bool reads_fields(const auto& field) {
  if constexpr (requires { field.reads(); }) {
    return field.reads();
  } else {
    return true;
  }
}

// Converts options to a Config. An options struct lists the parameters that files contain, and
// their names, in its static function `fields`:
//   static constexpr void fields(auto& self, auto&& field) { field("units", self.units); }
// If it is constexpr and the struct has no base class, a member that it does not list is a
// compile-time error that names the struct. Name the members that are no part of the config, and
// say why, in a constant of the struct:
//   static constexpr const char* kUnsaved[] = {"schedule"};  // files cannot contain a function
template <class Options>
Config to_config(const Options& options) {
  config_internal::check_fields<Options>();
  return config_internal::write_fields(&options, config_internal::list_fields<Options>);
}

// Converts a Config to options. A field keeps its default if its key is missing, or if the value is
// null and null is not a valid value of the field. Throws ValueError for a key that `fields` does
// not list, unless its value is null, and TypeError for a value of the wrong type; both messages
// contain `caller` and the key.
template <class Options>
Options from_config(const Config& config, const std::string& caller) {
  config_internal::check_fields<Options>();
  Options out;
  config_internal::read_fields(config, caller, &out, config_internal::list_fields<Options>);
  return out;
}

}  // namespace keel
