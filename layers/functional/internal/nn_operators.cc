#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/layers/functional/internal/operator_tables.h>
#include <keel/layers/keras_ops/convolution.h>
#include <keel/layers/keras_ops/nn.h>

namespace keel {
namespace {

namespace K = keras_ops;
using Given = OperatorArguments;

K::Pair pair(const Given& a, const char* name, int64_t otherwise = 1) {
  if (!a.has(name)) return otherwise;
  const std::vector<int64_t> numbers = a.numbers(name);
  if (numbers.empty() || numbers.size() > 2) {
    throw ValueError("the argument '", name, "' must have one or two numbers");
  }
  return {numbers.front(), numbers.back()};
}

std::optional<K::Pair> optional_pair(const Given& a, const char* name) {
  return a.has(name) ? std::optional(pair(a, name)) : std::nullopt;
}

// Returns numbers of the spatial axes, one for all by default.
K::SpatialSizes sizes(const Given& a, const char* name) {
  if (!a.has(name)) return 1;
  const std::vector<int64_t> numbers = a.numbers(name);
  return numbers.size() == 1 ? K::SpatialSizes(numbers[0]) : K::SpatialSizes(numbers);
}

std::optional<K::SpatialSizes> optional_sizes(const Given& a, const char* name) {
  return a.has(name) ? std::optional(sizes(a, name)) : std::nullopt;
}

std::string data_format(const Given& a) { return a.text("data_format", "channels_last"); }

void add_activations(OperatorTable& table) {
  const FunctionOfOne all[] = {{"hard_swish", K::hard_swish},
                               {"sparse_plus", K::sparse_plus},
                               {"sparse_sigmoid", K::sparse_sigmoid},
                               {"swish", K::swish},
                               {"tanh_shrink", K::tanh_shrink}};
  add_functions_of_one(table, all);
  using Along = Tensor (*)(const Tensor&, int);
  const std::pair<const char*, Along> along[] = {{"glu", K::glu}, {"sparsemax", K::sparsemax}};
  for (const auto& [name, function] : along) {
    add_operator(table, name, "x axis", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.int_or("axis", -1)));
    });
  }
  using Shrink = Tensor (*)(const Tensor&, double);
  const std::pair<const char*, Shrink> shrinks[] = {{"hard_shrink", K::hard_shrink},
                                                    {"soft_shrink", K::soft_shrink}};
  for (const auto& [name, function] : shrinks) {
    add_operator(table, name, "x threshold", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.number("threshold", 0.5)));
    });
  }
  add_operator(table, "threshold", "x threshold default_value", [](const Given& a) {
    return Tensors(
        K::threshold(a.tensor("x"), a.number("threshold", 0), a.number("default_value", 0)));
  });
  add_operator(table, "squareplus", "x b", [](const Given& a) {
    return Tensors(K::squareplus(a.tensor("x"), a.number("b", 4)));
  });
}

// Keras names the operators LayerNorm, RMSNorm and BatchNorm.
void add_normalizations(OperatorTable& table) {
  const auto layer = [](const Given& a) {
    const Tensor x = a.tensor("x");
    const std::optional<Tensor> gamma = optional_tensor(a, "gamma");
    const K::Axes axis = a.has("axis") ? a.axes() : K::Axes(-1);
    const std::optional<double> epsilon = a.optional_number("epsilon");
    if (a.flag("rms_scaling")) return Tensors(K::rms_normalization(x, gamma, axis, epsilon));
    return Tensors(K::layer_normalization(x, gamma, optional_tensor(a, "beta"), axis, epsilon));
  };
  const auto rms = [](const Given& a) {
    return Tensors(K::rms_normalization(a.tensor("x"), optional_tensor(a, "scale"),
                                        a.has("axis") ? a.axes() : K::Axes(-1),
                                        a.optional_number("epsilon")));
  };
  const auto batch = [](const Given& a) {
    return Tensors(K::batch_normalization(a.tensor("x"), a.tensor("mean"), a.tensor("variance"),
                                          a.int_or("axis", -1), optional_tensor(a, "offset"),
                                          optional_tensor(a, "scale"), a.number("epsilon", 1e-3)));
  };
  add_operator(table, "layer_norm", "x gamma beta axis epsilon rms_scaling", layer);
  add_operator(table, "rms_norm", "x scale axis epsilon", rms);
  add_operator(table, "batch_norm", "x mean variance offset scale axis epsilon", batch);
}

