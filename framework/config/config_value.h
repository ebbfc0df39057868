// Config: a JSON-like value, the serialized form of layers and optimizers.
//
// Keys keep their insertion order, so that equal objects always produce equal bytes. Integers and
// doubles are distinct types, as in the JSON files of Keras.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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

}  // namespace keel
