#include <keel/layers/embedding/tables/internal/position_pool.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/embedding/gather.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>

namespace keel {
namespace {

constexpr int64_t kSamplesPerBlock = 256;

// The gradient of one sample with respect to the weights of its rows, where `out` is the pooled
// sample and `dy` its gradient, all of `dim` elements.
class WeightGradient {
 public:
  WeightGradient(kernels::Combiner combiner, std::span<const float> weights) : combiner_(combiner) {
    double sum = 0, squares = 0;
    for (const float w : weights) {
      sum += w;
      squares += static_cast<double>(w) * w;
    }
    divisor_ = combiner == kernels::Combiner::kSum    ? 1
               : combiner == kernels::Combiner::kMean ? static_cast<double>(static_cast<float>(sum))
                                                      : std::sqrt(squares);
  }
  // sum: dy r;  mean: dy (r - out) / sum of w;  sqrtn: (dy r - dy out w / |w|) / |w|.
  float of(float weight, const float* row, const float* out, const float* dy, int64_t dim) const {
    if (divisor_ == 0) return 0;
    double along_row = 0, along_out = 0;
    for (int64_t d = 0; d < dim; ++d) {
      along_row += static_cast<double>(dy[d]) * row[d];
      along_out += static_cast<double>(dy[d]) * out[d];
    }
    if (combiner_ == kernels::Combiner::kSum) return static_cast<float>(along_row);
    const double share = combiner_ == kernels::Combiner::kMean ? 1 : weight / divisor_;
    return static_cast<float>((along_row - share * along_out) / divisor_);
  }

 private:
  kernels::Combiner combiner_;
  double divisor_ = 1;
};

}  // namespace

PositionPool::PositionPool(std::string combiner, const FeatureBags& bags)
    : combiner_(std::move(combiner)),
      row_splits_(bags.row_splits),
      weights_(bags.weights),
      weight_positions_(bags.weight_positions),
      output_shape_(bags.output_shape) {}

kernels::Bags PositionPool::bags(const std::vector<int64_t>& ids) const {
  return {.ids = ids.data(),
          .splits = row_splits_.data<int64_t>().data(),
          .samples = row_splits_.size() - 1,
          .weights = weights_ ? weights_.data<float>().data() : nullptr};
}

std::vector<float> PositionPool::gains() const {
  std::vector<float> out(positions());
  kernels::pooling_gains(bags({}), combiner_from_name(combiner_), out.data());
  return out;
}

void PositionPool::pool_max(const Tensor& rows, Tensor& out) {
  const auto splits = row_splits_.data<int64_t>();
  const int64_t dim = rows.dim(1);
  const float* const from = rows.data<float>().data();
  float* const to = out.mutable_data<float>().data();
  first_max_.assign(out.size(), -1);
  parallel_for(row_splits_.size() - 1, kSamplesPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      float* const most = to + s * dim;
      int64_t* const first = first_max_.data() + s * dim;
      std::fill_n(most, dim, 0.0F);
      for (int64_t p = splits[s]; p < splits[s + 1]; ++p) {
        const float* const row = from + p * dim;
        for (int64_t d = 0; d < dim; ++d) {
          // A NaN is greater than every number, so that it is not lost.
          const bool greater = row[d] > most[d] || (std::isnan(row[d]) && !std::isnan(most[d]));
          if (first[d] >= 0 && !greater) continue;
          most[d] = row[d];
          first[d] = p;
        }
      }
    }
  });
}

Tensor PositionPool::pool(const Tensor& rows) {
  Tensor out = Tensor::uninitialized({row_splits_.size() - 1, rows.dim(1)}, DType::kFloat32);
  if (combiner_ == "max") {
    pool_max(rows, out);
    return out;
  }
  std::vector<int64_t> ids(positions());
  std::iota(ids.begin(), ids.end(), 0);
  kernels::pooled_gather(rows.data<float>().data(), rows.dim(1), bags(ids),
                         combiner_from_name(combiner_), out.mutable_data<float>().data());
  if (weights_) {
    rows_ = rows;
    out_ = out;
  }
  return out;
}

Tensor PositionPool::rows_gradient(const Tensor& dy) const {
  const auto splits = row_splits_.data<int64_t>();
  const int64_t dim = dy.dim(1);
  Tensor out = Tensor::zeros({positions(), dim}, DType::kFloat32);
  const float* const from = dy.data<float>().data();
  float* const to = out.mutable_data<float>().data();
  if (combiner_ == "max") {
    for (int64_t i = 0; i < std::ssize(first_max_); ++i) {
      if (first_max_[i] >= 0) to[first_max_[i] * dim + i % dim] = from[i];
    }
    return out;
  }
  const std::vector<float> factors = gains();
  for (int64_t s = 0; s + 1 < std::ssize(splits); ++s) {
    for (int64_t p = splits[s]; p < splits[s + 1]; ++p) {
      for (int64_t d = 0; d < dim; ++d) to[p * dim + d] = factors[p] * from[s * dim + d];
    }
  }
  return out;
}

Tensor PositionPool::weights_gradient(const Tensor& dy, int64_t weights_size) const {
  const auto splits = row_splits_.data<int64_t>();
  const auto weights = weights_.data<float>();
  const int64_t dim = dy.dim(1);
  const float* const rows = rows_.data<float>().data();
  const float* const pooled = out_.data<float>().data();
  const float* const from = dy.data<float>().data();
  const auto places =
      weight_positions_ ? weight_positions_.data<int64_t>() : std::span<const int64_t>();
  Tensor out = Tensor::zeros({weights_size}, DType::kFloat32);
  const auto to = out.mutable_data<float>();
  for (int64_t s = 0; s + 1 < std::ssize(splits); ++s) {
    const int64_t begin = splits[s], end = splits[s + 1];
    const WeightGradient gradient(combiner_from_name(combiner_),
                                  weights.subspan(begin, end - begin));
    for (int64_t p = begin; p < end; ++p) {
      to[places.empty() ? p : places[p]] =
          gradient.of(weights[p], rows + p * dim, pooled + s * dim, from + s * dim, dim);
    }
  }
  return out;
}

Tensor pool_positions(PositionPool pool, const Tensor& rows, const Tensor& weights) {
  std::vector<Tensor> inputs = {rows};
  if (weights) inputs.push_back(weights);
  const auto shared = std::make_shared<PositionPool>(std::move(pool));
  return custom_gradient(inputs, [&] {
    return WithBackward{
        {shared->pool(rows)},
        [shared, size = weights ? weights.size() : 0, shape = weights ? weights.shape() : Shape(),
         dtype = weights ? weights.dtype() : DType::kFloat32,
         weighted = static_cast<bool>(weights)](std::span<const Gradient> dy) {
          std::vector<Gradient> out(weighted ? 2 : 1);
          if (!dy[0]) return out;
          const Tensor gradient = dy[0].dense();
          out[0] = shared->rows_gradient(gradient);
          if (weighted) {
            out[1] = shared->weights_gradient(gradient, size).cast(dtype).reshaped(shape);
          }
          return out;
        }};
  })[0];
}

}  // namespace keel
