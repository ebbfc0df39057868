#include <keel/layers/regularizers.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/initializers.h>

namespace keel {
namespace {

struct L1Options {
  double l1 = 0.01;
  static constexpr void fields(auto& self, auto&& field) { field("l1", self.l1); }
};

struct L2Options {
  double l2 = 0.01;
  static constexpr void fields(auto& self, auto&& field) { field("l2", self.l2); }
};

struct L1L2Options {
  double l1 = 0.0;
  double l2 = 0.0;
  static constexpr void fields(auto& self, auto&& field) {
    field("l1", self.l1);
    field("l2", self.l2);
  }
};

struct OrthogonalOptions {
  double factor = 0.01;
  std::string mode = "rows";
  static constexpr void fields(auto& self, auto&& field) {
    field("factor", self.factor);
    field("mode", self.mode);
  }
};

void check_factor(const std::string& caller, double factor) {
  if (!std::isfinite(factor)) {
    throw ValueError(caller, ": the factor must be finite, received ", factor);
  }
}

Tensor sum_of_magnitudes(const Tensor& x) { return ops::sum(ops::abs(x)); }
Tensor sum_of_squares(const Tensor& x) { return ops::sum(ops::square(x)); }

class L1Function final : public RegularizerFunction {
 public:
  static constexpr char kClassName[] = "L1";
  using Options = L1Options;
  explicit L1Function(const Options& options) : options_(options) {
    check_factor(kClassName, options_.l1);
  }
  Tensor operator()(const Tensor& x) const override { return sum_of_magnitudes(x) * options_.l1; }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

class L2Function final : public RegularizerFunction {
 public:
  static constexpr char kClassName[] = "L2";
  using Options = L2Options;
  explicit L2Function(const Options& options) : options_(options) {
    check_factor(kClassName, options_.l2);
  }
  Tensor operator()(const Tensor& x) const override { return sum_of_squares(x) * options_.l2; }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

class L1L2Function final : public RegularizerFunction {
 public:
  static constexpr char kClassName[] = "L1L2";
  using Options = L1L2Options;
  explicit L1L2Function(const Options& options) : options_(options) {
    check_factor(kClassName, options_.l1);
    check_factor(kClassName, options_.l2);
  }
  Tensor operator()(const Tensor& x) const override {
    // A term whose factor is 0 is left out, so that the tape records no ops for it.
    if (options_.l1 == 0) return sum_of_squares(x) * options_.l2;
    const Tensor l1 = sum_of_magnitudes(x) * options_.l1;
    return options_.l2 == 0 ? l1 : l1 + sum_of_squares(x) * options_.l2;
  }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

class OrthogonalFunction final : public RegularizerFunction {
 public:
  static constexpr char kClassName[] = "OrthogonalRegularizer";
  using Options = OrthogonalOptions;
  explicit OrthogonalFunction(Options options) : options_(std::move(options)) {
    check_factor(kClassName, options_.factor);
    if (options_.mode != "rows" && options_.mode != "columns") {
      throw ValueError(kClassName, ": mode must be rows or columns, received '", options_.mode,
                       "'");
    }
  }
  Tensor operator()(const Tensor& x) const override {
    if (x.rank() != 2) throw ValueError(kClassName, ": the rank must be 2, received ", x.shape());
    const Tensor rows = options_.mode == "rows" ? x : ops::transpose(x);
    const int64_t n = rows.dim(0);
    if (n < 2) return ops::sum(ops::zeros_like(x));  // there are no pairs
    const Tensor norms = ops::sqrt(ops::sum(ops::square(rows), {1}, true));
    const Tensor unit = ops::divide_no_nan(rows, norms);
    const Tensor cosines = ops::abs(ops::matmul(unit, unit, false, true));
    // Without the diagonal, which holds the cosine of each row with itself, the matrix contains
    // each pair twice: hence the factor 0.5 below.
    const Tensor others =
        Initializer("ones")({n, n}, x.dtype()) - Initializer("identity")({n, n}, x.dtype());
    const auto pairs = static_cast<double>(n * (n - 1)) / 2;
    return ops::sum(cosines * others) * (options_.factor * 0.5 / pairs);
  }
  std::string class_name() const override { return kClassName; }
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

}  // namespace

Registry<RegularizerFunction>& RegularizerFunction::registry() {
  // Built on first use, because initializers of static objects in other sources may need it.
  static Registry<RegularizerFunction>& registry = []() -> Registry<RegularizerFunction>& {
    static Registry<RegularizerFunction> all("regularizer");
    all.add<L1Function>();
    all.add<L2Function>();
    all.add<L1L2Function>();
    all.add<OrthogonalFunction>();
    return all;
  }();
  return registry;
}

namespace regularizers {

Regularizer l1(double factor) {
  return Regularizer(std::make_shared<L1Function>(L1Options{.l1 = factor}));
}

Regularizer l2(double factor) {
  return Regularizer(std::make_shared<L2Function>(L2Options{.l2 = factor}));
}

Regularizer l1_l2(double l1, double l2) {
  return Regularizer(std::make_shared<L1L2Function>(L1L2Options{.l1 = l1, .l2 = l2}));
}

Regularizer orthogonal(double factor, const std::string& mode) {
  return Regularizer(
      std::make_shared<OrthogonalFunction>(OrthogonalOptions{.factor = factor, .mode = mode}));
}

}  // namespace regularizers
}  // namespace keel
