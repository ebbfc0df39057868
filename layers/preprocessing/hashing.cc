#include <keel/layers/preprocessing/hashing.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/base/parallel.h>
#include <keel/framework/exact_cast.h>
#include <keel/layers/preprocessing/internal/hash.h>
#include <keel/layers/preprocessing/internal/values.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constexpr int64_t kGrain = 4096;  // words per block

// The words outlive the result.
const std::string& text_of(const std::string& word) {
  return word;  // NOLINT(bugprone-return-const-ref-from-parameter)
}
std::string text_of(int64_t number) { return std::to_string(number); }

}  // namespace

Config encode(const HashingWord& word) {
  return std::visit([](const auto& value) { return Config(value); }, word.value());
}

void decode(const Config& config, HashingWord& word) {
  word = config.is_string() ? HashingWord(config.string()) : HashingWord(config.integer());
}

HashingLayer::HashingLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      mode_(output_mode_from_name(options_.output_mode, "Hashing " + name())) {
  check_sparse(options_.sparse, mode_, "Hashing " + name());
  const int64_t least = options_.mask_value ? 2 : 1;
  if (options_.num_bins < least) {
    throw ValueError("Hashing ", name(), ": num_bins must be at least ", least, ", received ",
                     options_.num_bins);
  }
}

Config HashingLayer::get_config() const {
  Options options = options_;
  if (mode_ == OutputMode::kInt) options.dtype = DType::kInt64;
  return to_config(options);
}

Tensor HashingLayer::bins(const Tensor& words) const {
  const std::optional<HashingSalt>& salt = options_.salt;
  const int64_t first = options_.mask_value ? 1 : 0;
  const int64_t count = options_.num_bins - first;
  const std::string mask = first > 0
                               ? std::visit([](const auto& v) -> std::string { return text_of(v); },
                                            options_.mask_value->value())
                               : "";
  Tensor out = Tensor::uninitialized(words.shape(), DType::kInt64);
  const auto fill = [&]<class T>(std::span<const T> from) {
    int64_t* to = out.mutable_data<int64_t>().data();
    const auto bin = [&](const auto& word) -> int64_t {
      if (first > 0 && text_of(word) == mask) return 0;
      return first + hash_bucket(word, count, salt);
    };
    parallel_for(out.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::same_as<T, std::string>) {
          to[i] = bin(from[i]);
        } else {
          to[i] = bin(static_cast<int64_t>(from[i]));
        }
      }
    });
  };
  switch (words.dtype()) {
    case DType::kString:
      fill(words.data<std::string>());
      break;
    case DType::kInt32:
      fill(words.data<int32_t>());
      break;
    case DType::kInt64:
      fill(words.data<int64_t>());
      break;
    default:
      throw TypeError("Hashing ", name(), ": inputs must be strings, integers or floats, received ",
                      words.dtype());
  }
  return out;
}

namespace {

Tensor without_fractions(const Tensor& floats) {
  const Tensor doubles = floats.cast(DType::kFloat64);
  Tensor out = Tensor::zeros(floats.shape(), DType::kFloat64);
  std::ranges::transform(doubles.data<double>(), out.mutable_data<double>().begin(),
                         [](double value) { return std::trunc(value); });
  return out.cast(floats.dtype());
}

}  // namespace

Tensors HashingLayer::call(const Tensors& inputs, const CallContext&) {
  TensorLike words = inputs.leaf();
  if (const DType dtype = words.values().dtype(); is_floating(dtype) && !words.is_symbolic()) {
    // Keras cuts fractions. NaN and infinities are no numbers to hash.
    words = integer_ids("Hashing " + name(), map_values(words, dtype, without_fractions));
  }
  const TensorLike numbers =
      map_values(words, DType::kInt64, [this](const Tensor& t) { return bins(t); });
  return encode_categories(numbers,
                           {.mode = mode_, .depth = options_.num_bins, .sparse = options_.sparse},
                           "Hashing " + name());
}

KEEL_REGISTER(Layer, HashingLayer, .package = "keras")

}  // namespace keel
