#include <keel/layers/core/internal/quantized_projection.h>

#include <absl/strings/match.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>

namespace keel {
namespace {

constexpr float kEpsilon = 1e-7F;
constexpr int kLowest4 = -8, kHighest4 = 7;
constexpr float kHighest8 = 127;

bool has(const std::string& labels, char label) { return absl::StrContains(labels, label); }

float rounded(float x, float low, float high) { return std::clamp(std::nearbyint(x), low, high); }

// Two codes share a byte, the first of them in the lower half.
int8_t packed(int first, int second) {
  return static_cast<int8_t>((first & 0xF) | (second & 0xF) << 4);
}
int unpacked(int8_t byte, bool second) {
  const int half = second ? byte >> 4 & 0xF : byte & 0xF;
  return half > kHighest4 ? half - 16 : half;
}

Tensor packed_rows(const std::vector<int>& codes, int64_t rows, int64_t columns) {
  const int64_t bytes = (columns + 1) / 2;
  Tensor out = Tensor::uninitialized({rows, bytes}, DType::kInt8);
  int8_t* to = out.mutable_data<int8_t>().data();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t b = 0; b < bytes; ++b) {
      const int* pair = codes.data() + r * columns + 2 * b;
      to[r * bytes + b] = packed(pair[0], 2 * b + 1 < columns ? pair[1] : 0);
    }
  }
  return out;
}

// Quantizes rows of n values to int8: values become codes, and the scale of each row is returned.
void quantize_rows(float* values, int64_t rows, int64_t n, float* scales) {
  parallel_for(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   float* row = values + r * n;
                   float most = 0;
                   for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(row[i]));
                   const float scale = kHighest8 / (most + kEpsilon);
                   for (int64_t i = 0; i < n; ++i) {
                     row[i] = rounded(row[i] * scale, -kHighest8, kHighest8);
                   }
                   scales[r] = scale;
                 }
               });
}

}  // namespace

QuantizedProjection::QuantizedProjection(ProjectionTerms terms, Shape kernel, bool flat)
    : terms_(std::move(terms)), kernel_(std::move(kernel)), flat_(flat) {
  for (int i = 0; i < kernel_.rank(); ++i) (reduced(i) ? rows_ : columns_) *= kernel_[i];
}

bool QuantizedProjection::reduced(int axis) const {
  return !has(terms_.output, terms_.kernel[static_cast<size_t>(axis)]);
}

Shape QuantizedProjection::scale_shape() const {
  if (flat_) return {columns_};
  Shape out;
  for (const char label : terms_.output) {
    const size_t at = terms_.kernel.find(label);
    out = out.inserted(out.rank(), at == std::string::npos ? 1 : kernel_[static_cast<int>(at)]);
  }
  return out;
}

template <class Fn>
void QuantizedProjection::for_each_element(const Fn& fn) const {
  // The scales are in the order of the output's axes.
  std::array<int64_t, Shape::kMaxRank> strides = {}, index = {};
  int64_t stride = 1;
  for (size_t o = terms_.output.size(); o-- > 0;) {
    const size_t at = terms_.kernel.find(terms_.output[o]);
    if (at == std::string::npos) continue;
    strides[at] = stride;
    stride *= kernel_[static_cast<int>(at)];
  }
  const int rank = kernel_.rank();
  const int64_t inner = kernel_[-1], step = strides[static_cast<size_t>(rank) - 1];
  int64_t base = 0;
  for (int64_t i = 0; i < kernel_.size(); i += inner) {
    for (int64_t k = 0; k < inner; ++k) fn(i + k, base + k * step);
    for (int axis = rank - 2; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      base += strides[a];
      if (++index[a] < kernel_[axis]) break;
      base -= strides[a] * kernel_[axis];
      index[a] = 0;
    }
  }
}

QuantizedKernel QuantizedProjection::empty(const DTypePolicy& policy) const {
  if (policy.int8_weights()) {
    return {.codes = Tensor::zeros(kernel_, DType::kInt8),
            .scale = Tensor::full<float>(scale_shape(), 1)};
  }
  const Tensor codes = Tensor::zeros({rows_, (columns_ + 1) / 2}, DType::kInt8);
  const int64_t block = policy.int4_block_size();
  if (block < 0) return {.codes = codes, .scale = Tensor::full<float>({columns_}, 1)};
  const Shape shape = {(rows_ + block - 1) / block, columns_};
  std::vector<float> groups(static_cast<size_t>(rows_));
  for (int64_t r = 0; r < rows_; ++r) groups[r] = static_cast<float>(r / block);
  return {.codes = codes,
          .scale = Tensor::full<float>(shape, 1),
          .zero_point = Tensor::zeros(shape, DType::kInt8),
          .groups = Tensor::from(groups, {rows_})};
}

