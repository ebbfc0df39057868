#include <keel/layers/preprocessing/hashing.h>
#include <keel/layers/preprocessing/internal/hash.h>
#include <keel/layers/preprocessing/internal/values.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// The fingerprint that TensorFlow's crosses begin with.
constexpr uint64_t kCrossSeed = 0xDECAFCAFFE;

// Adds one feature to the fingerprints of all samples.
void join_feature(const Tensor& feature, std::vector<uint64_t>& fingerprints) {
  const auto add = [&](const auto& values, const auto& fingerprint_of) {
    for (size_t i = 0; i < fingerprints.size(); ++i) {
      fingerprints[i] = joined_fingerprint(fingerprints[i], fingerprint_of(values[i]));
    }
  };
  if (feature.dtype() == DType::kString) {
    add(feature.data<std::string>(), [](const std::string& s) { return fingerprint64(s); });
  } else {
    const Tensor numbers = feature.cast(DType::kInt64);
    add(numbers.data<int64_t>(), [](int64_t number) { return static_cast<uint64_t>(number); });
  }
}

}  // namespace

HashedCrossingLayer::HashedCrossingLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      mode_(output_mode_from_name(options_.output_mode, "HashedCrossing " + name())) {
  if (mode_ != OutputMode::kInt && mode_ != OutputMode::kOneHot) {
    throw ValueError("HashedCrossing ", name(),
                     ": output_mode must be 'int' or 'one_hot', received '", options_.output_mode,
                     "'");
  }
  check_sparse(options_.sparse, mode_, "HashedCrossing " + name());
  if (options_.num_bins < 1) {
    throw ValueError("HashedCrossing ", name(), ": num_bins must be positive, received ",
                     options_.num_bins);
  }
}

Config HashedCrossingLayer::get_config() const {
  Options options = options_;
  if (mode_ == OutputMode::kInt) options.dtype = DType::kInt64;
  return to_config(options);
}

std::vector<Tensor> HashedCrossingLayer::checked(const Tensors& inputs) const {
  if (!inputs.is_sequence() || inputs.items().size() < 2) {
    throw ValueError("HashedCrossing ", name(),
                     ": inputs must be a list of at least two tensors, received ",
                     inputs.structure());
  }
  std::vector<Tensor> out;
  for (const TensorLike& x : flatten(inputs)) {
    if (x.layout() != Layout::kDense) {
      throw TypeError("HashedCrossing ", name(), ": inputs must be dense tensors");
    }
    const Tensor& feature = x.tensor();
    const DType dtype = feature.dtype();
    if (dtype != DType::kString && dtype != DType::kInt32 && dtype != DType::kInt64) {
      throw TypeError("HashedCrossing ", name(),
                      ": inputs must be strings, int32 or int64, received ", dtype);
    }
    const Shape& shape = feature.shape();
    if (shape.rank() > 2 || (shape.rank() == 2 && shape[-1] != 1 && shape[-1] != kUnknown)) {
      throw ValueError("HashedCrossing ", name(),
                       ": inputs must have shape (), (batch) or (batch, 1), received ", shape);
    }
    if (!out.empty() && !compatible(shape, out[0].shape())) {
      throw ValueError("HashedCrossing ", name(), ": inputs must have equal shapes, received ",
                       out[0].shape(), " and ", shape);
    }
    out.push_back(feature);
  }
  return out;
}

Tensors HashedCrossingLayer::call(const Tensors& inputs, const CallContext&) {
  const std::vector<Tensor> features = checked(inputs);
  const Encoding encoding = {.mode = mode_, .depth = options_.num_bins, .sparse = options_.sparse};
  const std::string caller = "HashedCrossing " + name();
  const Shape& shape = features[0].shape();
  if (any_symbolic(inputs)) {
    return encode_categories(Tensor::symbolic({.shape = shape, .dtype = DType::kInt64}), encoding,
                             caller);
  }
  std::vector<uint64_t> fingerprints(shape.size(), kCrossSeed);
  for (const Tensor& feature : features) join_feature(feature, fingerprints);
  Tensor bins = Tensor::uninitialized(shape, DType::kInt64);
  int64_t* to = bins.mutable_data<int64_t>().data();
  const auto count = static_cast<uint64_t>(options_.num_bins);
  for (size_t i = 0; i < fingerprints.size(); ++i) {
    to[i] = static_cast<int64_t>(fingerprints[i] % count);
  }
  return encode_categories(bins, encoding, caller);
}

KEEL_REGISTER(Layer, HashedCrossingLayer, .package = "keras")

}  // namespace keel