Tensor attention(const Given& a) {
  K::AttentionOptions options{.bias = optional_tensor(a, "bias"),
                              .mask = optional_tensor(a, "mask"),
                              .scale = a.optional_number("scale"),
                              .is_causal = a.flag("is_causal"),
                              .attn_logits_soft_cap = a.optional_number("attn_logits_soft_cap")};
  return K::dot_product_attention(a.tensor("query"), a.tensor("key"), a.tensor("value"), options);
}

void add_losses(OperatorTable& table) {
  add_operator(table, "binary_crossentropy", "target output from_logits", [](const Given& a) {
    return Tensors(
        K::binary_crossentropy(a.tensor("target"), a.tensor("output"), a.flag("from_logits")));
  });
  using Crossentropy = Tensor (*)(const Tensor&, const Tensor&, bool, int);
  const std::pair<const char*, Crossentropy> all[] = {
      {"categorical_crossentropy", K::categorical_crossentropy},
      {"sparse_categorical_crossentropy", K::sparse_categorical_crossentropy}};
  for (const auto& [name, function] : all) {
    add_operator(table, name, "target output from_logits axis", [f = function](const Given& a) {
      return Tensors(
          f(a.tensor("target"), a.tensor("output"), a.flag("from_logits"), a.int_or("axis", -1)));
    });
  }
  add_operator(table, "ctc_loss", "target output target_length output_length mask_index",
               [](const Given& a) {
                 return Tensors(K::ctc_loss(a.tensor("target"), a.tensor("output"),
                                            a.tensor("target_length"), a.tensor("output_length"),
                                            a.integer("mask_index", 0)));
               });
  add_operator(table, "ctc_decode",
               "inputs sequence_lengths strategy beam_width top_paths merge_repeated mask_index",
               [](const Given& a) {
                 const auto [decoded, scores] = K::ctc_decode(
                     a.tensor("inputs"), a.tensor("sequence_lengths"),
                     {.strategy = a.text("strategy", "greedy"),
                      .beam_width = a.integer("beam_width", 100),
                      .top_paths = a.integer("top_paths", 1),
                      .merge_repeated = !a.has("merge_repeated") || a.flag("merge_repeated"),
                      .mask_index = a.integer("mask_index", 0)});
                 return Tensors::tuple({decoded, scores});
               });
  add_operator(table, "psnr", "x1 x2 max_val", [](const Given& a) {
    return Tensors(K::psnr(a.tensor("x1"), a.tensor("x2"), a.number("max_val", 1)));
  });
}