QuantizedKernel QuantizedProjection::quantized(const Tensor& kernel, const DTypePolicy& policy,
                                               const std::string& caller) const {
  const std::span<const float> values = kernel.data<float>();
  if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
    throw ValueError(caller, ": the kernel cannot be quantized: it is not finite");
  }
  if (policy.int4_weights() && policy.int4_block_size() > 0) {
    return quantized_in_blocks(values.data(), policy.int4_block_size());
  }
  const bool int8 = policy.int8_weights();
  const float high = int8 ? kHighest8 : kHighest4, low = int8 ? -kHighest8 : kLowest4;
  std::vector<float> scales(static_cast<size_t>(columns_));
  // int4 kernels are matrices already; see the comment of the class.
  const auto visit = [&](const auto& fn) {
    if (int8) return for_each_element(fn);
    for (int64_t i = 0; i < rows_ * columns_; ++i) fn(i, i % columns_);
  };
  visit([&](int64_t i, int64_t s) { scales[s] = std::max(scales[s], std::abs(values[i])); });
  for (float& scale : scales) scale = high / (scale + kEpsilon);
  std::vector<int> codes(values.size());
  visit([&](int64_t i, int64_t s) {
    codes[i] = static_cast<int>(rounded(values[i] * scales[s], low, high));
  });
  if (!int8) {
    return {.codes = packed_rows(codes, rows_, columns_),
            .scale = Tensor::from(scales, {columns_})};
  }
  QuantizedKernel out = empty(policy);
  std::ranges::transform(codes, out.codes.mutable_data<int8_t>().begin(),
                         [](int code) { return static_cast<int8_t>(code); });
  out.scale = Tensor::from(scales, scale_shape());
  return out;
}

QuantizedKernel QuantizedProjection::quantized_in_blocks(const float* kernel, int64_t block) const {
  QuantizedKernel out = empty(DTypePolicy(DType::kFloat32).with_int4_weights(block));
  float* scales = out.scale.mutable_data<float>().data();
  int8_t* zeros = out.zero_point.mutable_data<int8_t>().data();
  std::vector<int> codes(static_cast<size_t>(rows_ * columns_));
  for (int64_t g = 0; g < out.scale.dim(0); ++g) {
    const int64_t first = g * block, end = std::min(rows_, first + block);
    for (int64_t c = 0; c < columns_; ++c) {
      float least = 0, most = 0;  // the range includes 0, which then has an exact code
      for (int64_t r = first; r < end; ++r) {
        least = std::min(least, kernel[r * columns_ + c]);
        most = std::max(most, kernel[r * columns_ + c]);
      }
      const float scale = std::max((most - least + kEpsilon) / (kHighest4 - kLowest4),
                                   std::numeric_limits<float>::min());
      const float zero = std::clamp(std::nearbyint(-least / scale) + kLowest4,
                                    static_cast<float>(kLowest4), static_cast<float>(kHighest4));
      scales[g * columns_ + c] = scale;
      zeros[g * columns_ + c] = static_cast<int8_t>(zero);
      for (int64_t r = first; r < end; ++r) {
        const float code = std::nearbyint(kernel[r * columns_ + c] / scale) + zero;
        codes[r * columns_ + c] = static_cast<int>(
            std::clamp(code, static_cast<float>(kLowest4), static_cast<float>(kHighest4)));
      }
    }
  }
  out.codes = packed_rows(codes, rows_, columns_);
  return out;
}

