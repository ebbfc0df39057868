#include <keel/framework/initializers.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include <keel/framework/config/configured.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/internal/orthonormal.h>
#include <keel/framework/internal/skip_initialization.h>
#include <keel/framework/internal/stft_initializer.h>

namespace keel {
namespace {

struct ConstantOptions {
  double value = 0.0;
  static constexpr void fields(auto& self, auto&& field) { field("value", self.value); }
};

struct IdentityOptions {
  double gain = 1.0;
  static constexpr void fields(auto& self, auto&& field) { field("gain", self.gain); }
};

struct UniformOptions {
  std::optional<int64_t> seed = {};
  double minval = -0.05;
  double maxval = 0.05;
  static constexpr void fields(auto& self, auto&& field) {
    field("seed", self.seed);
    field("minval", self.minval);
    field("maxval", self.maxval);
  }
};

struct NormalOptions {
  std::optional<int64_t> seed = {};
  double mean = 0.0;
  double stddev = 0.05;
  static constexpr void fields(auto& self, auto&& field) {
    field("seed", self.seed);
    field("mean", self.mean);
    field("stddev", self.stddev);
  }
};

struct VarianceScalingOptions {
  std::optional<int64_t> seed = {};
  double scale = 1.0;
  std::string mode = "fan_in";
  std::string distribution = "truncated_normal";
  static constexpr void fields(auto& self, auto&& field) {
    field("seed", self.seed);
    field("scale", self.scale);
    field("mode", self.mode);
    field("distribution", self.distribution);
  }
};

struct RowIdOptions {
  int64_t offset = 0;
  static constexpr void fields(auto& self, auto&& field) { field("offset", self.offset); }
};

struct OrthogonalOptions {
  std::optional<int64_t> seed = {};
  double gain = 1.0;
  static constexpr void fields(auto& self, auto&& field) {
    field("seed", self.seed);
    field("gain", self.gain);
  }
};

struct NoOptions {
  static constexpr void fields(auto&, auto&&) {}
};

struct SeedOptions {
  std::optional<int64_t> seed = {};
  static constexpr void fields(auto& self, auto&& field) { field("seed", self.seed); }
};

// Sets all elements to one value. Serves the Keras classes Zeros, Ones and Constant.
class ConstantFunction final : public InitializerFunction {
 public:
  ConstantFunction(std::string class_name, double value)
      : class_name_(std::move(class_name)), value_(value) {}
  void fill(std::span<float> out, int64_t, const Shape&, const RandomStream&) const override {
    std::ranges::fill(out, static_cast<float>(value_));
  }
  std::string class_name() const override { return class_name_; }
  Config get_config() const override {
    return class_name_ == "Constant" ? to_config(ConstantOptions{.value = value_}) : Config::dict();
  }
  double value() const { return value_; }

 private:
  const std::string class_name_;
  const double value_;
};

class IdentityFunction final : public InitializerFunction {
 public:
  explicit IdentityFunction(const IdentityOptions& options) : gain_(options.gain) {}
  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream&) const override {
    if (shape.rank() != 2) throw ValueError("Identity: rank must be 2, received shape ", shape);
    std::ranges::fill(out, 0.0F);
    const int64_t columns = shape[1];
    const int64_t end = first + std::ssize(out);
    const int64_t diagonal = std::min(shape[0], columns);
    // The first diagonal element at or after `first`, rounded up.
    for (int64_t i = (first + columns) / (columns + 1); i < diagonal; ++i) {
      const int64_t element = i * (columns + 1);
      if (element >= end) break;
      out[element - first] = static_cast<float>(gain_);
    }
  }
  std::string class_name() const override { return "Identity"; }
  // Keras does not write the gain, so it is written only if it is not 1.
  Config get_config() const override {
    return gain_ == 1.0 ? Config::dict() : to_config(IdentityOptions{.gain = gain_});
  }

