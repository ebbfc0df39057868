// Initializers: the initial values of weights, with the names and the distributions of Keras.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/random.h>

namespace keel {

// The implementation of an initializer. It can fill any part of a tensor, so that the shards of a
// table get exactly the values of the unsharded table.
class InitializerFunction {
 public:
  virtual ~InitializerFunction() = default;
  // Sets out[i] to element first + i (row-major) of a tensor of shape `shape`.
  virtual void fill(std::span<float> out, int64_t first, const Shape& shape,
                    const RandomStream& stream) const = 0;
  virtual std::string class_name() const = 0;  // Keras class name, e.g. "GlorotUniform"
  // Returns the Keras config.
  virtual Config get_config() const = 0;
  // Returns the initializer's own seed, if it has one.
  virtual std::optional<int64_t> seed() const { return {}; }
};

// An initializer, the type of options. Made from a name ("glorot_uniform", "zeros") or by a
// function of keel::initializers. Immutable; copies share the implementation.
class Initializer {
 public:
  Initializer() : Initializer("zeros") {}
  // Makes an initializer with default parameters from a name in snake_case or a class name. Throws
  // ValueError if the name is unknown.
  Initializer(const char* name);         // NOLINT: implicit
  Initializer(const std::string& name);  // NOLINT: implicit
  explicit Initializer(std::shared_ptr<const InitializerFunction> f) : function_(std::move(f)) {}

  // Returns a new tensor of initial values. They are drawn from the initializer's own seed if it
  // has one, and otherwise from the next stream of the program (random.h). Throws TypeError unless
  // `dtype` is a floating or integer type.
  Tensor operator()(const Shape& shape, DType dtype = DType::kFloat32) const;
  // Returns the stream that the next call draws from. Constant initializers draw nothing and do not
  // advance the numbering of streams.
  RandomStream next_stream() const;
  // Returns the implementation.
  const InitializerFunction& function() const { return *function_; }

 private:
  std::shared_ptr<const InitializerFunction> function_;
};

// Returns {"class_name": ..., "config": ...}.
Config encode(const Initializer& initializer);
// Reads the form that encode() writes, or a name.
void decode(const Config& config, Initializer& initializer);

namespace initializers {

// All elements are 0.
Initializer zeros();
// All elements are 1.
Initializer ones();
// All elements are `value`.
Initializer constant(double value = 0.0);
// Draws uniformly from [minval, maxval).
Initializer random_uniform(double minval = -0.05, double maxval = 0.05,
                           std::optional<int64_t> seed = {});
// Draws from a normal distribution.
Initializer random_normal(double mean = 0.0, double stddev = 0.05,
                          std::optional<int64_t> seed = {});
// Draws from a normal distribution restricted to two standard deviations around the mean.
Initializer truncated_normal(double mean = 0.0, double stddev = 0.05,
                             std::optional<int64_t> seed = {});
// Draws from `distribution` ("truncated_normal", "untruncated_normal" or "uniform") with mean 0 and
// variance scale / n, where n is the fan that `mode` selects ("fan_in", "fan_out" or "fan_avg"). He
// et al. 2015. Throws ValueError unless scale > 0 and both names are known.
Initializer variance_scaling(double scale = 1.0, const std::string& mode = "fan_in",
                             const std::string& distribution = "truncated_normal",
                             std::optional<int64_t> seed = {});
// variance_scaling() with fixed settings (Glorot and Bengio 2010, He et al. 2015, LeCun et al.
// 1998). The comments give scale, mode and distribution.
Initializer glorot_uniform(std::optional<int64_t> seed = {});  // 1, "fan_avg", "uniform"
Initializer glorot_normal(std::optional<int64_t> seed = {});   // 1, "fan_avg", "truncated_normal"
Initializer he_uniform(std::optional<int64_t> seed = {});      // 2, "fan_in", "uniform"
Initializer he_normal(std::optional<int64_t> seed = {});       // 2, "fan_in", "truncated_normal"
Initializer lecun_uniform(std::optional<int64_t> seed = {});   // 1, "fan_in", "uniform"
Initializer lecun_normal(std::optional<int64_t> seed = {});    // 1, "fan_in", "truncated_normal"
// Treats the tensor as a matrix [product of all dimensions but the last, last dimension]. Its rows
// or its columns, whichever are fewer, are orthogonal vectors of length `gain` (Saxe et al. 2014).
// Each call of fill() computes the whole matrix in O(s^2 l) time, where s is the shorter and l the
// longer side. Filling a tensor of fewer than two dimensions throws ValueError.
Initializer orthogonal(double gain = 1.0, std::optional<int64_t> seed = {});
// A matrix with `gain` on the diagonal and 0 elsewhere. Filling a tensor whose rank is not 2 throws
// ValueError.
Initializer identity(double gain = 1.0);
// All elements of row i are offset + i, so that the result of a lookup shows which row was read.
Initializer row_id(int64_t offset = 0);

// Returns the registry of initializer classes, which loading and names use.
Registry<InitializerFunction>& registry();

}  // namespace initializers
}  // namespace keel
