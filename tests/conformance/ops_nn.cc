#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace K = keras_ops;
using Results = std::vector<Tensor>;

OpAdapter activation(Tensor (*f)(const Tensor&)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x"))}; };
}
// An activation with one number.
OpAdapter activation(Tensor (*f)(const Tensor&, double), const char* name, double otherwise) {
  return [=](OpArguments& a) -> Results { return {f(a.tensor("x"), a.number(name, otherwise))}; };
}
OpAdapter along_axis(Tensor (*f)(const Tensor&, int)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("x"), static_cast<int>(a.integer("axis", -1)))};
  };
}
OpAdapter along_axes(Tensor (*f)(const Tensor&, const K::Axes&)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x"), a.axes("axis", -1))}; };
}

std::string padding_of(OpArguments& a) { return a.string("padding", "valid"); }
std::string format_of(OpArguments& a) { return a.string("data_format", "channels_last"); }

OpAdapter convolution(Tensor (*f)(const Tensor&, const Tensor&, const K::SpatialSizes&,
                                  const std::string&, const std::string&, const K::SpatialSizes&)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("inputs"), a.tensor("kernel"), a.sizes("strides", 1), padding_of(a),
              format_of(a), a.sizes("dilation_rate", 1))};
  };
}
OpAdapter pool(Tensor (*f)(const Tensor&, const K::SpatialSizes&,
                           const std::optional<K::SpatialSizes>&, const std::string&,
                           const std::string&)) {
  return [f](OpArguments& a) -> Results {
    std::optional<K::SpatialSizes> strides;
    if (a.has("strides")) strides = a.sizes("strides", 1);
    return {f(a.tensor("inputs"), a.sizes("pool_size", 1), strides, padding_of(a), format_of(a))};
  };
}
OpAdapter adaptive(Tensor (*f)(const Tensor&, const K::SpatialSizes&, const std::string&)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("inputs"), a.sizes("output_size", 1), format_of(a))};
  };
}
OpAdapter crossentropy(Tensor (*f)(const Tensor&, const Tensor&, bool, int)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("target"), a.tensor("output"), a.boolean("from_logits", false),
              static_cast<int>(a.integer("axis", -1)))};
  };
}

OpAdapters activation_adapters() {
  return {{"relu", activation(K::relu)},
          {"relu6", activation(K::relu6)},
          {"selu", activation(K::selu)},
          {"silu", activation(K::silu)},
          {"sigmoid", activation(K::sigmoid)},
          {"softplus", activation(K::softplus)},
          {"softsign", activation(K::softsign)},
          {"hard_sigmoid", activation(K::hard_sigmoid)},
          {"hard_silu", activation(K::hard_silu)},
          {"hard_tanh", activation(K::hard_tanh)},
          {"log_sigmoid", activation(K::log_sigmoid)},
          {"sparse_plus", activation(K::sparse_plus)},
          {"sparse_sigmoid", activation(K::sparse_sigmoid)},
          {"tanh_shrink", activation(K::tanh_shrink)},
          {"elu", activation(K::elu, "alpha", 1)},
          {"celu", activation(K::celu, "alpha", 1)},
          {"leaky_relu", activation(K::leaky_relu, "negative_slope", 0.2)},
          {"hard_shrink", activation(K::hard_shrink, "threshold", 0.5)},
          {"soft_shrink", activation(K::soft_shrink, "threshold", 0.5)},
          {"squareplus", activation(K::squareplus, "b", 4)},
          {"gelu",
           [](OpArguments& a) -> Results {
             return {K::gelu(a.tensor("x"), a.boolean("approximate", true))};
           }},
          {"threshold",
           [](OpArguments& a) -> Results {
             return {K::threshold(a.tensor("x"), a.number("threshold", 0),
                                  a.number("default_value", 0))};
           }},
          {"glu", along_axis(K::glu)},
          {"sparsemax", along_axis(K::sparsemax)},
          {"softmax", along_axes(K::softmax)},
          {"log_softmax", along_axes(K::log_softmax)}};
}

