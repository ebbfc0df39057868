#include <keel/framework/config/config.h>

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

const char* kind_of(const Config& c) {
  if (c.is_null()) return "null";
  if (c.is_bool()) return "a boolean";
  if (c.is_integer()) return "an integer";
  if (c.is_number()) return "a number";
  if (c.is_string()) return "a string";
  return c.is_list() ? "a list" : "a dict";
}

template <class T, class Variant>
const T& get(const Variant& value, const Config& self, const char* expected) {
  if (const T* p = std::get_if<T>(&value)) return *p;
  throw TypeError("Config: expected ", expected, ", received ", kind_of(self));
}

}  // namespace

Config::Config(const Config& other) {
  std::visit(
      [this]<class T>(const T& value) {
        T copy = value;
        value_.template emplace<T>(std::move(copy));
      },
      other.value_);
}

bool Config::boolean() const { return get<bool>(value_, *this, "a boolean"); }

int64_t Config::integer() const {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  // Other writers of JSON may write an integer as 3.0.
  const double* p = std::get_if<double>(&value_);
  if (p != nullptr && std::trunc(*p) == *p && *p >= -kEnd && *p < kEnd) {
    return static_cast<int64_t>(*p);
  }
  return get<int64_t>(value_, *this, "an integer");
}

double Config::number() const {
  if (is_integer()) return static_cast<double>(std::get<int64_t>(value_));
  return get<double>(value_, *this, "a number");
}

const std::string& Config::string() const { return get<std::string>(value_, *this, "a string"); }
const Config::List& Config::items() const { return get<List>(value_, *this, "a list"); }
const Config::Dict& Config::entries() const { return get<Dict>(value_, *this, "a dict"); }

// A dict is a list of entries, which keeps the order of the keys in files. It is short enough for a
// linear search.
const Config* Config::find(const std::string& key) const {
  const Dict& all = entries();
  const auto it = std::ranges::find(all, key, &Dict::value_type::first);
  return it == all.end() ? nullptr : &it->second;
}

const Config& Config::operator[](const std::string& key) const {
  if (const Config* found = find(key)) return *found;
  throw ValueError("Config: key '", key, "' is missing; add it to the config");
}

void Config::set(const std::string& key, Config value) {
  if (const Config* found = find(key)) {
    *const_cast<Config*>(found) = std::move(value);
  } else {
    std::get<Dict>(value_).emplace_back(key, std::move(value));
  }
}

void Config::erase(const std::string& key) {
  entries();
  std::erase_if(std::get<Dict>(value_), [&](const auto& entry) { return entry.first == key; });
}

void Config::push_back(Config value) {
  items();
  std::get<List>(value_).push_back(std::move(value));
}

Config encode(DType v) { return std::string(name_of(v)); }

Config encode(const Shape& v) {
  Config::List out;
  for (int64_t dim : v.dims()) out.push_back(dim == kUnknown ? Config() : Config(dim));
  return out;
}

void decode(const Config& c, bool& v) { v = c.boolean(); }
void decode(const Config& c, int& v) {
  const int64_t wide = c.integer();
  if (wide != static_cast<int>(wide))
    throw TypeError("Config: ", wide, " does not fit into 32 bits; pass a smaller number");
  v = static_cast<int>(wide);
}
void decode(const Config& c, int64_t& v) { v = c.integer(); }
void decode(const Config& c, double& v) { v = c.number(); }
void decode(const Config& c, std::string& v) { v = c.string(); }

void decode(const Config& c, DType& v) {
  // Keras writes a policy as {"class_name": "DTypePolicy", "config": {"name": "float32"}}.
  if (c.is_dict()) return decode(c["config"]["name"], v);
  v = dtype_from_name(c.string());
}

void decode(const Config& c, Shape& v) {
  std::vector<int64_t> dims;
  for (const Config& item : c.items()) dims.push_back(item.is_null() ? kUnknown : item.integer());
  v = Shape(dims);
}

void config_internal::FieldList::add(const Field& field) { fields_.push_back(field); }

Config config_internal::write_fields(const void* options, ListFields list_fields) {
  FieldList list(false);
  list_fields(options, list);
  Config out = Config::dict();
  for (const FieldList::Field& field : list.fields()) {
    out.set(field.key, field.encode(field.value));
  }
  return out;
}

void config_internal::read_fields(const Config& config, const std::string& caller, void* options,
                                  ListFields list_fields) {
  FieldList list(true);
  list_fields(options, list);
  std::vector<std::string> known;
  for (const FieldList::Field& field : list.fields()) {
    known.emplace_back(field.key);
    const Config* found = config.find(known.back());
    if (found == nullptr) continue;
    try {
      // The list has the addresses of the members of `options`, which is not constant.
      field.decode(*found, const_cast<void*>(field.value));
    } catch (const TypeError& error) {
      if (found->is_null()) continue;
      throw TypeError(caller, ": config key '", field.key, "': ", error.what());
    }
  }
  reject_unknown_keys(config, known, caller);
}

void config_internal::reject_unknown_keys(const Config& config,
                                          const std::vector<std::string>& known,
                                          const std::string& caller) {
  for (const auto& [key, value] : config.entries()) {
    // Keras writes null for options that are not set, also for options that do not exist here.
    if (!value.is_null() && std::ranges::find(known, key) == known.end()) {
      throw ValueError(caller, ": unknown config key '", key,
                       "'; remove it from the config, or check its spelling");
    }
  }
}

}  // namespace keel
