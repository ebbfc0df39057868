#include <algorithm>

#include <keel/autodiff/attention_ops.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/kernels/attention/fused_attention.h>

namespace keel {
namespace {

using ops::AttentionOptions;

kernels::Attention operands(const AttentionOptions& options, const Tensor& query, const Tensor& key,
                            const Tensor& value) {
  // A window of this size hides nothing; greater ones would overflow.
  const int64_t window = std::min(options.window, query.dim(1) + key.dim(1));
  kernels::Attention out = {.matrices = query.dim(0),
                            .queries = query.dim(1),
                            .keys = key.dim(1),
                            .dim = query.dim(2),
                            .value_dim = value.dim(2),
                            .scale = static_cast<float>(options.scale),
                            .mask = {.causal = options.causal, .window = window},
                            .precision = ops::internal::precision_of_step(),
                            .query = query.data<float>().data(),
                            .key = key.data<float>().data(),
                            .value = value.data<float>().data()};
  if (options.mask) {
    out.mask.seen = options.mask.data<bool>().data();
    out.mask.matrices = options.mask.dim(0);
    out.mask.rows = options.mask.dim(1);
    out.mask.columns = options.mask.dim(2);
  }
  return out;
}

// The inputs are query, key, value, output, statistics and the gradient of the output.
class AttentionGradient final : public Op {
 public:
  explicit AttentionGradient(AttentionOptions options)
      : Op("AttentionGradient"), options_(std::move(options)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {in[0], in[1], in[2]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    std::vector<Tensor> out;
    for (int i = 0; i < 3; ++i) out.push_back(Tensor::uninitialized(in[i].shape(), in[i].dtype()));
    kernels::fused_attention_gradient(operands(options_, in[0], in[1], in[2]),
                                      {.out = in[3].data<float>().data(),
                                       .statistics = in[4].data<float>().data(),
                                       .dout = in[5].data<float>().data(),
                                       .dquery = out[0].mutable_data<float>().data(),
                                       .dkey = out[1].mutable_data<float>().data(),
                                       .dvalue = out[2].mutable_data<float>().data()});
    return out;
  }

 private:
  const AttentionOptions options_;
};

// The inputs are query, key and value; the outputs are the result and the statistics of the rows.
class FusedAttention final : public Op {
 public:
  explicit FusedAttention(AttentionOptions options)
      : Op("Attention"), options_(std::move(options)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const Shape &query = in[0].shape, &key = in[1].shape, &value = in[2].shape;
    for (const TensorSpec& spec : in) {
      if (spec.dtype == DType::kFloat32) continue;
      throw TypeError("attention: dtype must be float32, received ", spec.dtype);
    }
    const bool ranks = query.rank() == 3 && key.rank() == 3 && value.rank() == 3;
    const auto equal = [](int64_t a, int64_t b) {
      return a == b || a == kUnknown || b == kUnknown;
    };
    if (!ranks || !equal(query[0], key[0]) || !equal(query[0], value[0]) ||
        !equal(query[2], key[2]) || !equal(key[1], value[1])) {
      throw ValueError("attention: query, key and value must be [matrices, steps, dim], received ",
                       query, ", ", key, " and ", value);
    }
    check_mask(query, key);
    return {{.shape = {query[0], query[1], value[2]}}, {.shape = {query[0], query[1], 2}}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor out = Tensor::uninitialized({in[0].dim(0), in[0].dim(1), in[2].dim(2)}, DType::kFloat32);
    Tensor statistics = Tensor::uninitialized({in[0].dim(0), in[0].dim(1), 2}, DType::kFloat32);
    kernels::fused_attention(operands(options_, in[0], in[1], in[2]),
                             out.mutable_data<float>().data(),
                             statistics.mutable_data<float>().data());
    return {out, statistics};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    if (!args.output_gradients[0]) return {{}, {}, {}};
    const Tensor dout = args.output_gradients[0].dense();
    const std::vector<Tensor> in(args.inputs.begin(), args.inputs.end());
    if (GradientTape::any_active()) {
      // Another tape differentiates the gradient, for which separate ops have gradients.
      GradientTape tape;
      for (const Tensor& x : in) tape.watch(x);
      return tape.input_gradient(composed(in[0], in[1], in[2]), in, {.output_gradient = dout});
    }
    std::vector<Tensor> all = in;
    for (const Tensor& more : {args.outputs[0], args.outputs[1], dout}) all.push_back(more);
    const std::vector<Tensor> out =
        dispatch(std::make_shared<const AttentionGradient>(options_), std::move(all));
    return {out[0], out[1], out[2]};
  }

 private:
  void check_mask(const Shape& query, const Shape& key) const {
    if (!options_.mask) return;
    const Shape& mask = options_.mask.shape();
    const bool fits = options_.mask.dtype() == DType::kBool && mask.rank() == 3 &&
                      (mask[0] == 1 || query[0] == kUnknown ||
                       (mask[0] > 0 ? query[0] % mask[0] == 0 : query[0] == 0)) &&
                      (mask[1] == 1 || mask[1] == query[1]) && (mask[2] == 1 || mask[2] == key[1]);
    if (fits) return;
    throw ValueError("attention: a mask of shape ", mask, " does not fit ", query[0],
                     " matrices of ", query[1], " queries and ", key[1], " keys");
  }

  // Computes the result with separate ops.
  Tensor composed(const Tensor& query, const Tensor& key, const Tensor& value) const {
    Tensor products = ops::matmul(query * options_.scale, key, false, true);
    const int64_t matrices = query.dim(0), rows = query.dim(1), columns = key.dim(1);
    Tensor hidden = Tensor::zeros({matrices, rows, columns});
    float* to = hidden.mutable_data<float>().data();
    const kernels::Attention a = operands(options_, query, key, value);
    for (int64_t m = 0; m < matrices; ++m) {
      const int64_t part = a.mask.matrices <= 1 ? 0 : m / (matrices / a.mask.matrices);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t row = part * a.mask.rows + (a.mask.rows == 1 ? 0 : i);
          const bool seen = (a.mask.seen == nullptr ||
                             a.mask.seen[row * a.mask.columns + (a.mask.columns == 1 ? 0 : j)]) &&
                            (!a.mask.causal || j <= i) &&
                            (a.mask.window <= 0 || std::abs(i - j) < a.mask.window);
          if (!seen) to[(m * rows + i) * columns + j] = 1e9F;
        }
      }
    }
    return ops::matmul(ops::softmax(products - hidden), value);
  }

  const AttentionOptions options_;
};

}  // namespace

Tensor ops::attention(const Tensor& query, const Tensor& key, const Tensor& value,
                      const AttentionOptions& options) {
  return dispatch(std::make_shared<const FusedAttention>(options), {query, key, value})[0];
}

}  // namespace keel