 private:
  const double gain_;
};

class RowIdFunction final : public InitializerFunction {
 public:
  explicit RowIdFunction(const RowIdOptions& options) : options_(options) {}
  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream&) const override {
    if (shape.rank() == 0)
      throw ValueError("RowIdInitializer: rank must be at least 1, received a scalar");
    const int64_t columns = shape.slice(1, shape.rank()).size();
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t row = (first + static_cast<int64_t>(i)) / columns;
      out[i] = static_cast<float>(options_.offset + row);
    }
  }
  std::string class_name() const override { return "RowIdInitializer"; }
  Config get_config() const override { return to_config(options_); }

 private:
  const RowIdOptions options_;
};

class UniformFunction final : public InitializerFunction {
 public:
  explicit UniformFunction(const UniformOptions& options) : options_(options) {}
  void fill(std::span<float> out, int64_t first, const Shape&,
            const RandomStream& stream) const override {
    stream.uniform(out, first, static_cast<float>(options_.minval),
                   static_cast<float>(options_.maxval));
  }
  std::string class_name() const override { return "RandomUniform"; }
  Config get_config() const override { return to_config(options_); }
  std::optional<int64_t> seed() const override { return options_.seed; }

 private:
  const UniformOptions options_;
};

class NormalFunction final : public InitializerFunction {
 public:
  NormalFunction(bool truncated, const NormalOptions& options)
      : truncated_(truncated), options_(options) {}
  void fill(std::span<float> out, int64_t first, const Shape&,
            const RandomStream& stream) const override {
    const auto mean = static_cast<float>(options_.mean);
    const auto stddev = static_cast<float>(options_.stddev);
    if (truncated_) {
      stream.truncated_normal(out, first, mean, stddev);
    } else {
      stream.normal(out, first, mean, stddev);
    }
  }
  std::string class_name() const override {
    return truncated_ ? "TruncatedNormal" : "RandomNormal";
  }
  Config get_config() const override { return to_config(options_); }
  std::optional<int64_t> seed() const override { return options_.seed; }

 private:
  const bool truncated_;
  const NormalOptions options_;
};

// A matrix of normal numbers whose shorter side is orthonormalized.
class OrthogonalFunction final : public InitializerFunction {
 public:
  explicit OrthogonalFunction(const OrthogonalOptions& options) : options_(options) {}
  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream& stream) const override {
    if (shape.rank() < 2) {
      throw ValueError("Orthogonal: the shape must have rank 2 or more, received ", shape);
    }
    const int64_t columns = shape[-1];
    const int64_t rows = shape.drop_last().size();
    const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    const std::vector<double> vectors = orthonormal_vectors(count, length, stream);
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      const int64_t row = (first + i) / columns, column = (first + i) % columns;
      const int64_t at = rows < columns ? row * length + column : column * length + row;
      out[i] = static_cast<float>(options_.gain * vectors[at]);
    }
  }
  std::string class_name() const override { return "Orthogonal"; }
  Config get_config() const override { return to_config(options_); }
  std::optional<int64_t> seed() const override { return options_.seed; }

 private:
  const OrthogonalOptions options_;
};

// Returns the fan by the rules of Keras. For a vector, both fans are its length. For a convolution
// kernel [spatial..., in, out], the fans are multiplied by the number of spatial positions.
double fan_of(const Shape& shape, const std::string& mode) {
  double in = 1;
  double out = 1;
  if (shape.rank() == 1) {
    in = out = static_cast<double>(shape[0]);
  } else if (shape.rank() >= 2) {
    const auto field = static_cast<double>(shape.slice(0, shape.rank() - 2).size());
    in = field * static_cast<double>(shape[-2]);
    out = field * static_cast<double>(shape[-1]);
  }
  const double fan = mode == "fan_in" ? in : mode == "fan_out" ? out : (in + out) / 2;
  return std::max(1.0, fan);
}