void add_convolutions(OperatorTable& table) {
  using Conv = Tensor (*)(const Tensor&, const Tensor&, const K::SpatialSizes&, const std::string&,
                          const std::string&, const K::SpatialSizes&);
  const std::pair<const char*, Conv> all[] = {{"conv", K::conv},
                                              {"depthwise_conv", K::depthwise_conv}};
  for (const auto& [name, function] : all) {
    add_operator(
        table, name, "inputs kernel strides padding data_format dilation_rate",
        [f = function](const Given& a) {
          return Tensors(f(a.tensor("inputs"), a.tensor("kernel"), sizes(a, "strides"),
                           a.text("padding", "valid"), data_format(a), sizes(a, "dilation_rate")));
        });
  }
  add_operator(table, "separable_conv",
               "inputs depthwise_kernel pointwise_kernel strides padding data_format dilation_rate",
               [](const Given& a) {
                 return Tensors(K::separable_conv(a.tensor("inputs"), a.tensor("depthwise_kernel"),
                                                  a.tensor("pointwise_kernel"), sizes(a, "strides"),
                                                  a.text("padding", "valid"), data_format(a),
                                                  sizes(a, "dilation_rate")));
               });
  add_operator(
      table, "conv_transpose",
      "inputs kernel strides padding output_padding data_format dilation_rate", [](const Given& a) {
        return Tensors(K::conv_transpose(
            a.tensor("inputs"), a.tensor("kernel"), sizes(a, "strides"), a.text("padding", "valid"),
            optional_sizes(a, "output_padding"), data_format(a), sizes(a, "dilation_rate")));
      });
  using Pool =
      Tensor (*)(const Tensor&, const K::SpatialSizes&, const std::optional<K::SpatialSizes>&,
                 const std::string&, const std::string&);
  const std::pair<const char*, Pool> pools[] = {{"average_pool", K::average_pool},
                                                {"max_pool", K::max_pool}};
  for (const auto& [name, function] : pools) {
    add_operator(
        table, name, "inputs pool_size strides padding data_format",
        [f = function](const Given& a) {
          return Tensors(f(a.tensor("inputs"), sizes(a, "pool_size"), optional_sizes(a, "strides"),
                           a.text("padding", "valid"), data_format(a)));
        });
  }
  using Adaptive = Tensor (*)(const Tensor&, const K::SpatialSizes&, const std::string&);
  const std::pair<const char*, Adaptive> adaptive[] = {
      {"adaptive_average_pool", K::adaptive_average_pool},
      {"adaptive_max_pool", K::adaptive_max_pool}};
  for (const auto& [name, function] : adaptive) {
    add_operator(table, name, "inputs output_size data_format", [f = function](const Given& a) {
      return Tensors(f(a.tensor("inputs"), sizes(a, "output_size"), data_format(a)));
    });
  }
  add_operator(table, "unfold", "x kernel_size dilation padding stride", [](const Given& a) {
    return Tensors(K::unfold(a.tensor("x"), pair(a, "kernel_size"), pair(a, "dilation"),
                             pair(a, "padding", 0), pair(a, "stride")));
  });
  add_operator(
      table, "fold", "x output_size kernel_size dilation padding stride", [](const Given& a) {
        return Tensors(K::fold(a.tensor("x"), pair(a, "output_size"), pair(a, "kernel_size"),
                               pair(a, "dilation"), pair(a, "padding", 0), pair(a, "stride")));
      });
}

K::image::Margins margins(const Given& a, const std::string& suffix) {
  const auto number = [&](const std::string& name) {
    return a.has(name.c_str()) ? std::optional(a.integer(name.c_str(), 0)) : std::nullopt;
  };
  return {.top = number("top" + suffix),
          .left = number("left" + suffix),
          .bottom = number("bottom" + suffix),
          .right = number("right" + suffix),
          .target_height = number("target_height"),
          .target_width = number("target_width")};
}

