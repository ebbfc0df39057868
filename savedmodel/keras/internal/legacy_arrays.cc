#include <keel/savedmodel/keras/internal/legacy_arrays.h>

#include <absl/strings/match.h>
#include <algorithm>
#include <array>
#include <numeric>

#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/savedmodel/keras/dialect/keras_dialect.h>

namespace keel {
namespace {

namespace K = keras_ops;

std::string attribute_of(const Hdf5File& file, const std::string& root, const char* name) {
  for (const std::string& group : {root, std::string("/")}) {
    if (file.has(group) && file.has_attribute(group, name)) {
      return file.string_attribute(group, name);
    }
  }
  return {};
}

// Returns the number of spatial axes of a convolution, 0 for other layers: 2 for "Conv2DTranspose".
int spatial_axes(const std::string& class_name) {
  const size_t digit = class_name.find_first_of("123");
  const bool is_it = absl::StrContains(class_name, "Conv") && digit != std::string::npos &&
                     class_name.compare(digit + 1, 1, "D") == 0;
  return is_it ? class_name[digit] - '0' : 0;
}

bool is_channels_first(const Layer& layer) {
  const Config config = layer.get_config();
  const Config* const format = config.find("data_format");
  return format != nullptr && *format == Config("channels_first");
}

// Returns [spatial axes ..., inputs, outputs] from [outputs, inputs, spatial axes ...].
Tensor from_channels_first(const Tensor& kernel, bool swapped) {
  std::vector<int> axes(kernel.rank() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  axes.push_back(swapped ? 0 : 1);
  axes.push_back(swapped ? 1 : 0);
  return K::transpose(kernel, axes);
}

// Converts a kernel of Keras 1 of the layer to the form of Keras 2.
Tensor kernel_from_keras1(const Layer& layer, const Shape& needed, Tensor kernel) {
  const std::string& class_name = layer.class_name();
  if (class_name == "Conv1D") {
    if (kernel.rank() != 4) return kernel;
    // Keras 1.2 has [window, 1, inputs, filters], earlier versions [filters, inputs, window, 1].
    const Shape& shape = kernel.shape();
    const bool is_early = shape[0] != needed[0] || shape[1] != 1 || shape[3] != needed[2];
    if (is_early) kernel = from_channels_first(kernel, false);
    return kernel.shape()[1] == 1 ? K::squeeze(kernel, 1) : kernel;
  }
  if (kernel.rank() != spatial_axes(class_name) + 2) return kernel;
  const bool transposed = class_name.ends_with("Transpose");
  if (is_channels_first(layer)) return from_channels_first(kernel, transposed);
  // Keras 1 stores the kernel of a Deconvolution2D like that of a Convolution2D.
  return transposed ? K::swapaxes(kernel, -1, -2) : kernel;
}

// Reads the arrays of one layer in the order of its weights.
class Arrays {
 public:
  Arrays(const Hdf5File& file, const LegacyOrigin& origin, const std::vector<std::string>& datasets)
      : file_(file), origin_(origin), datasets_(datasets) {}

  std::vector<StoredArray> take(const LayerWeights& layer) {
    for (size_t i = 0; i < layer.weights.size() && next_ < datasets_.size();) {
      const size_t gates = gates_from(layer, i);
      if (gates > 0) {
        take_gates(layer, i, gates);
        i += 3;
      } else {
        take_one(layer.weights[i++]);
      }
    }
    while (next_ < datasets_.size()) out_.push_back(as_stored(datasets_[next_++]));
    return std::move(out_);
  }

 private:
  StoredArray as_stored(const std::string& dataset) const {
    return {.dataset = dataset, .spec = file_.spec(dataset)};
  }

  // Returns the number of gates if the next datasets hold the weights from `i` on by gate, or 0.
  size_t gates_from(const LayerWeights& layer, size_t i) const {
    const NamedWeight& first = layer.weights[i];
    const std::string& class_name = first.owner->class_name();
    const size_t gates = absl::StrContains(class_name, "LSTM")  ? 4
                         : absl::StrContains(class_name, "GRU") ? 3
                                                                : 0;
    const bool fits = gates > 0 && first.entry.name == "kernel" && i + 3 <= layer.weights.size() &&
                      layer.weights[i + 2].owner == first.owner &&
                      next_ + 3 * gates <= datasets_.size();
    if (!fits) return 0;
    // The bias of a gate has one number for each unit, that of the layer has one for each gate,
    // too.
    const Shape& bias = layer.weights[i + 2].entry.spec.shape;
    const Shape stored = file_.spec(datasets_[next_ + 2]).shape;
    return bias.rank() == 1 && stored.rank() == 1 &&
                   bias[0] == static_cast<int64_t>(gates) * stored[0]
               ? gates
               : 0;
  }

  // Joins the arrays of the gates. Keras 1 stores kernel, recurrent kernel and bias of the gates
  // input, candidate, forget and output of an LSTM, and of update, reset and candidate of a GRU.
  void take_gates(const LayerWeights& layer, size_t first, size_t gates) {
    constexpr std::array<size_t, 4> kLstm = {0, 2, 1, 3}, kGru = {0, 1, 2, 3};
    const std::array<size_t, 4>& order = gates == 4 ? kLstm : kGru;
    for (size_t part = 0; part < 3; ++part) {
      std::vector<Tensor> parts;
      for (size_t gate = 0; gate < gates; ++gate) {
        const std::string& dataset = datasets_[next_ + 3 * order[gate] + part];
        parts.push_back(converted(layer.weights[first + part], file_.read(dataset)));
      }
      const Tensor value = K::concatenate(parts, -1);
      out_.push_back({.dataset = datasets_[next_ + part], .spec = value.spec(), .value = value});
    }
    next_ += 3 * gates;
  }

  void take_one(const NamedWeight& weight) {
    const std::string& dataset = datasets_[next_++];
    const bool changes = weight.entry.name.ends_with("kernel") &&
                         spatial_axes(weight.owner->class_name()) > 0 &&
                         (origin_.keras1 || origin_.theano);
    if (!changes) return out_.push_back(as_stored(dataset));
    const Tensor value = converted(weight, file_.read(dataset));
    out_.push_back({.dataset = dataset, .spec = value.spec(), .value = value});
  }

  Tensor converted(const NamedWeight& weight, Tensor value) const {
    const int axes = spatial_axes(weight.owner->class_name());
    if (axes == 0 || !weight.entry.name.ends_with("kernel")) return value;
    if (origin_.keras1) {
      value = kernel_from_keras1(*weight.owner, weight.entry.spec.shape, value);
    }
    // Keras flips the kernels of depthwise convolutions itself before it calls Theano.
    const bool is_plain = weight.entry.name == "kernel" || weight.entry.name == "recurrent_kernel";
    const bool flips = origin_.theano && is_plain && value.rank() == axes + 2;
    if (!flips || weight.owner->class_name().starts_with("Depthwise")) return value;
    std::vector<int> spatial(axes);
    std::iota(spatial.begin(), spatial.end(), 0);
    return K::flip(value, spatial);
  }

  const Hdf5File& file_;
  const LegacyOrigin origin_;
  const std::vector<std::string>& datasets_;
  size_t next_ = 0;
  std::vector<StoredArray> out_;
};

}  // namespace

LegacyOrigin legacy_origin(const Hdf5File& file, const std::string& root,
                           const std::vector<std::string>& weight_names) {
  const std::string version = attribute_of(file, root, "keras_version");
  const bool has_old_names = std::ranges::any_of(
      weight_names, [](const std::string& name) { return name.ends_with("_W"); });
  return {
      .keras1 = version.starts_with("1.") || version == "1" || (version.empty() && has_old_names),
      .theano = attribute_of(file, root, "backend") == "theano"};
}

std::vector<StoredArray> stored_arrays(const Hdf5File& file, const LegacyOrigin& origin,
                                       const LayerWeights& layer,
                                       const std::vector<std::string>& datasets) {
  return Arrays(file, origin, datasets).take(layer);
}

}  // namespace keel