Tensor QuantizedProjection::dequantized(const QuantizedKernel& kernel,
                                        const DTypePolicy& policy) const {
  Tensor out = Tensor::uninitialized(kernel_, DType::kFloat32);
  float* to = out.mutable_data<float>().data();
  const int8_t* codes = kernel.codes.data<int8_t>().data();
  const float* scales = kernel.scale.data<float>().data();
  if (policy.int8_weights()) {
    for_each_element(
        [&](int64_t i, int64_t s) { to[i] = static_cast<float>(codes[i]) / scales[s]; });
    return out;
  }
  const int64_t bytes = (columns_ + 1) / 2;
  const bool blocks = policy.int4_block_size() > 0;
  const int8_t* zeros = blocks ? kernel.zero_point.data<int8_t>().data() : nullptr;
  const float* groups = blocks ? kernel.groups.data<float>().data() : nullptr;
  for (int64_t r = 0; r < rows_; ++r) {
    // Files may hold any number, including NaN.
    const int64_t group =
        blocks && groups[r] > 0
            ? std::min(static_cast<int64_t>(std::min(groups[r], 0x1p62F)), kernel.scale.dim(0) - 1)
            : 0;
    for (int64_t c = 0; c < columns_; ++c) {
      const int code = unpacked(codes[r * bytes + c / 2], c % 2 == 1);
      const int64_t s = group * columns_ + c;
      to[r * columns_ + c] = blocks ? static_cast<float>(code - zeros[s]) * scales[s]
                                    : static_cast<float>(code) / scales[s];
    }
  }
  return out;
}

Tensor QuantizedProjection::aligned(const Tensor& x, const std::string& from) const {
  std::vector<int> order;
  Shape shape;
  for (const char label : terms_.output) {
    const size_t at = from.find(label);
    if (at != std::string::npos) order.push_back(static_cast<int>(at));
    shape = shape.inserted(shape.rank(), at == std::string::npos ? 1 : x.dim(static_cast<int>(at)));
  }
  return ops::reshape(order.size() < 2 ? x : ops::transpose(x, order), shape);
}

Tensor QuantizedProjection::value(const Tensor& x, const QuantizedKernel& kernel,
                                  const DTypePolicy& policy, bool quantize_inputs) const {
  if (!quantize_inputs) return ops::einsum(terms_.equation(), x, dequantized(kernel, policy));
  // Brings the axes that are summed over to the end, where they make rows.
  std::string kept, summed;
  std::vector<int> order;
  for (const bool of_output : {true, false}) {
    for (size_t i = 0; i < terms_.input.size(); ++i) {
      if (has(terms_.output, terms_.input[i]) != of_output) continue;
      (of_output ? kept : summed) += terms_.input[i];
      order.push_back(static_cast<int>(i));
    }
  }
  const Tensor moved = order.size() < 2 ? x : ops::transpose(x, order);
  Tensor codes = Tensor::from(moved.data<float>(), moved.shape());
  const Shape positions = moved.shape().slice(0, static_cast<int>(kept.size()));
  Tensor scale = Tensor::uninitialized(positions, DType::kFloat32);
  quantize_rows(codes.mutable_data<float>().data(), positions.size(),
                positions.size() == 0 ? 0 : moved.size() / positions.size(),
                scale.mutable_data<float>().data());
  // Integers below 2^24 are exact in float32.
  const ProjectionTerms terms = {kept + summed, terms_.kernel, terms_.output};
  if (!policy.int8_weights()) {
    const Tensor y = ops::einsum(terms.equation(), codes, dequantized(kernel, policy));
    return y / aligned(scale, kept);
  }
  const Tensor y = ops::einsum(terms.equation(), codes, ops::cast(kernel.codes, DType::kFloat32));
  return y / (aligned(scale, kept) * kernel.scale);
}

Tensor QuantizedProjection::product(const Tensor& x, const QuantizedKernel& kernel,
                                    const DTypePolicy& policy, bool quantize_inputs) const {
  if (x.is_symbolic()) return ops::einsum(terms_.equation(), x, Tensor::zeros(kernel_));
  return custom_gradient({x}, [&] {
    return WithBackward{
        .outputs = {value(x, kernel, policy, quantize_inputs)},
        .backward = [x, kernel, policy,
                     self = *this](std::span<const Gradient> gradients) -> std::vector<Gradient> {
          GradientTape tape;
          tape.watch(x);
          const Tensor y = ops::einsum(self.terms_.equation(), x, self.dequantized(kernel, policy));
          return tape.input_gradient(y, {x}, {.output_gradient = gradients[0].dense()});
        }};
  })[0];
}

}  // namespace keel
