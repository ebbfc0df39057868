// SpatialLayout: where the spatial axes and the channels of an input are.
#pragma once

#include <string>
#include <vector>

#include <keel/autodiff/ops.h>
#include <keel/layers/internal/data_format.h>

namespace keel {

// The axes of a batch with `axes` spatial axes: [batch, spatial ..., channels] or, if not
// channels_last, [batch, channels, spatial ...].
struct SpatialLayout {
  int axes = 1;
  bool channels_last = true;

  int rank() const { return axes + 2; }
  int channel_axis() const { return channels_last ? axes + 1 : 1; }
  // Returns the position of spatial axis i.
  int spatial_axis(int i) const { return channels_last ? i + 1 : i + 2; }
  std::vector<int> spatial_axes() const {
    std::vector<int> out;
    for (int i = 0; i < axes; ++i) out.push_back(spatial_axis(i));
    return out;
  }
  // Throws ValueError, naming `caller`, for a shape of another rank.
  void check_rank(const Shape& input, const std::string& caller) const {
    if (input.rank() == rank()) return;
    throw ValueError(caller, ": input must have rank ", rank(), ", ",
                     channels_last ? "[batch, spatial axes ..., channels]"
                                   : "[batch, channels, spatial axes ...]",
                     ", received shape ", input);
  }

  // Returns x with channels last, and the inverse.
  Tensor to_channels_last(const Tensor& x) const {
    if (channels_last) return x;
    std::vector<int> order = {0};
    for (int i = 0; i < axes; ++i) order.push_back(i + 2);
    order.push_back(1);
    return ops::transpose(x, order);
  }
  Tensor from_channels_last(const Tensor& x) const {
    if (channels_last) return x;
    std::vector<int> order = {0, axes + 1};
    for (int i = 0; i < axes; ++i) order.push_back(i + 1);
    return ops::transpose(x, order);
  }
};

// Throws ValueError, naming `caller`, for an unknown data format.
inline SpatialLayout spatial_layout(int axes, const std::string& data_format,
                                    const std::string& caller) {
  return {.axes = axes, .channels_last = is_channels_last(data_format, caller)};
}

}  // namespace keel
