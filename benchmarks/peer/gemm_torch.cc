#include <torch/torch.h>

#include "benchmarks/peer/gemm_peer.h"

namespace keel::bench {
namespace {

class TorchGemm final : public GemmPeer {
 public:
  explicit TorchGemm(const GemmShape& shape) : shape_(shape) {}

  void bind(const float* a, const float* b, const float* bias, float* c) override {
    a_ = operand(a, shape_.m, shape_.k, shape_.transpose_a);
    b_ = operand(b, shape_.k, shape_.n, shape_.transpose_b);
    if (bias != nullptr) bias_ = torch::from_blob(const_cast<float*>(bias), {shape_.n});
    c_ = torch::from_blob(c, {shape_.m, shape_.n});
  }

  void run() override {
    const torch::NoGradGuard no_gradients;
    if (bias_.defined()) {
      at::addmm_out(c_, bias_, a_, b_);
    } else {
      at::mm_out(c_, a_, b_);
    }
  }

 private:
  static at::Tensor operand(const float* values, int64_t rows, int64_t columns, bool transpose) {
    float* memory = const_cast<float*>(values);  // at::Tensor knows no other
    return transpose ? torch::from_blob(memory, {columns, rows}).t()
                     : torch::from_blob(memory, {rows, columns});
  }

  const GemmShape shape_;
  at::Tensor a_, b_, bias_, c_;
};

}  // namespace

std::unique_ptr<GemmPeer> make_gemm_peer(const GemmShape& shape) {
  return std::make_unique<TorchGemm>(shape);
}

}  // namespace keel::bench
