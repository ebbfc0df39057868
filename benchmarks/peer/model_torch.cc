#include <ATen/autocast_mode.h>
#include <chrono>
#include <numeric>
#include <torch/torch.h>

#include "benchmarks/peer/model_peer.h"

namespace keel::bench {
namespace {

using Clock = std::chrono::steady_clock;

at::Tensor copy_of(const std::vector<float>& values, at::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values.data()), shape).clone();
}

at::Tensor copy_of(const std::vector<int64_t>& values, at::IntArrayRef shape) {
  return torch::from_blob(const_cast<int64_t*>(values.data()), shape, torch::kInt64).clone();
}

// A batch in the form that the model takes.
struct Inputs {
  at::Tensor numbers, labels;
  std::vector<at::Tensor> ids;      // by column, or one for all: by sample, then by column
  std::vector<at::Tensor> offsets;  // offsets of bags
};

class Autocast {  // products in bfloat16 while alive
 public:
  explicit Autocast(bool on) : on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(true);
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::clear_cache();
    at::autocast::set_cpu_enabled(false);
  }

 private:
  const bool on_;
};

class TorchModel final : public ModelPeer {
 public:
  TorchModel(const ModelPeerOptions& options, const std::vector<ClickBatch>& batches,
             const StartValues& start)
      : work_(options.work), joint_(options.joint_table), training_(options.training) {
    for (const ClickBatch& batch : batches) inputs_.push_back(inputs_of(batch));
    make_towers(start);
    tables_ = make_tables(start, 0, work_.dim);
    if (work_.model == ModelKind::kWideAndDeep) linear_ = make_tables(start, kColumns, 1);
    if (training_) make_optimizers();
    make_pairs();
  }

  float train(int batch) override {
    const Inputs& in = inputs_[batch];
    const Clock::time_point begin = Clock::now();
    for (at::Tensor& p : parameters_) p.mutable_grad().reset();
    at::Tensor loss;
    {
      const Autocast products(work_.bfloat16);
      const std::vector<at::Tensor> found = look_up(tables_, in);
      const std::vector<at::Tensor> linear = look_up(linear_, in);
      mark(split_.lookup, begin);
      loss = at::binary_cross_entropy_with_logits(
          logits(in, found, linear).squeeze(1).to(torch::kFloat32), in.labels);
    }
    const Clock::time_point forward = mark(split_.forward, begin);
    split_.forward -= split_.lookup;
    loss.backward();
    const Clock::time_point backward = mark(split_.backward, forward);
    dense_->step();
    sparse_->step();
    mark(split_.update, backward);
    return loss.item<float>();
  }

  StepSplit last_split() const override { return split_; }

  std::span<const float> predict(int batch) override {
    const c10::InferenceMode no_gradients;
    const Autocast products(work_.bfloat16);
    const Inputs& in = inputs_[batch];
    scores_ = at::sigmoid(logits(in, look_up(tables_, in), look_up(linear_, in)))
                  .to(torch::kFloat32)
                  .contiguous();
    return {scores_.data_ptr<float>(), static_cast<size_t>(scores_.numel())};
  }

 private:
  struct Dense {
    at::Tensor kernel, bias;  // [out, in] as torch has it
  };

  static Clock::time_point mark(double& seconds, Clock::time_point begin) {
    const Clock::time_point now = Clock::now();
    seconds = std::chrono::duration<double>(now - begin).count();
    return now;
  }

  Inputs inputs_of(const ClickBatch& batch) const {
    Inputs out;
    out.numbers = copy_of(batch.numbers, {batch.samples, kNumbers});
    out.labels = copy_of(batch.labels, {batch.samples});
    std::vector<at::Tensor> ids;
    int64_t first = 0;
    for (size_t c = 0; c < batch.ids.size(); ++c) {
      ids.push_back(copy_of(batch.ids[c], {batch.samples, work_.bag}) + (joint_ ? first : 0));
      first += work_.rows[c];
    }
    if (joint_) ids = {at::stack(ids, 1)};
    for (const at::Tensor& of_table : ids) {
      out.ids.push_back(of_table.reshape({-1}).contiguous());
      out.offsets.push_back(at::arange(0, out.ids.back().numel(), work_.bag, torch::kInt64));
    }
    return out;
  }

  void make_towers(const StartValues& start) {
    size_t next = 0;
    const auto dense = [&](int64_t in, int64_t out) {
      Dense layer = {copy_of(start.dense.at(next), {in, out}).t().contiguous(),
                     copy_of(start.dense.at(next + 1), {out})};
      next += 2;
      return layer;
    };
    const auto tower = [&](const Tower& of) {
      std::vector<Dense> out;
      int64_t in = of.input;
      for (int64_t width : of.widths) {
        out.push_back(dense(in, width));
        in = width;
      }
      return out;
    };
    const int64_t joined = top_tower(work_).input;
    if (work_.model == ModelKind::kDlrm) bottom_ = tower(bottom_tower(work_));
    if (work_.model == ModelKind::kDcn) cross_ = {dense(joined, joined), dense(joined, joined)};
    top_ = tower(top_tower(work_));
    if (work_.model == ModelKind::kWideAndDeep) wide_ = {dense(kNumbers, 1)};
    for (auto* layers : {&bottom_, &cross_, &top_, &wide_}) {
      for (Dense& layer : *layers) {
        parameters_.push_back(layer.kernel.set_requires_grad(training_));
        parameters_.push_back(layer.bias.set_requires_grad(training_));
      }
    }
    dense_parameters_ = parameters_.size();
  }

