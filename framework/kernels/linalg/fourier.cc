#include <unsupported/Eigen/FFT>

#include <keel/framework/kernels/linalg/linalg.h>

namespace keel::kernels {

void fourier(const std::complex<double>* in, int64_t n, bool backward, std::complex<double>* out) {
  Eigen::FFT<double> fft;
  fft.SetFlag(Eigen::FFT<double>::Unscaled);
  if (backward) {
    fft.inv(out, in, n);
  } else {
    fft.fwd(out, in, n);
  }
}

}  // namespace keel::kernels
