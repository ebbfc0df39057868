#include <keel/layers/regularization/internal/noise.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

constexpr int64_t kGrain = int64_t{1} << 14;  // elements per block, a multiple of 4 (see below)

// Computes y[i] = fn(i, whether i is kept). The random generator produces four words at a time; an
// element is dropped if its word is less than rate * 2^32.
template <class T, class Fn>
void for_each_element(const RandomNumbers& random, double rate, T* y, int64_t size, const Fn& fn) {
  const auto bound = static_cast<uint64_t>(std::ldexp(rate, 32));
  const uint64_t first = random.first / 4;
  parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += 4) {
      const auto words = random.stream.bits(first + i / 4);
      const int64_t count = std::min<int64_t>(4, end - i);
      for (int64_t k = 0; k < count; ++k) y[i + k] = fn(i + k, words[k] >= bound);
    }
  });
}

double scale_of_kept(double rate) { return rate < 1 ? 1 / (1 - rate) : 0; }

// Multiplies x by a mask that is determined by the attributes. The gradient is the same op applied
// to the output gradient, so the tape stores neither inputs nor outputs.
class DropoutOp final : public Op {
 public:
  DropoutOp(double rate, const RandomNumbers& random)
      : Op("Dropout"), rate_(rate), random_(random) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    if (!is_floating(in[0].dtype)) {
      throw TypeError("dropout: input must be float32 or float64, received ", in[0].dtype);
    }
    return {in[0]};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor out = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(in[0].dtype(), "dropout", [&]<class T>(const T&) {
      const T* x = in[0].data<T>().data();
      const T factor = static_cast<T>(scale_of_kept(rate_));
      for_each_element(random_, rate_, out.mutable_data<T>().data(), out.size(),
                       [=](int64_t i, bool keep) { return keep ? x[i] * factor : T{0}; });
    });
    return {out};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {dispatch1(*this, {args.output_gradients[0].dense()})};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  const double rate_;
  const RandomNumbers random_;
};

}  // namespace

namespace noise {

Tensor kept(const Shape& shape, DType dtype, double rate, const RandomNumbers& random) {
  Tensor out = Tensor::uninitialized(shape, dtype);
  visit_floating(dtype, "dropout", [&]<class T>(const T&) {
    for_each_element(random, rate, out.mutable_data<T>().data(), out.size(),
                     [](int64_t, bool keep) { return keep ? T{1} : T{0}; });
  });
  return out;
}

Tensor normal(const Shape& shape, DType dtype, double mean, double stddev,
              const RandomNumbers& random) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  random.stream.normal(out.mutable_data<float>(), random.first, static_cast<float>(mean),
                       static_cast<float>(stddev));
  return out.cast(dtype);
}

Tensor dropout(const Tensor& x, double rate, const RandomNumbers& random) {
  return dispatch1(DropoutOp(rate, random), {x});
}

Tensor dropout(const Tensor& x, double rate, const Shape& shape, const RandomNumbers& random) {
  return x * ops::scale(kept(shape, x.dtype(), rate, random), scale_of_kept(rate));
}

Shape shape_for(const Shape& x, const Shape& wanted, const std::string& caller) {
  Shape out = wanted;
  bool fits = wanted.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    if (out[i] == kUnknown) out = out.with(i, x[i]);
    fits = out[i] == 1 || out[i] == x[i];
  }
  if (!fits) {
    throw ValueError(caller, ": noise of shape ", wanted,
                     " cannot be broadcast to an input of shape ", x,
                     "; dimensions of noise_shape must be those of the input or 1");
  }
  return out;
}

void check_rate(double rate, bool below_one, const std::string& caller) {
  if (rate >= 0 && rate <= 1 && !(below_one && rate == 1)) return;
  throw ValueError(caller, ": rate must be in [0, 1", below_one ? ")" : "]", ", received ", rate);
}

void check_shape(const std::optional<Shape>& wanted, const std::string& caller) {
  if (wanted && std::ranges::count(wanted->dims(), 0) > 0) {
    throw ValueError(caller, ": dimensions of noise_shape must be positive or unknown, received ",
                     *wanted);
  }
}

}  // namespace noise

}  // namespace keel
