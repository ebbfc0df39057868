// Initializers: the first values of weights, by Keras's names and numbers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/random.h>

namespace keel {

// Fills any part of a tensor, so that shards draw exactly what the whole would.
class InitializerFunction {
 public:
  virtual ~InitializerFunction() = default;
  // out[i] = element first + i (row-major) of a tensor of shape `shape`.
  virtual void fill(std::span<float> out, int64_t first, const Shape& shape,
                    const RandomStream& stream) const = 0;
  virtual std::string class_name() const = 0;  // "GlorotUniform"
  virtual Config get_config() const = 0;
  virtual std::optional<int64_t> seed() const { return {}; }
};

// What options hold: a name ("glorot_uniform", "zeros") or one made by the functions of
// keel::initializers. Immutable and shared.
class Initializer {
 public:
  Initializer() : Initializer("zeros") {}
  Initializer(const char* name);         // NOLINT: implicit. ValueError if unknown
  Initializer(const std::string& name);  // NOLINT: implicit. idem; snake_case or ClassName
  explicit Initializer(std::shared_ptr<const InitializerFunction> f) : function_(std::move(f)) {}

  // A new tensor. Draws from the initializer's own seed, else from the next stream.
  // TypeError unless dtype is floating or an integer type.
  Tensor operator()(const Shape& shape, DType dtype = DType::kFloat32) const;
  // The stream that the next call draws from. Constants draw nothing and leave the numbering of
  // streams alone.
  RandomStream next_stream() const;
  const InitializerFunction& function() const { return *function_; }

 private:
  std::shared_ptr<const InitializerFunction> function_;
};

Config encode(const Initializer& initializer);                // {"class_name": ..., "config": ...}
void decode(const Config& config, Initializer& initializer);  // that form, or a name

namespace initializers {

Initializer zeros();
Initializer ones();
Initializer constant(double value = 0.0);
Initializer random_uniform(double minval = -0.05, double maxval = 0.05,
                           std::optional<int64_t> seed = {});
Initializer random_normal(double mean = 0.0, double stddev = 0.05,
                          std::optional<int64_t> seed = {});
Initializer truncated_normal(double mean = 0.0, double stddev = 0.05,
                             std::optional<int64_t> seed = {});
// scale / n, n the fan that `mode` ("fan_in", "fan_out", "fan_avg") names, as the variance of
// `distribution` ("truncated_normal", "untruncated_normal", "uniform"). He et al. 2015.
Initializer variance_scaling(double scale = 1.0, const std::string& mode = "fan_in",
                             const std::string& distribution = "truncated_normal",
                             std::optional<int64_t> seed = {});
// Settings of it (Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998).
Initializer glorot_uniform(std::optional<int64_t> seed = {});  // 1, "fan_avg", "uniform"
Initializer glorot_normal(std::optional<int64_t> seed = {});   // 1, "fan_avg", "truncated_normal"
Initializer he_uniform(std::optional<int64_t> seed = {});      // 2, "fan_in", "uniform"
Initializer he_normal(std::optional<int64_t> seed = {});       // 2, "fan_in", "truncated_normal"
Initializer lecun_uniform(std::optional<int64_t> seed = {});   // 1, "fan_in", "uniform"
Initializer lecun_normal(std::optional<int64_t> seed = {});    // 1, "fan_in", "truncated_normal"
// As a matrix [all but the last dimension, the last]: rows or columns, whichever are fewer, are
// orthogonal and of length `gain` (Saxe et al. 2014). Costs rows^2 columns of the shorter side, on
// each call that fills a part. ValueError for less than two dimensions.
Initializer orthogonal(double gain = 1.0, std::optional<int64_t> seed = {});
// gain on the diagonal of a matrix, 0 elsewhere. ValueError for another rank.
Initializer identity(double gain = 1.0);
// Row i holds offset + i everywhere: tables in which a lookup shows which row it read.
Initializer row_id(int64_t offset = 0);

// Classes that files may name.
Registry<InitializerFunction>& registry();

}  // namespace initializers
}  // namespace keel