// VarianceScaling and its fixed settings such as GlorotUniform, whose configs contain only the
// seed.
class VarianceScalingFunction final : public InitializerFunction {
 public:
  VarianceScalingFunction(std::string class_name, VarianceScalingOptions options)
      : class_name_(std::move(class_name)), options_(std::move(options)) {
    if (!(options_.scale > 0)) {
      throw ValueError(class_name_, ": scale must be positive, received ", options_.scale);
    }
    if (options_.mode != "fan_in" && options_.mode != "fan_out" && options_.mode != "fan_avg") {
      throw ValueError(class_name_, ": mode must be fan_in, fan_out or fan_avg, received '",
                       options_.mode, "'");
    }
    if (options_.distribution == "normal") options_.distribution = "truncated_normal";
    if (options_.distribution != "truncated_normal" &&
        options_.distribution != "untruncated_normal" && options_.distribution != "uniform") {
      throw ValueError(class_name_,
                       ": distribution must be truncated_normal, untruncated_normal or uniform, "
                       "received '",
                       options_.distribution, "'");
    }
  }
  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream& stream) const override {
    // The standard deviation of a standard normal distribution truncated at two standard
    // deviations.
    constexpr double kStddevOfTruncated = .87962566103423978;
    const double stddev = std::sqrt(options_.scale / fan_of(shape, options_.mode));
    if (options_.distribution == "truncated_normal") {
      stream.truncated_normal(out, first, 0, static_cast<float>(stddev / kStddevOfTruncated));
    } else if (options_.distribution == "untruncated_normal") {
      stream.normal(out, first, 0, static_cast<float>(stddev));
    } else {
      const auto limit = static_cast<float>(std::sqrt(3.0) * stddev);
      stream.uniform(out, first, -limit, limit);
    }
  }
  std::string class_name() const override { return class_name_; }
  Config get_config() const override {
    return class_name_ == "VarianceScaling" ? to_config(options_)
                                            : to_config(SeedOptions{.seed = options_.seed});
  }
  std::optional<int64_t> seed() const override { return options_.seed; }

 private:
  const std::string class_name_;
  VarianceScalingOptions options_;
};

// Removes keys that some versions of Keras write into the config of every initializer, with default
// values.
Config without_common_keys(Config config, const std::string& class_name) {
  if (config.is_null()) return Config::dict();
  for (const char* key : {"input_axes", "output_axes"}) {
    const Config* axes = config.find(key);
    if (axes != nullptr && !axes->is_null()) {
      throw NotImplementedError(class_name, ": ", key,
                                " is not supported; remove it from the config");
    }
    config.erase(key);
  }
  config.erase("dtype");
  return config;
}

using Functions = Registry<InitializerFunction>;

// Registers a class whose objects make(options) creates.
template <class Options, class Make>
void add_class(Functions& functions, const std::string& class_name, const Make& make) {
  functions.add(
      class_name, [class_name, make](const Config& config) -> std::shared_ptr<InitializerFunction> {
        return make(from_config<Options>(without_common_keys(config, class_name), class_name));
      });
}

void add_constant_classes(Functions& functions) {
  add_class<NoOptions>(functions, "Zeros", [](const NoOptions&) {
    return std::make_shared<ConstantFunction>("Zeros", 0.0);
  });
  add_class<NoOptions>(functions, "Ones", [](const NoOptions&) {
    return std::make_shared<ConstantFunction>("Ones", 1.0);
  });
  add_class<ConstantOptions>(functions, "Constant", [](const ConstantOptions& options) {
    return std::make_shared<ConstantFunction>("Constant", options.value);
  });
  add_class<IdentityOptions>(functions, "Identity", [](const IdentityOptions& options) {
    return std::make_shared<IdentityFunction>(options);
  });
  add_class<internal::STFTOptions>(functions, "STFT", internal::stft_initializer);
  add_class<RowIdOptions>(functions, "RowIdInitializer", [](const RowIdOptions& options) {
    return std::make_shared<RowIdFunction>(options);
  });
}

