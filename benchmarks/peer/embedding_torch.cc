#include <torch/torch.h>

#include "benchmarks/peer/embedding_peer.h"

namespace keel::bench {
namespace {

using kernels::Bags;
using kernels::Combiner;

constexpr int64_t kSum = 0, kMean = 1;  // at::embedding_bag's modes

template <class T>
at::Tensor view(const T* values, at::IntArrayRef shape, at::ScalarType type) {
  return torch::from_blob(const_cast<T*>(values), shape, at::TensorOptions().dtype(type));
}

// A coalesced sparse gradient, and the rows of other tensors that it selects.
struct Touched {
  explicit Touched(const at::Tensor& gradient) {
    const at::Tensor once = gradient.coalesce();
    rows = once.indices()[0];
    values = once.values();
  }
  at::Tensor of(const at::Tensor& all) const { return all.index_select(0, rows); }
  void put(at::Tensor& all, const at::Tensor& part) const { all.index_copy_(0, rows, part); }

  at::Tensor rows, values;
};

class TorchEmbedding final : public EmbeddingPeer {
 public:
  explicit TorchEmbedding(const EmbeddingPeerOptions& options) : options_(options) {
    table_ = view(options.table, {options.rows, options.dim}, torch::kFloat32);
    for (int i = 0; i < slots_of(options.optimizer); ++i) {
      slots_[i] = view(options.slots[i], {options.rows, options.dim}, torch::kFloat32);
    }
    table_.set_requires_grad(true);
    if (options.optimizer == SparseOptimizer::kSgd) {
      optimizer_ = std::make_unique<torch::optim::SGD>(
          std::vector<at::Tensor>{table_}, torch::optim::SGDOptions(options.learning_rate));
    } else if (options.optimizer == SparseOptimizer::kAdagrad) {
      make_adagrad();
    }
  }

  const float* lookup(const Bags& bags) override {
    const torch::NoGradGuard no_gradients;
    pooled_ = pool(bags);
    return pooled_.data_ptr<float>();
  }

  void step(const Bags& bags, const float* gradient) override {
    const at::Tensor pooled = pool(bags);
    pooled.backward(view(gradient, {bags.samples, options_.dim}, torch::kFloat32));
    if (optimizer_ != nullptr) {
      optimizer_->step();
    } else {
      const torch::NoGradGuard no_gradients;
      const Touched touched(table_.grad());
      if (options_.optimizer == SparseOptimizer::kAdam) {
        adam(touched);
      } else {
        ftrl(touched);
      }
    }
    table_.mutable_grad().reset();
  }

 private:
  // torch::optim::Adagrad creates its accumulator itself. It is created for a table of one row and
  // then replaced by the shared one.
  void make_adagrad() {
    at::Tensor all = table_.data();
    table_.set_data(all.narrow(0, 0, 1));
    auto adagrad = std::make_unique<torch::optim::Adagrad>(
        std::vector<at::Tensor>{table_},
        torch::optim::AdagradOptions(options_.learning_rate).eps(1e-10));
    table_.set_data(all);
    for (auto& [key, state] : adagrad->state()) {
      static_cast<torch::optim::AdagradParamState&>(*state).sum(slots_[0]);
    }
    optimizer_ = std::move(adagrad);
  }

  at::Tensor pool(const Bags& bags) const {
    const int64_t ids = bags.splits[bags.samples];
    c10::optional<at::Tensor> weights;
    if (bags.weights != nullptr) weights = view(bags.weights, {ids}, torch::kFloat32);
    return std::get<0>(at::embedding_bag(
        table_, view(bags.ids, {ids}, torch::kInt64),
        view(bags.splits, {bags.samples + 1}, torch::kInt64), /*scale_grad_by_freq=*/false,
        options_.combiner == Combiner::kMean ? kMean : kSum, /*sparse=*/true, weights,
        /*include_last_offset=*/true));
  }

  void adam(const Touched& touched) {
    at::Tensor all = table_.data();
    const at::Tensor momentum = touched.of(slots_[0]).lerp_(touched.values, 1 - kAdamBeta1);
    const at::Tensor velocity = touched.of(slots_[1])
                                    .mul_(kAdamBeta2)
                                    .addcmul_(touched.values, touched.values, 1 - kAdamBeta2);
    touched.put(slots_[0], momentum);
    touched.put(slots_[1], velocity);
    const at::Tensor change = momentum.div(velocity.sqrt().add_(kAdamEpsilon));
    all.index_add_(0, touched.rows, change, -options_.learning_rate);
  }

  void ftrl(const Touched& touched) {
    at::Tensor all = table_.data();
    const at::Tensor root = touched.of(slots_[0]);
    const at::Tensor accumulator = root.addcmul(touched.values, touched.values);
    root.sqrt_();
    const at::Tensor new_root = accumulator.sqrt();
    const at::Tensor linear = touched.of(slots_[1]).add_(touched.values);
    linear.addcmul_(new_root.sub(root), touched.of(all), -1 / options_.learning_rate);
    touched.put(slots_[0], accumulator);
    touched.put(slots_[1], linear);
    touched.put(all, linear.div(new_root).mul_(-options_.learning_rate));
  }

  const EmbeddingPeerOptions options_;
  at::Tensor table_, slots_[2], pooled_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace

std::unique_ptr<EmbeddingPeer> make_embedding_peer(const EmbeddingPeerOptions& options) {
  return std::make_unique<TorchEmbedding>(options);
}

}  // namespace keel::bench
