#include <limits>

#include <keel/autodiff/ops.h>
#include <keel/layers/regularizers.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;  // avoids division by zero for weights of norm 0

struct MaxNormOptions {
  double max_value = 2.0;
  Axes axis = 0;
  static constexpr void fields(auto& self, auto&& field) {
    field("max_value", self.max_value);
    field("axis", self.axis);
  }
};

struct MinMaxNormOptions {
  double min_value = 0.0;
  double max_value = 1.0;
  double rate = 1.0;
  Axes axis = 0;
  static constexpr void fields(auto& self, auto&& field) {
    field("min_value", self.min_value);
    field("max_value", self.max_value);
    field("rate", self.rate);
    field("axis", self.axis);
  }
};

struct NonNegOptions {
  static constexpr void fields(auto&, auto&&) {}
};

struct UnitNormOptions {
  Axes axis = 0;
  static constexpr void fields(auto& self, auto&& field) { field("axis", self.axis); }
};

Tensor norms(const Tensor& w, const Axes& axis, const char* caller) {
  return ops::sqrt(ops::sum(ops::square(w), axis.normalized(w.shape(), caller), true));
}

class MaxNormFunction final : public ConstraintFunction {
 public:
  static constexpr char kClassName[] = "MaxNorm";
  using Options = MaxNormOptions;
  explicit MaxNormFunction(Options options) : options_(std::move(options)) {}
  Tensor operator()(const Tensor& w) const override {
    const Tensor norm = norms(w, options_.axis, kClassName);
    const Tensor desired = ops::clip_by_value(norm, 0, options_.max_value);
    return w * (desired / (norm + kEpsilon));
  }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

class MinMaxNormFunction final : public ConstraintFunction {
 public:
  static constexpr char kClassName[] = "MinMaxNorm";
  using Options = MinMaxNormOptions;
  explicit MinMaxNormFunction(Options options) : options_(std::move(options)) {}
  Tensor operator()(const Tensor& w) const override {
    const Tensor norm = norms(w, options_.axis, kClassName);
    // `rate` moves the norm only a part of the way to the interval.
    const Tensor inside = ops::clip_by_value(norm, options_.min_value, options_.max_value);
    const Tensor desired = inside * options_.rate + norm * (1 - options_.rate);
    return w * (desired / (norm + kEpsilon));
  }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

class NonNegFunction final : public ConstraintFunction {
 public:
  static constexpr char kClassName[] = "NonNeg";
  using Options = NonNegOptions;
  explicit NonNegFunction(const Options&) {}
  Tensor operator()(const Tensor& w) const override {
    return ops::clip_by_value(w, 0, std::numeric_limits<double>::infinity());
  }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return Config::dict(); }
};

class UnitNormFunction final : public ConstraintFunction {
 public:
  static constexpr char kClassName[] = "UnitNorm";
  using Options = UnitNormOptions;
  explicit UnitNormFunction(Options options) : options_(std::move(options)) {}
  Tensor operator()(const Tensor& w) const override {
    return w / (norms(w, options_.axis, kClassName) + kEpsilon);
  }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

template <class Function>
Constraint make(typename Function::Options options) {
  return Constraint(std::make_shared<Function>(std::move(options)));
}

}  // namespace

Registry<ConstraintFunction>& ConstraintFunction::registry() {
  // Built on first use, because initializers of static objects in other sources may need it.
  static Registry<ConstraintFunction>& registry = []() -> Registry<ConstraintFunction>& {
    static Registry<ConstraintFunction> all("constraint");
    all.add<MaxNormFunction>();
    all.add<MinMaxNormFunction>();
    all.add<NonNegFunction>();
    all.add<UnitNormFunction>();
    return all;
  }();
  return registry;
}

namespace constraints {

Constraint max_norm(double max_value, const Axes& axis) {
  return make<MaxNormFunction>({.max_value = max_value, .axis = axis});
}

Constraint min_max_norm(double min_value, double max_value, double rate, const Axes& axis) {
  return make<MinMaxNormFunction>(
      {.min_value = min_value, .max_value = max_value, .rate = rate, .axis = axis});
}

Constraint non_neg() { return make<NonNegFunction>({}); }
Constraint unit_norm(const Axes& axis) { return make<UnitNormFunction>({.axis = axis}); }

}  // namespace constraints
}  // namespace keel