void add_images(OperatorTable& table) {
  add_operator(table, "resize",
               "images size interpolation antialias crop_to_aspect_ratio pad_to_aspect_ratio "
               "fill_mode fill_value data_format",
               [](const Given& a) {
                 const K::image::ResizeOptions options{
                     .interpolation = a.text("interpolation", "bilinear"),
                     .antialias = a.flag("antialias"),
                     .crop_to_aspect_ratio = a.flag("crop_to_aspect_ratio"),
                     .pad_to_aspect_ratio = a.flag("pad_to_aspect_ratio"),
                     .fill_mode = a.text("fill_mode", "constant"),
                     .fill_value = a.number("fill_value", 0),
                     .data_format = data_format(a)};
                 return Tensors(K::image::resize(a.tensor("images"), pair(a, "size"), options));
               });
  using Colors = Tensor (*)(const Tensor&, const std::string&);
  const std::pair<const char*, Colors> colors[] = {{"hsv_to_rgb", K::image::hsv_to_rgb},
                                                   {"rgb_to_grayscale", K::image::rgb_to_grayscale},
                                                   {"rgb_to_hsv", K::image::rgb_to_hsv},
                                                   {"sobel_edges", K::image::sobel_edges}};
  for (const auto& [name, function] : colors) {
    add_operator(table, name, "images data_format", [f = function](const Given& a) {
      return Tensors(f(a.tensor("images"), data_format(a)));
    });
  }
  add_operator(table, "crop_images",
               "images top_cropping left_cropping bottom_cropping right_cropping target_height "
               "target_width data_format",
               [](const Given& a) {
                 return Tensors(K::image::crop_images(a.tensor("images"), margins(a, "_cropping"),
                                                      data_format(a)));
               });
  add_operator(table, "pad_images",
               "images top_padding left_padding bottom_padding right_padding target_height "
               "target_width data_format",
               [](const Given& a) {
                 return Tensors(K::image::pad_images(a.tensor("images"), margins(a, "_padding"),
                                                     data_format(a)));
               });
  add_operator(table, "extract_patches", "images size strides dilation_rate padding data_format",
               [](const Given& a) {
                 return Tensors(K::image::extract_patches(
                     a.tensor("images"), pair(a, "size"), optional_pair(a, "strides"),
                     pair(a, "dilation_rate"), a.text("padding", "valid"), data_format(a)));
               });
  add_operator(table, "gaussian_blur", "images kernel_size sigma data_format", [](const Given& a) {
    std::pair<double, double> sigma = {1, 1};
    const Config given = a.value("sigma");
    if (given.is_number()) sigma = {given.number(), given.number()};
    if (given.is_list() && !given.items().empty()) {
      sigma = {given.items().front().number(), given.items().back().number()};
    }
    return Tensors(K::image::gaussian_blur(a.tensor("images"), pair(a, "kernel_size", 3), sigma,
                                           data_format(a)));
  });
  add_operator(table, "scale_and_translate",
               "images output_shape scale translation spatial_dims method antialias",
               [](const Given& a) {
                 const auto reals = [&](const char* name) {
                   return a.tensor(name).cast(DType::kFloat64).to_vector<double>();
                 };
                 const std::vector<int64_t> dims = a.numbers("spatial_dims");
                 return Tensors(K::image::scale_and_translate(
                     a.tensor("images"), Shape(a.integers("output_shape")), reals("scale"),
                     reals("translation"), {dims.begin(), dims.end()}, a.text("method", "linear"),
                     !a.has("antialias") || a.flag("antialias")));
               });
  add_operator(table, "map_coordinates", "inputs coordinates order fill_mode fill_value",
               [](const Given& a) {
                 return Tensors(K::image::map_coordinates(
                     a.tensor("inputs"), a.tensor("coordinates"), a.int_or("order", 1),
                     a.text("fill_mode", "constant"), a.number("fill_value", 0)));
               });
  add_operator(table, "affine_transform",
               "images transform interpolation fill_mode fill_value data_format",
               [](const Given& a) {
                 return Tensors(K::image::affine_transform(
                     a.tensor("images"), a.tensor("transform"), a.text("interpolation", "bilinear"),
                     a.text("fill_mode", "constant"), a.number("fill_value", 0), data_format(a)));
               });
  add_operator(
      table, "perspective_transform",
      "images start_points end_points interpolation fill_value data_format", [](const Given& a) {
        return Tensors(K::image::perspective_transform(
            a.tensor("images"), a.tensor("start_points"), a.tensor("end_points"),
            a.text("interpolation", "bilinear"), a.number("fill_value", 0), data_format(a)));
      });
}

}  // namespace

void add_nn_operators(OperatorTable& table) {
  add_activations(table);
  add_normalizations(table);
  add_operator(table, "dot_product_attention",
               "query key value bias mask scale is_causal flash_attention attn_logits_soft_cap",
               [](const Given& a) { return Tensors(attention(a)); });
  add_losses(table);
  add_convolutions(table);
  add_images(table);
}

}  // namespace keel
