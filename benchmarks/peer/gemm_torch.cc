#include <torch/torch.h>

#include "benchmarks/peer/gemm_peer.h"

namespace keel::bench {
namespace {

class TorchGemm final : public GemmPeer {
 public:
  TorchGemm(const GemmShape& shape, bool bfloat16) : shape_(shape), bfloat16_(bfloat16) {}

  void bind(const float* a, const float* b, const float* bias, float* c) override {
    a_ = operand(a, shape_.m, shape_.k, shape_.transpose_a);
    b_ = operand(b, shape_.k, shape_.n, shape_.transpose_b);
    if (bias != nullptr) bias_ = torch::from_blob(const_cast<float*>(bias), {shape_.n});
    c_ = out_ = torch::from_blob(c, {shape_.m, shape_.n});
    if (!bfloat16_) return;
    for (at::Tensor* t : {&a_, &b_, &bias_, &out_}) {
      if (t->defined()) *t = t->to(torch::kBFloat16);
    }
  }

  void store() override {
    if (bfloat16_) c_.copy_(out_);
  }

  void run() override {
    const torch::NoGradGuard no_gradients;
    if (bias_.defined()) {
      at::addmm_out(out_, bias_, a_, b_);
    } else {
      at::mm_out(out_, a_, b_);
    }
  }

 private:
  static at::Tensor operand(const float* values, int64_t rows, int64_t columns, bool transpose) {
    float* memory = const_cast<float*>(values);  // at::Tensor knows no other
    return transpose ? torch::from_blob(memory, {columns, rows}).t()
                     : torch::from_blob(memory, {rows, columns});
  }

  const GemmShape shape_;
  const bool bfloat16_;
  at::Tensor a_, b_, bias_, c_, out_;
};

}  // namespace

std::unique_ptr<GemmPeer> make_gemm_peer(const GemmShape& shape, bool bfloat16) {
  return std::make_unique<TorchGemm>(shape, bfloat16);
}

}  // namespace keel::bench
