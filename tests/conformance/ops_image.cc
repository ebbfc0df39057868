#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace I = keras_ops::image;
using keras_ops::Pair;
using Results = std::vector<Tensor>;

std::string format_of(OpArguments& a) { return a.string("data_format", "channels_last"); }

OpAdapter colors(Tensor (*f)(const Tensor&, const std::string&)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("images"), format_of(a))}; };
}
I::Margins margins(OpArguments& a, const std::string& suffix) {
  return {.top = a.maybe_integer("top_" + suffix),
          .left = a.maybe_integer("left_" + suffix),
          .bottom = a.maybe_integer("bottom_" + suffix),
          .right = a.maybe_integer("right_" + suffix),
          .target_height = a.maybe_integer("target_height"),
          .target_width = a.maybe_integer("target_width")};
}
std::optional<Pair> strides_of(OpArguments& a) {
  return a.has("strides") ? std::optional(a.pair("strides", 1)) : std::nullopt;
}
std::vector<double> doubles(const Tensor& x) { return x.cast(DType::kFloat64).to_vector<double>(); }

Results resize(OpArguments& a) {
  return {I::resize(a.tensor("images"), a.pair("size", 1),
                    {.interpolation = a.string("interpolation", "bilinear"),
                     .antialias = a.boolean("antialias", false),
                     .crop_to_aspect_ratio = a.boolean("crop_to_aspect_ratio", false),
                     .pad_to_aspect_ratio = a.boolean("pad_to_aspect_ratio", false),
                     .fill_mode = a.string("fill_mode", "constant"),
                     .fill_value = a.number("fill_value", 0),
                     .data_format = format_of(a)})};
}
Results scale_and_translate(OpArguments& a) {
  return {I::scale_and_translate(a.tensor("images"), a.shape("output_shape"),
                                 doubles(a.tensor("scale")), doubles(a.tensor("translation")),
                                 a.axes_list("spatial_dims"), a.string("method", ""),
                                 a.boolean("antialias", true))};
}
Results extract_patches(OpArguments& a) {
  return {I::extract_patches(a.tensor("images"), a.pair("size", 1), strides_of(a),
                             a.pair("dilation_rate", 1), a.string("padding", "valid"),
                             format_of(a))};
}
Results extract_patches_3d(OpArguments& a) {
  std::vector<int64_t> size = a.integers("size");
  if (size.size() == 1) size.resize(3, size[0]);
  std::optional<std::vector<int64_t>> strides;
  if (a.has("strides")) strides = a.integers("strides");
  return {I::extract_patches_3d(a.tensor("volumes"), size, strides, a.integer("dilation_rate", 1),
                                a.string("padding", "valid"), format_of(a))};
}
Results reconstruct_patches(OpArguments& a) {
  return {I::reconstruct_patches(a.tensor("patches"), a.pair("size", 1), a.pair("output_size", 1),
                                 strides_of(a), a.string("padding", "valid"), format_of(a))};
}
Results gaussian_blur(OpArguments& a) {
  std::pair<double, double> sigma = {1, 1};
  if (a.has("sigma")) {
    const Config::List& values = a.config("sigma").items();
    sigma = {values.at(0).number(), values.at(1).number()};
  }
  return {I::gaussian_blur(a.tensor("images"), a.pair("kernel_size", 3), sigma, format_of(a))};
}
Results ssim(OpArguments& a) {
  return {I::ssim(a.tensor("image1"), a.tensor("image2"), a.number("max_val", 1),
                  a.integer("filter_size", 11), a.number("filter_sigma", 1.5), a.number("k1", 0.01),
                  a.number("k2", 0.03), format_of(a))};
}
Results map_coordinates(OpArguments& a) {
  return {I::map_coordinates(a.tensor("inputs"), a.tensor("coordinates"),
                             static_cast<int>(a.integer("order", 1)),
                             a.string("fill_mode", "constant"), a.number("fill_value", 0))};
}
Results affine_transform(OpArguments& a) {
  return {I::affine_transform(
      a.tensor("images"), a.tensor("transform"), a.string("interpolation", "bilinear"),
      a.string("fill_mode", "constant"), a.number("fill_value", 0), format_of(a))};
}
Results perspective_transform(OpArguments& a) {
  return {I::perspective_transform(a.tensor("images"), a.tensor("start_points"),
                                   a.tensor("end_points"), a.string("interpolation", "bilinear"),
                                   a.number("fill_value", 0), format_of(a))};
}

}  // namespace

OpAdapters image_adapters() {
  return {{"image.resize", resize},
          {"image.scale_and_translate", scale_and_translate},
          {"image.crop_images",
           [](OpArguments& a) -> Results {
             return {I::crop_images(a.tensor("images"), margins(a, "cropping"), format_of(a))};
           }},
          {"image.pad_images",
           [](OpArguments& a) -> Results {
             return {I::pad_images(a.tensor("images"), margins(a, "padding"), format_of(a))};
           }},
          {"image.rgb_to_grayscale", colors(I::rgb_to_grayscale)},
          {"image.rgb_to_hsv", colors(I::rgb_to_hsv)},
          {"image.hsv_to_rgb", colors(I::hsv_to_rgb)},
          {"image.extract_patches", extract_patches},
          {"image.extract_patches_3d", extract_patches_3d},
          {"image.reconstruct_patches", reconstruct_patches},
          {"image.gaussian_blur", gaussian_blur},
          {"image.sobel_edges", colors(I::sobel_edges)},
          {"image.ssim", ssim},
          {"image.map_coordinates", map_coordinates},
          {"image.affine_transform", affine_transform},
          {"image.perspective_transform", perspective_transform}};
}

}  // namespace keel::conformance
