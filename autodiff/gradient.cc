#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>

namespace keel {
namespace {

// Computes sum += x in place if that is not observable: no tape records, and no other handle shares
// the sum's buffer. Returns false if it did nothing.
bool add_in_place(Tensor& sum, const Tensor& x) {
  if (GradientTape::any_active() || sum.is_symbolic() || x.is_symbolic() || !sum.unique() ||
      sum.shape() != x.shape() || sum.dtype() != x.dtype() || !is_floating(sum.dtype())) {
    return false;
  }
  visit_floating(sum.dtype(), "Gradient.add", [&]<class T>(const T&) {
    constexpr int64_t kGrain = 16384;
    const T* from = x.data<T>().data();
    T* to = sum.mutable_data<T>().data();
    parallel_for(sum.size(), kGrain, [&](int64_t begin, int64_t end) {
      const T* a = from;
      T* __restrict out = to;
      for (int64_t i = begin; i < end; ++i) out[i] += a[i];
    });
  });
  return true;
}

}  // namespace

Gradient::Gradient(IndexedSlices s) : value_(std::move(s)) {}
Gradient::~Gradient() = default;
Gradient::Gradient(const Gradient& other) = default;
Gradient::Gradient(Gradient&& other) noexcept = default;
Gradient& Gradient::operator=(const Gradient& other) = default;
Gradient& Gradient::operator=(Gradient&& other) noexcept = default;

const IndexedSlices& Gradient::slices() const {
  if (!is_slices())
    throw RuntimeError("Gradient.slices: the gradient is not IndexedSlices; check is_slices()");
  return std::get<IndexedSlices>(value_);
}

Tensor Gradient::dense() const {
  if (!*this)
    throw RuntimeError("Gradient.dense: the gradient is empty; check it with operator bool first");
  if (!is_slices()) return std::get<Tensor>(value_);
  const IndexedSlices& s = slices();
  return ops::scatter_sum(s.ids, s.values, s.dense_shape);
}

void Gradient::add(const Gradient& other) {
  if (!other) return;
  if (!*this) {
    *this = other;
  } else if (is_slices() && other.is_slices()) {
    const IndexedSlices& a = slices();
    const IndexedSlices& b = other.slices();
    value_ = IndexedSlices{.ids = ops::concat({a.ids, b.ids}, 0),
                           .values = ops::concat({a.values, b.values}, 0),
                           .dense_shape = a.dense_shape};
  } else if (is_slices() || !add_in_place(std::get<Tensor>(value_), other.dense())) {
    value_ = ops::add(dense(), other.dense());
  }
}

}  // namespace keel

template std::vector<keel::Gradient>::~vector();
template std::vector<keel::Gradient>::vector(const std::vector<keel::Gradient>& other);
