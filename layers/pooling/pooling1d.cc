#include <keel/layers/pooling/pooling1d.h>

#include <algorithm>

#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/data_format.h>

namespace keel {

Pooling1DLayer::Pooling1DLayer(const char* class_name, Options options)
    : TensorLayer(class_name, options),
      options_(std::move(options)),
      channels_last_(
          is_channels_last(options_.data_format, std::string(class_name) + " " + name())) {
  if (options_.pool_size <= 0 || options_.strides.value_or(1) <= 0) {
    throw ValueError(class_name, " ", name(), ": pool_size and strides must be positive, received ",
                     int64_t{options_.pool_size}, " and ", int64_t{options_.strides.value_or(1)});
  }
  if (options_.padding != "valid" && options_.padding != "same") {
    throw ValueError(class_name, " ", name(), ": padding must be 'valid' or 'same', received '",
                     options_.padding, "'");
  }
}

Config Pooling1DLayer::get_config() const {
  Options written = options_;
  written.strides = options_.strides.value_or(options_.pool_size);
  return to_config(written);
}

Pooling1DLayer::Windows Pooling1DLayer::windows_of(int64_t steps) const {
  Windows out = {.steps = steps,
                 .size = options_.pool_size,
                 .stride = options_.strides.value_or(options_.pool_size)};
  if (steps == kUnknown) {
    out.count = kUnknown;
  } else if (options_.padding == "same") {
    out.count = (steps + out.stride - 1) / out.stride;
    out.before = std::max<int64_t>(0, (out.count - 1) * out.stride + out.size - steps) / 2;
  } else {
    out.count = steps < out.size ? 0 : (steps - out.size) / out.stride + 1;
  }
  return out;
}

std::vector<Tensor> Pooling1DLayer::elements_of(const Tensor& x, const Windows& windows) const {
  // Pads the sequence so that it can be reshaped to [windows, stride]; element k of all windows is
  // then the first column of the sequence shifted by k.
  const int64_t run = windows.count * windows.stride;
  const int64_t after = std::max<int64_t>(0, windows.size - 1 + run - windows.before - x.dim(1));
  Tensor padded = x;
  const auto extend = [&](int64_t steps, bool front) {
    if (steps == 0) return;
    const Tensor more = Tensor::full<double>({x.dim(0), steps, x.dim(2)}, beyond()).cast(x.dtype());
    padded = front ? ops::concat({more, padded}, 1) : ops::concat({padded, more}, 1);
  };
  extend(windows.before, true);
  extend(after, false);
  std::vector<Tensor> out;
  for (int64_t k = 0; k < windows.size; ++k) {
    const Tensor runs = ops::reshape(ops::slice(padded, 1, k, run),
                                     {x.dim(0), windows.count, windows.stride, x.dim(2)});
    out.push_back(ops::squeeze(ops::slice(runs, 2, 0, 1), 2));
  }
  return out;
}

Tensor Pooling1DLayer::call(const Tensor& input, const CallContext&) {
  if (input.rank() != 3) {
    throw ValueError(class_name(), " ", name(), ": input must have rank 3, received shape ",
                     input.shape());
  }
  const Tensor x = as_dtype(input, dtype());
  const int steps_axis = channels_last_ ? 1 : 2;
  const Windows windows = windows_of(x.dim(steps_axis));
  if (windows.count == 0) {
    throw ValueError(class_name(), " ", name(), ": a window of ", windows.size,
                     " steps does not fit into an input of shape ", input.shape(),
                     "; pass longer inputs or pad them");
  }
  if (x.is_symbolic()) {
    return Tensor::symbolic(
        {.shape = x.shape().with(steps_axis, windows.count), .dtype = x.dtype()});
  }
  if (channels_last_) return pool(elements_of(x, windows), windows);
  const Tensor y = pool(elements_of(ops::transpose(x, {0, 2, 1}), windows), windows);
  return ops::transpose(y, {0, 2, 1});
}

}  // namespace keel
