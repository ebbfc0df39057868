#include "layers/core/dropout.h"

#include <algorithm>
#include <cmath>

#include "autodiff/ops.h"
#include "autodiff/replica_context.h"
#include "framework/parallel.h"

namespace keel {
namespace {

constexpr int64_t kGrain = int64_t{1} << 14;  // elements per block, a multiple of the four below
constexpr int kReplicaBits = 44;              // positions of a replica: 2^44 words of four

// x times a mask that is a function of the attributes alone. So its gradient is the same op on
// the gradient that comes in, and a tape keeps nothing.
class DropoutOp final : public Op {
 public:
  DropoutOp(RandomStream stream, uint64_t call, int replica, double rate)
      : Op("Dropout"), stream_(stream), call_(call), replica_(replica), rate_(rate) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    if (!is_floating(in[0].dtype)) {
      throw TypeError("Dropout: needs float32 or float64, received ", in[0].dtype);
    }
    return {in[0]};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor out = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(in[0].dtype(), "Dropout", [&]<class T>(const T&) {
      apply(in[0].data<T>().data(), out.mutable_data<T>().data(), out.size());
    });
    return {out};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {dispatch1(*this, {args.output_gradients[0].dense()})};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  template <class T>
  void apply(const T* x, T* y, int64_t size) const {
    const T factor = rate_ < 1 ? static_cast<T>(1 / (1 - rate_)) : T{0};
    // An element is dropped if its word is below the bound.
    const auto bound = static_cast<uint64_t>(std::ldexp(rate_, 32));
    const uint64_t first = static_cast<uint64_t>(replica_) << kReplicaBits;
    parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += 4) {
        const auto words = stream_.bits(first + i / 4, call_);
        const int64_t count = std::min<int64_t>(4, end - i);
        for (int64_t k = 0; k < count; ++k) y[i + k] = words[k] < bound ? T{0} : x[i + k] * factor;
      }
    });
  }

  const RandomStream stream_;
  const uint64_t call_;
  const int replica_;
  const double rate_;
};

}  // namespace

DropoutLayer::DropoutLayer(Options options)
    : TensorLayer(kClassName, options),
      options_(std::move(options)),
      stream_(next_random_stream(options_.seed)) {
  if (!(options_.rate >= 0 && options_.rate <= 1)) {
    throw ValueError("Dropout ", name(), ": rate must be in [0, 1], received ", options_.rate);
  }
}

void DropoutLayer::build_weights(const TensorSpec&) {
  calls_ = add_state(Variable(Tensor::zeros({1}, DType::kInt64),
                              {.name = "seed_generator_state",
                               .trainable = false,
                               .synchronization = VariableSynchronization::kOnRead,
                               .aggregation = VariableAggregation::kOnlyFirstReplica}));
}

Tensor DropoutLayer::call(const Tensor& x, const CallContext& context) {
  if (!context.training || options_.rate == 0) return x;
  int64_t call = 0;
  if (!x.is_symbolic()) {
    call = calls_.read().item<int64_t>();
    calls_.assign(Tensor::full<int64_t>({1}, call + 1));
  }
  const ReplicaContext* const replica = current_replica_context();
  return dispatch1(DropoutOp(stream_, static_cast<uint64_t>(call),
                             replica == nullptr ? 0 : replica->replica, options_.rate),
                   {x});
}

}  // namespace keel