void add_random_classes(Functions& functions) {
  add_class<UniformOptions>(functions, "RandomUniform", [](const UniformOptions& options) {
    return std::make_shared<UniformFunction>(options);
  });
  add_class<NormalOptions>(functions, "RandomNormal", [](const NormalOptions& options) {
    return std::make_shared<NormalFunction>(false, options);
  });
  add_class<NormalOptions>(functions, "TruncatedNormal", [](const NormalOptions& options) {
    return std::make_shared<NormalFunction>(true, options);
  });
  add_class<OrthogonalOptions>(functions, "Orthogonal", [](const OrthogonalOptions& options) {
    return std::make_shared<OrthogonalFunction>(options);
  });
  add_class<VarianceScalingOptions>(
      functions, "VarianceScaling", [](const VarianceScalingOptions& options) {
        return std::make_shared<VarianceScalingFunction>("VarianceScaling", options);
      });
  const auto add_scaled = [&](const std::string& class_name, double scale, const std::string& mode,
                              const std::string& distribution) {
    add_class<SeedOptions>(functions, class_name, [=](const SeedOptions& options) {
      return std::make_shared<VarianceScalingFunction>(
          class_name,
          VarianceScalingOptions{
              .seed = options.seed, .scale = scale, .mode = mode, .distribution = distribution});
    });
  };
  add_scaled("GlorotUniform", 1.0, "fan_avg", "uniform");
  add_scaled("GlorotNormal", 1.0, "fan_avg", "truncated_normal");
  add_scaled("HeUniform", 2.0, "fan_in", "uniform");
  add_scaled("HeNormal", 2.0, "fan_in", "truncated_normal");
  add_scaled("LecunUniform", 1.0, "fan_in", "uniform");
  add_scaled("LecunNormal", 1.0, "fan_in", "truncated_normal");
}

// Converts "glorot_uniform" to "GlorotUniform". Also accepts class names and the old short names of
// Keras.
std::string class_of(const std::string& name) {
  static const std::map<std::string, std::string> kAliases = {
      {"zero", "Zeros"},
      {"one", "Ones"},
      {"uniform", "RandomUniform"},
      {"normal", "RandomNormal"},
      {"IdentityInitializer", "Identity"},
      {"OrthogonalInitializer", "Orthogonal"},
      {"row_id", "RowIdInitializer"},
  };
  if (const auto it = kAliases.find(name); it != kAliases.end()) return it->second;
  return class_name_of(name);
}

std::shared_ptr<const InitializerFunction> make_function(const std::string& name,
                                                         const Config& config) {
  const Functions& functions = initializers::registry();
  const std::vector<std::string> known = functions.class_names();
  const bool is_class = std::ranges::find(known, name) != known.end();
  return functions.make(is_class ? name : class_of(name), config);
}

// Makes one of the classes that are fixed settings of VarianceScaling.
Initializer scaled(const std::string& class_name, std::optional<int64_t> seed) {
  return Initializer(make_function(class_name, to_config(SeedOptions{.seed = seed})));
}

Tensor filled(const Shape& shape, DType dtype, double value) {
  return visit_numeric(dtype, "Initializer", [&]<class T>(const T&) {
    return Tensor::full<T>(shape, static_cast<T>(value));
  });
}

}  // namespace

namespace {

thread_local int skip_depth = 0;  // nested SkipInitialization objects

}  // namespace

SkipInitialization::SkipInitialization() { ++skip_depth; }
SkipInitialization::~SkipInitialization() { --skip_depth; }
bool SkipInitialization::active() { return skip_depth > 0; }

Initializer::Initializer(const char* name) : Initializer(std::string(name)) {}
Initializer::Initializer(const std::string& name)
    : function_(make_function(name, Config::dict())) {}

