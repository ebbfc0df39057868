#include <absl/strings/str_cat.h>

#include <keel/layers/interaction/interaction.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/merging/internal/merge_inputs.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

// Computes y = x0 (product + scale x) + x for rows of `width` floats.
class CrossStep final : public PlanStep {
 public:
  struct Values {
    PlanValue x0, x, product, y;
  };
  CrossStep(const Values& values, double scale, int64_t width)
      : values_(values), scale_(static_cast<float>(scale)), width_(width) {}

  void run(const PlanCall& call) const override {
    const PlanRows x0 = call[values_.x0], x = call[values_.x], product = call[values_.product];
    const PlanRows y = call[values_.y];
    for (int64_t r = 0; r < call.rows; ++r) {
      const float *a = x0[r], *b = x[r], *p = product[r];
      float* out = y[r];
      if (scale_ == 0) {
        for (int64_t j = 0; j < width_; ++j) out[j] = a[j] * p[j] + b[j];
      } else {
        for (int64_t j = 0; j < width_; ++j) out[j] = a[j] * (p[j] + scale_ * b[j]) + b[j];
      }
    }
  }
  std::string what() const override {
    return absl::StrCat("feature cross of rows of ", width_, " floats");
  }

 private:
  const Values values_;
  const float scale_;
  const int64_t width_;
};

}  // namespace

FeatureCrossLayer::FeatureCrossLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.diag_scale >= 0)) {
    throw ValueError("FeatureCross ", name(), ": diag_scale must not be negative, received ",
                     options_.diag_scale);
  }
  if (options_.projection_dim && *options_.projection_dim <= 0) {
    throw ValueError("FeatureCross ", name(), ": projection_dim must be positive, received ",
                     *options_.projection_dim);
  }
}

void FeatureCrossLayer::build_weights(const Specs& inputs) {
  const std::vector<TensorSpec> specs = flatten(inputs);
  if (specs.empty() || specs.size() > 2 || specs[0].shape.rank() < 2 ||
      specs[0].shape[-1] == kUnknown) {
    throw ValueError(
        "FeatureCross ", name(),
        ": inputs must be one or two tensors of rank 2 or more with a known last dimension, "
        "received ",
        specs.size(), " tensors, the first of shape ", specs.empty() ? Shape{} : specs[0].shape);
  }
  const int64_t dim = specs[0].shape[-1];
  const auto kernel = [&](const char* name, int64_t in, int64_t out) {
    return add_weight({.name = name,
                       .shape = {in, out},
                       .initializer = options_.kernel_initializer,
                       .regularizer = options_.kernel_regularizer,
                       .dtype = dtype()});
  };
  if (options_.projection_dim) down_kernel_ = kernel("down_kernel", dim, *options_.projection_dim);
  kernel_ = kernel("kernel", options_.projection_dim.value_or(dim), dim);
  if (options_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = {dim},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .dtype = dtype()});
  }
}

std::vector<std::string> FeatureCrossLayer::weight_attributes() const {
  std::vector<std::string> out;
  for (const StateEntry& entry : state_entries()) {
    out.emplace_back(entry.name == "down_kernel" ? "down_proj_dense" : "dense");
  }
  return out;
}

Tensors FeatureCrossLayer::call(const Tensors& inputs, const CallContext&) {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, 1);
  const Tensor x0 = as_dtype(tensors.front(), dtype());
  const Tensor x = as_dtype(tensors.back(), dtype());
  if (tensors.size() > 2 || !compatible(x0.shape(), x.shape())) {
    throw ValueError("FeatureCross ", name(),
                     ": inputs must be x0 and x of the same shape, received ", tensors.size(),
                     " tensors, ", x0.shape(), " and ", x.shape());
  }
  Tensor y = ops::matmul(options_.projection_dim ? ops::matmul(x, down_kernel_) : x, kernel_);
  if (options_.use_bias) y = y + bias_;
  y = options_.pre_activation(y);
  if (options_.diag_scale > 0) y = y + ops::scale(x, options_.diag_scale);
  return x0 * y + x;
}

std::optional<PlanValues> FeatureCrossLayer::plan(Planner& planner,
                                                  const PlanValues& inputs) const {
  const std::optional<RowFunction> function = RowFunction::of(options_.pre_activation);
  const auto x = planner.rows(inputs, true);
  if (!x || !function || dtype_policy() != DType::kFloat32 || x->size() > 2) return {};
  const PlanValue x0 = x->front(), last = x->back();
  const Shape row = planner.row_shape(last);
  if (planner.row_shape(x0) != row) return {};
  PlanValue product = last;
  if (options_.projection_dim) product = planner.product(product, down_kernel_, {}, {});
  product = planner.product(product, kernel_, bias_, *function);
  const PlanValue y = planner.make_rows(row);
  planner.add(std::make_unique<CrossStep>(
                  CrossStep::Values{.x0 = x0, .x = last, .product = product, .y = y},
                  options_.diag_scale, row.size()),
              {x0, last, product}, {y});
  return y;
}

KEEL_REGISTER(Layer, FeatureCrossLayer, .package = "keras_rs", .call = "x0, x")

}  // namespace keel
