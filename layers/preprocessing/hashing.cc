#include "layers/preprocessing/hashing.h"

#include <charconv>

#include "framework/parallel.h"
#include "layers/preprocessing/hash.h"

namespace keel {
namespace {

constexpr int64_t kGrain = 4096;  // words per block

// The decimal digits of an integer.
struct Digits {
  explicit Digits(int64_t value)
      : end(std::to_chars(characters, characters + sizeof(characters), value).ptr) {}
  std::string_view view() const { return {characters, static_cast<size_t>(end - characters)}; }

  char characters[24];
  const char* end;
};

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::same_as<T, std::string>) {
    return value;
  } else {
    return std::to_string(value);
  }
}

}  // namespace

Config encode(const HashingWord& word) {
  return std::visit([](const auto& value) { return Config(value); }, word.value());
}

void decode(const Config& config, HashingWord& word) {
  word = config.is_string() ? HashingWord(config.string()) : HashingWord(config.integer());
}

Config encode(const HashingSalt& salt) { return Config::list({salt.first, salt.second}); }

void decode(const Config& config, HashingSalt& salt) {
  if (!config.is_list()) {
    salt = config.integer();
    return;
  }
  const Config::List& items = config.items();
  if (items.size() != 2) throw TypeError("salt: expected one or two integers");
  salt = {items[0].integer(), items[1].integer()};
}

HashingLayer::HashingLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      mode_(output_mode_from_name(options_.output_mode, "Hashing " + name())) {
  const int64_t least = options_.mask_value ? 2 : 1;
  if (options_.num_bins < least) {
    throw ValueError("Hashing ", name(), ": num_bins must be at least ", least, ", received ",
                     options_.num_bins);
  }
}

Tensor HashingLayer::bins(const Tensor& words) const {
  const HashingSalt salt = options_.salt.value_or(HashingSalt());
  const auto key0 = static_cast<uint64_t>(salt.first);
  const auto key1 = static_cast<uint64_t>(salt.second);
  const bool masks = options_.mask_value.has_value();
  const std::string mask =
      masks ? std::visit([](const auto& v) { return text_of(v); }, options_.mask_value->value())
            : "";
  const uint64_t first = masks ? 1 : 0;
  const uint64_t count = static_cast<uint64_t>(options_.num_bins) - first;
  const auto bin = [&](std::string_view word) -> int64_t {
    if (masks && word == mask) return 0;
    return static_cast<int64_t>(first + siphash24(key0, key1, word) % count);
  };
  Tensor out = Tensor::uninitialized(words.shape(), DType::kInt64);
  const auto fill = [&](const auto* from, const auto& view) {
    int64_t* to = out.mutable_data<int64_t>().data();
    parallel_for(out.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = view(from[i]);
    });
  };
  const auto integer = [&](int64_t value) { return bin(Digits(value).view()); };
  switch (words.dtype()) {
    case DType::kString:
      fill(words.data<std::string>().data(), [&](const std::string& word) { return bin(word); });
      break;
    case DType::kInt32:
      fill(words.data<int32_t>().data(), integer);
      break;
    case DType::kInt64:
      fill(words.data<int64_t>().data(), integer);
      break;
    default:
      throw TypeError("Hashing ", name(), ": needs strings, int32 or int64, received ",
                      words.dtype());
  }
  return out;
}

Tensors HashingLayer::call(const Tensors& inputs, const CallContext&) {
  const TensorLike numbers =
      map_values(inputs.leaf(), DType::kInt64, [this](const Tensor& t) { return bins(t); });
  return encode_categories(numbers, mode_, options_.num_bins, "Hashing " + name());
}

}  // namespace keel
