// Fourier transforms and sequences of keras.ops. Complex tensors are pairs of their real and
// imaginary parts. All functions have gradients. Transforms are computed in double.
#pragma once

#include <string>
#include <utility>

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// The real and the imaginary part.
using Complex = std::pair<Tensor, Tensor>;
// Returns the numbers with these magnitudes and angles.
Complex polar(const Tensor& abs_, const Tensor& angle);
// Convert between complex numbers and pairs of real numbers in the last axis, which view_as_complex
// requires to have dimension 2 (else ValueError).
Complex view_as_complex(const Tensor& x);
Tensor view_as_real(const Complex& x);

// Return Fourier transforms.
Complex fft(const Complex& x);    // along the last axis
Complex fft2(const Complex& x);   // along the last two axes
Complex ifft2(const Complex& x);  // the inverse of fft2()
// The fft_length / 2 + 1 first elements of the transform of real x, cut or padded to fft_length.
Complex rfft(const Tensor& x, std::optional<int64_t> fft_length = {});
// The inverse of rfft(). The length is even by default.
Tensor irfft(const Complex& x, std::optional<int64_t> fft_length = {});

// Returns the sequences of sequence_length elements that begin every sequence_stride elements of
// the last axis.
Tensor extract_sequences(const Tensor& x, int64_t sequence_length, int64_t sequence_stride);
// A window by name ("hann" or "hamming"), as a tensor of sequence_length, or none.
class SignalWindow {
 public:
  // Make no window, one by name, or one of these values.
  SignalWindow(std::nullopt_t) {}                              // NOLINT: implicit
  SignalWindow(std::string name) : name_(std::move(name)) {}   // NOLINT: implicit
  SignalWindow(const char* name) : name_(name) {}              // NOLINT: implicit
  SignalWindow(Tensor values) : values_(std::move(values)) {}  // NOLINT: implicit
  // Return the arguments of the constructor; empty if not given.
  const std::string& name() const { return name_; }
  const Tensor& values() const { return values_; }

 private:
  std::string name_;
  Tensor values_;
};
// Returns rfft() of windowed sequences of the last axis. With `center`, x is first reflected at
// both ends by fft_length / 2.
Complex stft(const Tensor& x, int64_t sequence_length, int64_t sequence_stride, int64_t fft_length,
             const SignalWindow& window = "hann", bool center = true);
// The inverse of stft(): the sum of overlapping sequences divided by that of squared windows.
Tensor istft(const Complex& x, int64_t sequence_length, int64_t sequence_stride, int64_t fft_length,
             std::optional<int64_t> length = {}, const SignalWindow& window = "hann",
             bool center = true);

}  // namespace keel::keras_ops