  std::vector<at::Tensor> make_tables(const StartValues& start, int64_t first, int64_t dim) {
    std::vector<at::Tensor> out;
    int64_t total = 0;
    for (int64_t rows : work_.rows) total += rows;
    if (joint_) out.push_back(at::empty({total, dim}));
    int64_t row = 0;
    for (size_t c = 0; c < work_.rows.size(); ++c) {
      const std::vector<float>& values = start.tables.at(first + c);
      if (joint_) {
        std::copy(values.begin(), values.end(), out[0].data_ptr<float>() + row * dim);
      } else {
        out.push_back(copy_of(values, {work_.rows[c], dim}));
      }
      row += work_.rows[c];
    }
    for (at::Tensor& table : out) parameters_.push_back(table.set_requires_grad(training_));
    return out;
  }

  void make_optimizers() {
    const auto middle = parameters_.begin() + static_cast<int64_t>(dense_parameters_);
    const std::vector<at::Tensor> dense(parameters_.begin(), middle);
    const std::vector<at::Tensor> sparse(middle, parameters_.end());
    dense_ =
        std::make_unique<torch::optim::SGD>(dense, torch::optim::SGDOptions(work_.learning_rate));
    if (work_.adagrad) {
      sparse_ = std::make_unique<torch::optim::Adagrad>(
          sparse, torch::optim::AdagradOptions(work_.learning_rate)
                      .initial_accumulator_value(0.1)
                      .eps(1e-7));
    } else {
      sparse_ = std::make_unique<torch::optim::SGD>(sparse,
                                                    torch::optim::SGDOptions(work_.learning_rate));
    }
  }

  // The positions of the pairs i > j in the matrix of all products.
  void make_pairs() {
    constexpr int64_t kVectors = kColumns + 1;
    std::vector<int64_t> at;
    for (int64_t i = 1; i < kVectors; ++i) {
      for (int64_t j = 0; j < i; ++j) at.push_back(i * kVectors + j);
    }
    pairs_ = copy_of(at, {static_cast<int64_t>(at.size())});
  }

  // Returns the concatenated rows, [samples, kColumns * dim].
  std::vector<at::Tensor> look_up(const std::vector<at::Tensor>& tables, const Inputs& in) const {
    std::vector<at::Tensor> found;
    for (size_t t = 0; t < tables.size(); ++t) {
      found.push_back(std::get<0>(at::embedding_bag(tables[t], in.ids[t], in.offsets[t],
                                                    /*scale_grad_by_freq=*/false, /*mode=*/0,
                                                    /*sparse=*/true)));
      if (joint_) found.back() = found.back().view({in.numbers.size(0), -1});
    }
    return found;
  }

  static at::Tensor run(const std::vector<Dense>& tower, at::Tensor x, bool last_is_linear) {
    for (size_t i = 0; i < tower.size(); ++i) {
      x = at::linear(x, tower[i].kernel, tower[i].bias);
      if (i + 1 < tower.size() || !last_is_linear) x = at::relu(x);
    }
    return x;
  }

  at::Tensor logits(const Inputs& in, std::vector<at::Tensor> found,
                    const std::vector<at::Tensor>& linear) const {
    const int64_t samples = in.numbers.size(0);
    if (work_.model == ModelKind::kDlrm) {
      const at::Tensor x = run(bottom_, in.numbers, false);
      found.insert(found.begin(), x);
      const at::Tensor all = at::cat(found, 1).view({samples, kColumns + 1, work_.dim});
      const at::Tensor products = at::bmm(all, all.transpose(1, 2)).view({samples, -1});
      return run(top_, at::cat({x, products.index_select(1, pairs_)}, 1), true);
    }
    found.push_back(in.numbers);
    const at::Tensor joined = at::cat(found, 1);
    at::Tensor x = joined;
    for (const Dense& layer : cross_) {
      x = at::addcmul(x, joined, at::linear(x, layer.kernel, layer.bias));
    }
    const at::Tensor deep = run(top_, x, true);
    if (linear.empty()) return deep;
    return deep + at::cat(linear, 1).sum(1, /*keepdim=*/true) + run(wide_, in.numbers, true);
  }

  const ClickWork work_;
  const bool joint_, training_;
  std::vector<Inputs> inputs_;
  std::vector<Dense> bottom_, cross_, top_, wide_;
  std::vector<at::Tensor> tables_, linear_;
  std::vector<at::Tensor> parameters_;  // dense ones first
  size_t dense_parameters_ = 0;
  std::unique_ptr<torch::optim::Optimizer> dense_, sparse_;
  at::Tensor pairs_, scores_;
  StepSplit split_;
};

}  // namespace

std::unique_ptr<ModelPeer> make_model_peer(const ModelPeerOptions& options,
                                           const std::vector<ClickBatch>& batches,
                                           const StartValues& start) {
  return std::make_unique<TorchModel>(options, batches, start);
}

}  // namespace keel::bench