Tensor Initializer::operator()(const Shape& shape, DType dtype) const {
  if (!is_floating(dtype) && !is_integer(dtype)) {
    throw TypeError("Initializer: dtype must be floating or integer, received ", dtype);
  }
  if (SkipInitialization::active() && shape.rank() >= 2 &&
      shape.size() * static_cast<int64_t>(size_of(dtype)) >= SkipInitialization::kSmallestBytes) {
    return Tensor::zeros(shape.slice(1, shape.rank()), dtype).repeated(shape[0]);
  }
  // Constants are written directly, because a float32 intermediate would round values of other
  // dtypes.
  if (const auto* constant = dynamic_cast<const ConstantFunction*>(function_.get())) {
    return filled(shape, dtype, constant->value());
  }
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  function_->fill(out.mutable_data<float>(), 0, shape, next_stream());
  return out.cast(dtype);
}

RandomStream Initializer::next_stream() const {
  const bool constant = dynamic_cast<const ConstantFunction*>(function_.get()) != nullptr;
  return constant ? RandomStream() : next_random_stream(function_->seed());
}

Config encode(const Initializer& initializer) {
  return Config::dict({{"class_name", initializer.function().class_name()},
                       {"config", initializer.function().get_config()}});
}

void decode(const Config& config, Initializer& initializer) {
  if (config.is_string()) {
    initializer = Initializer(config.string());
    return;
  }
  const Config* inner = config.find("config");
  initializer = Initializer(
      make_function(config["class_name"].string(), inner == nullptr ? Config::dict() : *inner));
}

namespace initializers {

Initializer zeros() { return "Zeros"; }
Initializer ones() { return "Ones"; }

Initializer constant(double value) {
  return Initializer(std::make_shared<ConstantFunction>("Constant", value));
}

Initializer random_uniform(double minval, double maxval, std::optional<int64_t> seed) {
  return Initializer(std::make_shared<UniformFunction>(
      UniformOptions{.seed = seed, .minval = minval, .maxval = maxval}));
}

Initializer random_normal(double mean, double stddev, std::optional<int64_t> seed) {
  return Initializer(std::make_shared<NormalFunction>(
      false, NormalOptions{.seed = seed, .mean = mean, .stddev = stddev}));
}

Initializer truncated_normal(double mean, double stddev, std::optional<int64_t> seed) {
  return Initializer(std::make_shared<NormalFunction>(
      true, NormalOptions{.seed = seed, .mean = mean, .stddev = stddev}));
}

Initializer variance_scaling(double scale, const std::string& mode, const std::string& distribution,
                             std::optional<int64_t> seed) {
  return Initializer(std::make_shared<VarianceScalingFunction>(
      "VarianceScaling",
      VarianceScalingOptions{
          .seed = seed, .scale = scale, .mode = mode, .distribution = distribution}));
}

Initializer glorot_uniform(std::optional<int64_t> seed) { return scaled("GlorotUniform", seed); }
Initializer glorot_normal(std::optional<int64_t> seed) { return scaled("GlorotNormal", seed); }
Initializer he_uniform(std::optional<int64_t> seed) { return scaled("HeUniform", seed); }
Initializer he_normal(std::optional<int64_t> seed) { return scaled("HeNormal", seed); }
Initializer lecun_uniform(std::optional<int64_t> seed) { return scaled("LecunUniform", seed); }
Initializer lecun_normal(std::optional<int64_t> seed) { return scaled("LecunNormal", seed); }

Initializer orthogonal(double gain, std::optional<int64_t> seed) {
  return Initializer(
      std::make_shared<OrthogonalFunction>(OrthogonalOptions{.seed = seed, .gain = gain}));
}

Initializer identity(double gain) {
  return Initializer(std::make_shared<IdentityFunction>(IdentityOptions{.gain = gain}));
}

Initializer row_id(int64_t offset) {
  return Initializer(std::make_shared<RowIdFunction>(RowIdOptions{.offset = offset}));
}

Registry<InitializerFunction>& registry() {
  static Functions& instance = []() -> Functions& {
    static Functions functions("initializer");
    add_constant_classes(functions);
    add_random_classes(functions);
    return functions;
  }();
  return instance;
}

}  // namespace initializers
}  // namespace keel
