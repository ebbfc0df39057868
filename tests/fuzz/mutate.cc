#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <keel/framework/config/config.h>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace keel::fuzz {
namespace {

void mutate_blindly(std::string& bytes, size_t max_size) {
  const size_t size = bytes.size();
  bytes.resize(std::max(max_size, size));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
}

// Changes a little-endian field somewhere.
void mutate_field(std::string& bytes, Random& random) {
  constexpr std::array<size_t, 4> kWidths = {1, 2, 4, 8};
  const size_t width = kWidths[below(random, kWidths.size())];
  if (bytes.size() < width) return;
  // Fields of HDF5 are aligned to their width, mostly.
  size_t at = below(random, bytes.size() - width + 1);
  if (below(random, 4) != 0) at -= at % width;
  uint64_t value = 0;
  std::memcpy(&value, &bytes[at], width);
  constexpr std::array<uint64_t, 12> kValues = {0,          1,          2,          0x7F,
                                                0xFF,       0x7FFF,     0xFFFF,     0x7FFFFFFF,
                                                0x80000000, 0xFFFFFFFF, 1ULL << 63, ~uint64_t{0}};
  switch (below(random, 6)) {
    case 0:
      value = kValues[below(random, kValues.size())];
      break;
    case 1:
      value += below(random, 17) - 8;
      break;
    case 2:
      value ^= uint64_t{1} << below(random, 8 * width);
      break;
    case 3:
      value = bytes.size() + below(random, 33) - 16;
      break;
    case 4:
      value = below(random, bytes.size()) / 8 * 8;
      break;
    default:
      value = below(random, 256);
  }
  std::memcpy(&bytes[at], &value, width);
}

void copy_piece(std::string& bytes, Random& random) {
  const size_t count = std::min(bytes.size(), size_t{1} << below(random, 7));
  const size_t from = below(random, bytes.size() - count + 1);
  const size_t to = below(random, bytes.size() - count + 1);
  std::memmove(&bytes[to], &bytes[from], count);
}

// Lengths stay: what a text says is changed, not where the file says that it ends.
void mutate_text(std::string& bytes, Random& random) {
  const size_t start = below(random, bytes.size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const size_t end = std::min(bytes.size(), start + 256);
  for (size_t i = start; i < end; ++i) {
    if (!is_digit(bytes[i])) continue;
    bytes[i] = "0123456789-.e\""[below(random, 14)];
    return;
  }
}

size_t count_values(const Config& config) {
  size_t count = 1;
  if (config.is_list()) {
    for (const Config& item : config.items()) count += count_values(item);
  } else if (config.is_dict()) {
    for (const auto& [key, value] : config.entries()) count += count_values(value);
  }
  return count;
}

const Config& value_at(const Config& config, size_t& index) {
  if (index == 0) return config;
  --index;
  const Config* found = nullptr;
  const auto visit = [&](const Config& child) {
    if (found != nullptr) return;
    const size_t size = count_values(child);
    if (index < size) {
      found = &value_at(child, index);
    } else {
      index -= size;
    }
  };
  if (config.is_list()) {
    for (const Config& item : config.items()) visit(item);
  } else if (config.is_dict()) {
    for (const auto& [key, value] : config.entries()) visit(value);
  }
  return found == nullptr ? config : *found;
}

Config some_value(const Config& root, Random& random) {
  static const Config::List kValues =
      parse_json(R"([null, true, false, 0, 1, -1, 2, 3, 100, 2147483648, 1099511627776,
        9223372036854775807, -9223372036854775808, 0.5, -2.5, 1e30, NaN, "", "x", "relu", "tanh",
        "float32", "int64", "string", "zeros", "glorot_uniform", "same", "valid", "sum", "mean",
        "l2", "adam", "Dense", "channels_first", [], {}, [null, 3], [1, 2, 3]])")
          .items();
  if (below(random, 2) == 0) return kValues[below(random, kValues.size())];
  size_t index = below(random, count_values(root));
  return value_at(root, index);
}

// A copy of a list or a dict in which two values have changed places.
Config swapped(const Config& config, Random& random) {
  if (config.is_list()) {
    Config::List items = config.items();
    std::swap(items[below(random, items.size())], items[below(random, items.size())]);
    return items;
  }
  Config::Dict entries(config.entries().begin(), config.entries().end());
  std::swap(entries[below(random, entries.size())].second,
            entries[below(random, entries.size())].second);
  return entries;
}

// A copy of `config` whose value number `index` is changed.
Config changed(const Config& config, size_t index, const Config& root, Random& random) {
  if (index == 0) {
    if (config.is_integer() && below(random, 2) == 0) {
      return static_cast<int64_t>(static_cast<uint64_t>(config.integer()) + below(random, 9) - 4);
    }
    const size_t children = config.is_list()   ? config.items().size()
                            : config.is_dict() ? config.entries().size()
                                               : 0;
    if (children > 1 && below(random, 3) == 0) return swapped(config, random);
    return some_value(root, random);
  }
  --index;
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) {
      const size_t size = count_values(item);
      const size_t action = index == 0 ? below(random, 8) : 8;
      if (action != 0) {  // 0 leaves it out
        out.push_back(index < size && action != 1 ? changed(item, index, root, random) : item);
        if (action == 1) out.push_back(item);
      }
      index = index < size ? SIZE_MAX : index == SIZE_MAX ? SIZE_MAX : index - size;
    }
    return out;
  }
  Config::Dict out;
  for (const auto& [key, value] : config.entries()) {
    const size_t size = count_values(value);
    const size_t action = index == 0 ? below(random, 8) : 8;
    if (action != 0) {
      const bool here = index < size;
      out.emplace_back(action == 1 ? key + "s" : key,
                       here && action != 1 ? changed(value, index, root, random) : value);
    }
    index = index < size ? SIZE_MAX : index == SIZE_MAX ? SIZE_MAX : index - size;
  }
  return out;
}

}  // namespace

size_t below(Random& random, size_t bound) { return bound == 0 ? 0 : random() % bound; }

void mutate_binary(std::string& bytes, size_t max_size, Random& random) {
  const size_t changes = 1 + below(random, 4);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t kind = below(random, 32);
    if (kind == 0) {
      bytes.resize(below(random, bytes.size() + 1));
    } else if (kind == 1) {
      mutate_blindly(bytes, max_size);
    } else if (kind < 6) {
      copy_piece(bytes, random);
    } else if (kind < 12) {
      mutate_text(bytes, random);
    } else if (kind < 16) {
      bytes[below(random, bytes.size())] = static_cast<char>(random());
    } else {
      mutate_field(bytes, random);
    }
  }
  if (bytes.empty()) mutate_blindly(bytes, max_size);
  if (bytes.size() > max_size) bytes.resize(max_size);
}

void mutate_json(std::string& text, size_t max_size, Random& random) {
  if (below(random, 8) != 0) {
    try {
      Config config = parse_json(text);
      const size_t changes = 1 + below(random, 2);
      for (size_t i = 0; i < changes; ++i) {
        config = changed(config, below(random, count_values(config)), config, random);
      }
      std::string out = to_json(config);
      if (out.size() <= max_size) {
        text = std::move(out);
        return;
      }
    } catch (const Error&) {  // is changed as text
    }
  }
  mutate_blindly(text, max_size);
}

}  // namespace keel::fuzz
