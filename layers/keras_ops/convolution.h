// Convolutions and pooling of keras.ops over one to three spatial axes. Inputs are [batch, spatial
// axes ..., channels], or [batch, channels, spatial axes ...] with data_format "channels_first".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel::keras_ops {

// One number for all spatial axes, or one for each.
class SpatialSizes {
 public:
  // Make sizes of one number, or of one for each axis.
  SpatialSizes(int64_t all) : values_{all} {}                                // NOLINT: implicit
  SpatialSizes(int all) : values_{all} {}                                    // NOLINT: implicit
  SpatialSizes(std::vector<int64_t> values) : values_(std::move(values)) {}  // NOLINT: implicit
  SpatialSizes(std::initializer_list<int64_t> values) : values_(values) {}   // NOLINT: implicit
  // Returns the numbers of `axes` axes. Throws ValueError if there are others.
  std::vector<int64_t> of(int axes) const;

 private:
  std::vector<int64_t> values_;
};

// Returns the convolution with kernels [spatial sizes ..., channels / groups, filters]. `padding`
// is "valid" or "same".
Tensor conv(const Tensor& inputs, const Tensor& kernel, const SpatialSizes& strides = 1,
            const std::string& padding = "valid", const std::string& data_format = "channels_last",
            const SpatialSizes& dilation_rate = 1);
// Returns the convolutions of single channels, kernels [spatial sizes ..., channels, multiplier];
// separable_conv() then applies a convolution of size 1.
Tensor depthwise_conv(const Tensor& inputs, const Tensor& kernel, const SpatialSizes& strides = 1,
                      const std::string& padding = "valid",
                      const std::string& data_format = "channels_last",
                      const SpatialSizes& dilation_rate = 1);
Tensor separable_conv(const Tensor& inputs, const Tensor& depthwise_kernel,
                      const Tensor& pointwise_kernel, const SpatialSizes& strides = 1,
                      const std::string& padding = "valid",
                      const std::string& data_format = "channels_last",
                      const SpatialSizes& dilation_rate = 1);
// Returns the transposed convolution with kernels [spatial sizes ..., filters, channels].
Tensor conv_transpose(const Tensor& inputs, const Tensor& kernel, const SpatialSizes& strides = 1,
                      const std::string& padding = "valid",
                      const std::optional<SpatialSizes>& output_padding = {},
                      const std::string& data_format = "channels_last",
                      const SpatialSizes& dilation_rate = 1);

// Return the greatest element or the mean of each window; `strides` is pool_size by default.
Tensor max_pool(const Tensor& inputs, const SpatialSizes& pool_size,
                const std::optional<SpatialSizes>& strides = {},
                const std::string& padding = "valid",
                const std::string& data_format = "channels_last");
Tensor average_pool(const Tensor& inputs, const SpatialSizes& pool_size,
                    const std::optional<SpatialSizes>& strides = {},
                    const std::string& padding = "valid",
                    const std::string& data_format = "channels_last");
// Return those of output_size windows that cover the input evenly.
Tensor adaptive_max_pool(const Tensor& inputs, const SpatialSizes& output_size,
                         const std::string& data_format = "channels_last");
Tensor adaptive_average_pool(const Tensor& inputs, const SpatialSizes& output_size,
                             const std::string& data_format = "channels_last");

}  // namespace keel::keras_ops