OpAdapters normalization_adapters() {
  return {{"normalize",
           [](OpArguments& a) -> Results {
             return {K::normalize(a.tensor("x"), a.axes("axis", -1), a.number("order", 2),
                                  a.maybe_number("epsilon"))};
           }},
          {"batch_normalization",
           [](OpArguments& a) -> Results {
             return {K::batch_normalization(a.tensor("x"), a.tensor("mean"), a.tensor("variance"),
                                            static_cast<int>(a.integer("axis", -1)),
                                            a.maybe_tensor("offset"), a.maybe_tensor("scale"),
                                            a.number("epsilon", 1e-3))};
           }},
          {"layer_normalization",
           [](OpArguments& a) -> Results {
             return {K::layer_normalization(a.tensor("x"), a.maybe_tensor("gamma"),
                                            a.maybe_tensor("beta"), a.axes("axis", -1),
                                            a.maybe_number("epsilon"))};
           }},
          {"rms_normalization",
           [](OpArguments& a) -> Results {
             return {K::rms_normalization(a.tensor("x"), a.maybe_tensor("scale"),
                                          a.axes("axis", -1), a.maybe_number("epsilon"))};
           }},
          {"dot_product_attention",
           [](OpArguments& a) -> Results {
             return {K::dot_product_attention(
                 a.tensor("query"), a.tensor("key"), a.tensor("value"),
                 {.bias = a.maybe_tensor("bias"),
                  .mask = a.maybe_tensor("mask"),
                  .scale = a.maybe_number("scale"),
                  .is_causal = a.boolean("is_causal", false),
                  .attn_logits_soft_cap = a.maybe_number("attn_logits_soft_cap")})};
           }},
          {"binary_crossentropy",
           [](OpArguments& a) -> Results {
             return {K::binary_crossentropy(a.tensor("target"), a.tensor("output"),
                                            a.boolean("from_logits", false))};
           }},
          {"categorical_crossentropy", crossentropy(K::categorical_crossentropy)},
          {"sparse_categorical_crossentropy", crossentropy(K::sparse_categorical_crossentropy)},
          {"ctc_loss",
           [](OpArguments& a) -> Results {
             return {K::ctc_loss(a.tensor("target"), a.tensor("output"), a.tensor("target_length"),
                                 a.tensor("output_length"), a.integer("mask_index", 0))};
           }},
          {"ctc_decode",
           [](OpArguments& a) -> Results {
             const auto [labels, scores] =
                 K::ctc_decode(a.tensor("inputs"), a.tensor("sequence_lengths"),
                               {.strategy = a.string("strategy", "greedy"),
                                .beam_width = a.integer("beam_width", 100),
                                .top_paths = a.integer("top_paths", 1),
                                .merge_repeated = a.boolean("merge_repeated", true),
                                .mask_index = a.integer("mask_index", 0)});
             return {labels, scores};
           }},
          {"psnr", [](OpArguments& a) -> Results {
             return {K::psnr(a.tensor("x1"), a.tensor("x2"), a.number("max_val", 1))};
           }}};
}

OpAdapters spatial_adapters() {
  return {{"conv", convolution(K::conv)},
          {"depthwise_conv", convolution(K::depthwise_conv)},
          {"separable_conv",
           [](OpArguments& a) -> Results {
             return {K::separable_conv(a.tensor("inputs"), a.tensor("depthwise_kernel"),
                                       a.tensor("pointwise_kernel"), a.sizes("strides", 1),
                                       padding_of(a), format_of(a), a.sizes("dilation_rate", 1))};
           }},
          {"conv_transpose",
           [](OpArguments& a) -> Results {
             std::optional<K::SpatialSizes> extra;
             if (a.has("output_padding")) extra = a.sizes("output_padding", 0);
             return {K::conv_transpose(a.tensor("inputs"), a.tensor("kernel"),
                                       a.sizes("strides", 1), padding_of(a), extra, format_of(a),
                                       a.sizes("dilation_rate", 1))};
           }},
          {"max_pool", pool(K::max_pool)},
          {"average_pool", pool(K::average_pool)},
          {"adaptive_max_pool", adaptive(K::adaptive_max_pool)},
          {"adaptive_average_pool", adaptive(K::adaptive_average_pool)}};
}

}  // namespace

OpAdapters nn_adapters() {
  OpAdapters out = activation_adapters();
  out.merge(normalization_adapters());
  out.merge(spatial_adapters());
  return out;
}

}  // namespace keel::conformance
