// Config: a JSON-like value, the serialized form of layers and optimizers.
//
// Keys keep insertion order, so equal objects always produce equal bytes. Integers and
// doubles are kept apart, as JSON files of Keras keep them.
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

namespace keel {

class Config {
 public:
  using List = std::vector<Config>;
  using Dict = std::vector<std::pair<std::string, Config>>;

  Config() = default;  // null
  // Not the copies of the variant: where memory runs out, libstdc++ 12 destroys values that it has
  // not made.
  Config(const Config& other);
  Config(Config&&) noexcept = default;
  Config& operator=(const Config& other) { return *this = Config(other); }
  Config& operator=(Config&&) noexcept = default;
  ~Config() = default;
  Config(bool v) : value_(v) {}                      // NOLINT: implicit
  Config(int64_t v) : value_(v) {}                   // NOLINT: implicit
  Config(int v) : value_(int64_t{v}) {}              // NOLINT: implicit
  Config(double v) : value_(v) {}                    // NOLINT: implicit
  Config(std::string v) : value_(std::move(v)) {}    // NOLINT: implicit
  Config(const char* v) : value_(std::string(v)) {}  // NOLINT: implicit
  Config(List v) : value_(std::move(v)) {}           // NOLINT: implicit
  Config(Dict v) : value_(std::move(v)) {}           // NOLINT: implicit
  static Config list(std::initializer_list<Config> items) { return List(items); }
  static Config dict(std::initializer_list<std::pair<std::string, Config>> entries = {}) {
    return Dict(entries);
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }

  // TypeError, naming what was found, if it is something else.
  bool boolean() const;
  int64_t integer() const;  // a double without fraction counts
  double number() const;    // an integer counts
  const std::string& string() const;
  const List& items() const;
  const Dict& entries() const;

  const Config& operator[](const std::string& key) const;  // ValueError if absent
  const Config* find(const std::string& key) const;        // null if absent
  void set(const std::string& key, Config value);          // replaces or appends
  void erase(const std::string& key);                      // nothing if absent
  void push_back(Config value);                            // to a list

  friend bool operator==(const Config&, const Config&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Config& config);  // as to_json

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Dict> value_;
};

// The JSON text Python's json.dumps would write: ", " and ": " as separators, non-ASCII escaped,
// shortest doubles that read back the same, NaN and Infinity.
std::string to_json(const Config& config);
// ValueError at the first mistake, with its offset. NaN, Infinity and -Infinity are read.
Config parse_json(const std::string& text);

// One value <-> Config. Overloaded next to each type that options use.
inline Config encode(bool v) { return v; }
inline Config encode(int v) { return v; }
inline Config encode(int64_t v) { return v; }
inline Config encode(double v) { return v; }
inline Config encode(const std::string& v) { return v; }
Config encode(DType v);
Config encode(const Shape& v);  // unknown dimensions are null
void decode(const Config& c, bool& v);
void decode(const Config& c, int& v);
void decode(const Config& c, int64_t& v);
void decode(const Config& c, double& v);
void decode(const Config& c, std::string& v);
void decode(const Config& c, DType& v);  // a name, or Keras's DTypePolicy object
void decode(const Config& c, Shape& v);

// Declared before optional's, for optional vectors.
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

// Options <-> Config through the options' own `fields` list, the only place that names the
// parameters of a class for files:
//   static void fields(auto& self, auto&& field) { field("units", self.units); }
template <class Options>
Config to_config(const Options& options) {
  Config out = Config::dict();
  Options::fields(options,
                  [&](const char* name, const auto& value) { out.set(name, encode(value)); });
  return out;
}

namespace config_internal {
void reject_unknown_keys(const Config& config, const std::vector<std::string>& known,
                         const std::string& caller);
}

// ValueError for a key that `fields` does not list, TypeError for a value of a wrong kind; both
// name `caller` and the key. Keys left out keep their defaults. So do keys whose value is null,
// unless null is a value of the field, and an unlisted key may be null: it asks for nothing.
template <class Options>
Options from_config(const Config& config, const std::string& caller) {
  Options out;
  std::vector<std::string> known;
  Options::fields(out, [&](const char* name, auto& value) {
    known.emplace_back(name);
    const Config* found = config.find(name);
    if (found == nullptr) return;
    try {
      decode(*found, value);
    } catch (const TypeError& error) {
      if (found->is_null()) return;
      throw TypeError(caller, ": config key '", name, "': ", error.what());
    }
  });
  config_internal::reject_unknown_keys(config, known, caller);
  return out;
}

}  // namespace keel
