#include <keel/layers/training/compile/internal/compiled_loss.h>

#include <absl/strings/str_cat.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/internal/cast.h>

namespace keel {
namespace {

constexpr char kCompile[] = "Model.compile";

// Sums counts and weights, which need no gradient, over the replicas.
Tensor sum_over_replicas(const Tensor& numbers, const GlobalBatch& batch) {
  if (batch.communicator == nullptr) return numbers;
  const NoGradient pause;
  Tensor sums = numbers.cast(DType::kFloat32).clone();
  distribute::all_reduce_sum(*batch.communicator, sums.mutable_data<float>());
  return as_dtype(sums, numbers.dtype());
}

// Returns the mean of the sample weights of the global batch; `weight` holds those of this replica.
double mean_weight(const Tensor& weight, const GlobalBatch& batch) {
  if (weight.rank() == 0) return weight.cast(DType::kFloat64).item<double>();
  const NoGradient pause;
  const Tensor sum = sum_over_replicas(ops::sum(as_dtype(weight, DType::kFloat64)), batch);
  const int64_t count = batch.rows * weight.shape().slice(1, weight.rank()).size();
  return count == 0 ? 1 : sum.item<double>() / static_cast<double>(count);
}

// Returns the sum of this replica's losses divided by the divisor of the global batch, so that the
// shares of all replicas add up to the loss of the global batch.
Tensor share_of(const Loss& loss, const Tensor& label, const Tensor& prediction,
                const Tensor& weight, const GlobalBatch& batch) {
  const Tensor losses = loss.weighted(label, prediction, weight, [&](const Tensor& numbers) {
    return sum_over_replicas(numbers, batch);
  });
  const bool by_weights = weight && loss.reduction() == Reduction::kMeanWithSampleWeight;
  const double mean = by_weights ? mean_weight(weight, batch) : 1;
  return ops::scale(ops::sum(losses), 1 / loss.divisor(losses.shape(), batch.rows, mean));
}

}  // namespace

CompiledLoss::CompiledLoss(LossesArgument losses, LossWeights weights)
    : losses_(std::move(losses)), loss_weights_(std::move(weights)) {
  for (const LossArgument& loss : losses_.values()) {
    if (loss && loss.shared()->reduction() == Reduction::kNone) {
      throw ValueError(kCompile,
                       ": a loss with reduction 'none' is not a scalar and cannot be minimized; "
                       "use another reduction");
    }
  }
}

void CompiledLoss::resolve(const std::vector<std::string>& outputs) {
  std::vector<LossArgument> by_output =
      losses_.resolve(absl::StrCat(kCompile, ", loss"), outputs, LossArgument());
  weights_ = loss_weights_.resolve(absl::StrCat(kCompile, ", loss_weights"), outputs, 1);
  by_output_ = std::move(by_output);
  outputs_ = outputs;
}

std::vector<CompiledLoss::Term> CompiledLoss::shares(const char* caller,
                                                     std::span<const Tensor> labels,
                                                     std::span<const Tensor> predictions,
                                                     std::span<const Tensor> weights,
                                                     const GlobalBatch& batch) const {
  std::vector<Term> out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!by_output_[i]) continue;
    if (!labels[i]) {
      throw ValueError(
          caller, ": output '", outputs_[i],
          "' has a loss, but the data has no labels for it; pass labels or remove the loss");
    }
    out.push_back(
        {.output = outputs_[i],
         .weight = weights_[i],
         .share = share_of(*by_output_[i].shared(), labels[i], predictions[i], weights[i], batch)});
  }
  return out;
}

}  // namespace keel
