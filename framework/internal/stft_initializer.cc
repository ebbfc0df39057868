#include <keel/framework/internal/stft_initializer.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/internal/window_functions.h>

namespace keel::internal {
namespace {

// The real or the imaginary part of the short-time Fourier transform, as the kernel of a
// convolution.
class STFTFunction final : public InitializerFunction {
 public:
  explicit STFTFunction(STFTOptions options) : options_(std::move(options)) {
    if (options_.side != "real" && options_.side != "imag") {
      throw ValueError("STFT: side must be real or imag, received '", options_.side, "'");
    }
    if (options_.scaling && *options_.scaling != "density" && *options_.scaling != "spectrum") {
      throw ValueError("STFT: scaling must be density, spectrum or none, received '",
                       *options_.scaling, "'");
    }
    if (options_.window && !cosine_window(*options_.window, 2, true)) {
      throw ValueError("STFT: window must be boxcar, hann, hamming, blackman or none, received '",
                       *options_.window, "'");
    }
  }
  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream&) const override {
    if (shape.rank() != 3) {
      throw ValueError("STFT: the shape must be [frame_length, 1, bins], received ", shape);
    }
    const std::vector<double> window = scaled_window(shape[0]);
    const int64_t bins = shape[2], period = std::max<int64_t>(1, 2 * (bins - 1));
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      const int64_t time = (first + i) / (shape[1] * bins), bin = (first + i) % bins;
      // The product is reduced to one period as an integer, where it is exact.
      const double angle = -2 * std::numbers::pi * static_cast<double>(time * bin % period) /
                           static_cast<double>(period);
      out[i] = static_cast<float>(window[time] *
                                  (options_.side == "real" ? math::cos(angle) : math::sin(angle)));
    }
  }
  std::string class_name() const override { return "STFT"; }
  Config get_config() const override { return to_config(options_); }

 private:
  std::vector<double> scaled_window(int64_t n) const {
    if (!options_.window) return std::vector<double>(n, 1);
    std::vector<double> out = *cosine_window(*options_.window, n, options_.periodic);
    if (!options_.scaling) return out;
    double sum = 0, squares = 0;
    for (const double x : out) {
      sum += std::abs(x);
      squares += x * x;
    }
    const double scale = *options_.scaling == "density" ? std::sqrt(squares) : sum;
    for (double& x : out) x /= scale;
    return out;
  }

  const STFTOptions options_;
};

}  // namespace

std::shared_ptr<InitializerFunction> stft_initializer(const STFTOptions& options) {
  return std::make_shared<STFTFunction>(options);
}

}  // namespace keel::internal
