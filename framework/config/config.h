// Config: a JSON-like value, the serialized form of layers and optimizers.
//
// Keys keep their insertion order, so that equal objects always produce equal bytes. Integers and
// doubles are distinct types, as in the JSON files of Keras.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <keel/framework/base/dtype.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/shape.h>
#include <keel/framework/config/field_check.h>

namespace keel {

// A value: null, a boolean, an integer, a double, a string, a list or a dict.
class Config {
 public:
  // The elements of a list.
  using List = std::vector<Config>;
  // The keys and values of a dict, in the order in which they were added.
  using Dict = std::vector<std::pair<std::string, Config>>;

  Config() = default;  // null
  // Does not use the variant's copy constructor: when memory is exhausted, that of libstdc++ 12
  // destroys values that it has not constructed.
  Config(const Config& other);
  Config(Config&&) noexcept = default;
  // Assign a copy or move the value.
  Config& operator=(const Config& other) { return *this = Config(other); }
  Config& operator=(Config&&) noexcept = default;
  ~Config() = default;
  // Make a value of the type of the argument.
  Config(bool v) : value_(v) {}                      // NOLINT: implicit
  Config(int64_t v) : value_(v) {}                   // NOLINT: implicit
  Config(int v) : value_(int64_t{v}) {}              // NOLINT: implicit
  Config(double v) : value_(v) {}                    // NOLINT: implicit
  Config(std::string v) : value_(std::move(v)) {}    // NOLINT: implicit
  Config(const char* v) : value_(std::string(v)) {}  // NOLINT: implicit
  Config(List v) : value_(std::move(v)) {}           // NOLINT: implicit
  Config(Dict v) : value_(std::move(v)) {}           // NOLINT: implicit
  // Make a list or a dict from its elements.
  static Config list(std::initializer_list<Config> items) { return List(items); }
  static Config dict(std::initializer_list<std::pair<std::string, Config>> entries = {}) {
    return Dict(entries);
  }

  // Return true if the value has this type. is_number() accepts integers and doubles.
  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }

  // Return the value. They throw TypeError, with the actual type in the message, if it has another
  // type.
  bool boolean() const;
  int64_t integer() const;            // also accepts a double without a fraction
  double number() const;              // also accepts an integer
  const std::string& string() const;  // a string
  const List& items() const;          // the elements of a list
  const Dict& entries() const;        // the entries of a dict

  // Access to the entries of a dict, except push_back(), which requires a list. Throw TypeError for
  // a value of another type.
  const Config& operator[](const std::string& key) const;  // throws ValueError if missing
  const Config* find(const std::string& key) const;        // null if missing
  void set(const std::string& key, Config value);          // replaces or appends
  void erase(const std::string& key);                      // does nothing if missing
  void push_back(Config value);                            // appends to a list

  friend bool operator==(const Config&, const Config&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Config& config);  // prints to_json()

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Dict> value_;
};

// Returns the JSON text that Python's json.dumps would write: ", " and ": " as separators,
// non-ASCII characters escaped, doubles with the fewest digits that read back the same value, NaN
// and Infinity. Throws ValueError if a string is not valid UTF-8.
std::string to_json(const Config& config);
// Parses JSON text. Also accepts NaN, Infinity and -Infinity. Throws ValueError, with the offset of
// the first syntax error, if the text is invalid, and if it nests more than 512 levels.
Config parse_json(const std::string& text);

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
