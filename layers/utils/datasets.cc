#include <keel/layers/utils/datasets.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include <keel/framework/random.h>

namespace keel::utils {
namespace {

using data::Dataset;

// Returns the number of elements.
int64_t count_of(const Dataset& dataset) {
  int64_t out = dataset.cardinality();
  if (out == data::kInfinite) {
    throw ValueError("split_dataset: the dataset is infinite; call take() first");
  }
  if (out != data::kUnknownCardinality) return out;
  out = 0;
  for ([[maybe_unused]] const Tensors& element : dataset) ++out;
  return out;
}

// Returns the number of elements of one part.
int64_t elements_of(const SplitSize& size, const char* option, int64_t total) {
  if (const auto* fraction = std::get_if<double>(&size)) {
    if (!(*fraction > 0 && *fraction < 1)) {
      throw ValueError("split_dataset: ", option, " must be in (0, 1) or an integer, received ",
                       *fraction);
    }
    // Halves are rounded to even numbers, as in Python.
    return static_cast<int64_t>(std::nearbyint(*fraction * static_cast<double>(total)));
  }
  const int64_t count = std::get<int64_t>(size);
  if (count <= 0 || count >= total) {
    throw ValueError("split_dataset: ", option, " must be positive and less than ", total,
                     ", the number of elements, received ", count);
  }
  return count;
}

struct Sizes {
  int64_t left, right;
};

Sizes sizes_of(const SplitDatasetOptions& options, int64_t total) {
  const auto& left = options.left_size;
  const auto& right = options.right_size;
  if (!left && !right) throw ValueError("split_dataset: set left_size, right_size or both");
  Sizes out = {left ? elements_of(*left, "left_size", total) : 0,
               right ? elements_of(*right, "right_size", total) : 0};
  if (!left) out.left = total - out.right;
  if (!right) out.right = total - out.left;
  if (out.left + out.right > total) {
    throw ValueError("split_dataset: parts of ", out.left, " and ", out.right,
                     " elements exceed the dataset, which has ", total, "; reduce the sizes");
  }
  if (out.left == 0 || out.right == 0) {
    throw ValueError("split_dataset: of ", total, " elements, the ",
                     out.left == 0 ? "left" : "right", " part gets none; change the sizes");
  }
  return out;
}

// Makes a dataset from the elements in `order`, [begin, end).
Dataset in_order(const std::shared_ptr<const std::vector<Tensors>>& elements,
                 const std::shared_ptr<const std::vector<int64_t>>& order, int64_t begin,
                 int64_t end) {
  return Dataset::from_generator(
      [=] {
        return [=, at = begin]() mutable -> std::optional<Tensors> {
          if (at == end) return std::nullopt;
          return (*elements)[(*order)[at++]];
        };
      },
      end - begin);
}

void check_positive(int64_t value, const char* option) {
  if (value < 1) {
    throw ValueError("timeseries_dataset_from_array: ", option, " must be positive, received ",
                     value);
  }
}

void check_timeseries(const TimeseriesOptions& options, int64_t steps) {
  check_positive(options.sequence_length, "sequence_length");
  check_positive(options.sequence_stride, "sequence_stride");
  check_positive(options.sampling_rate, "sampling_rate");
  if (options.batch_size) check_positive(*options.batch_size, "batch_size");
  const int64_t start = options.start_index.value_or(0);
  const int64_t end = options.end_index.value_or(steps);
  if (start < 0 || end > steps || start >= end) {
    throw ValueError("timeseries_dataset_from_array: start_index and end_index must be ascending ",
                     "and in [0, ", steps, "], received ", start, " and ", end);
  }
  for (const auto& [value, option] : {std::pair{options.sequence_stride, "sequence_stride"},
                                      {options.sampling_rate, "sampling_rate"}}) {
    if (value >= steps) {
      throw ValueError("timeseries_dataset_from_array: ", option, " must be less than ", steps,
                       ", the number of steps, received ", value);
    }
  }
}

// Returns the first step of each window, counted from the first step in use.
std::vector<int64_t> window_starts(const TimeseriesOptions& options, int64_t steps,
                                   const std::optional<Tensor>& targets,
                                   const RandomStream& stream) {
  // A sequence that is too long has no window; its product could overflow.
  const int64_t gaps = options.sequence_length - 1;
  int64_t count =
      gaps > (steps - 1) / options.sampling_rate ? 0 : steps - gaps * options.sampling_rate;
  if (targets) count = std::min(count, targets->dim(0) - options.start_index.value_or(0));
  std::vector<int64_t> out;
  for (int64_t at = 0; at < count; at += options.sequence_stride) out.push_back(at);
  if (!options.shuffle) return out;
  std::vector<int64_t> permuted;
  for (const int64_t i : stream.permutation(std::ssize(out))) permuted.push_back(out[i]);
  return permuted;
}

// Returns the row of a tensor, without the first axis.
Tensor row_of(const Tensor& x, int64_t row) {
  return slice_rows(TensorLike(x), row, row + 1).tensor().reshaped(x.shape().without(0));
}

}  // namespace

std::pair<Dataset, Dataset> split_dataset(const Dataset& dataset,
                                          const SplitDatasetOptions& options) {
  const int64_t total = count_of(dataset);
  const Sizes sizes = sizes_of(options, total);
  if (!options.shuffle) {
    return {dataset.take(sizes.left), dataset.skip(total - sizes.right).take(sizes.right)};
  }
  std::vector<Tensors> all;
  for (const Tensors& element : dataset) all.push_back(element);
  const auto elements = std::make_shared<const std::vector<Tensors>>(std::move(all));
  const auto order = std::make_shared<const std::vector<int64_t>>(
      next_random_stream(options.seed).permutation(total));
  return {in_order(elements, order, 0, sizes.left),
          in_order(elements, order, total - sizes.right, total)};
}

std::pair<Dataset, Dataset> split_dataset(const Tensors& rows, const SplitDatasetOptions& options) {
  return split_dataset(Dataset::from_tensor_slices(rows), options);
}

Dataset timeseries_dataset_from_array(const Tensor& data, const std::optional<Tensor>& targets,
                                      const TimeseriesOptions& options) {
  if (data.rank() == 0) {
    throw ValueError("timeseries_dataset_from_array: data must have at least one axis");
  }
  check_timeseries(options, data.dim(0));
  const int64_t start = options.start_index.value_or(0);
  const int64_t end = options.end_index.value_or(data.dim(0));
  const RandomStream stream = next_random_stream(options.seed);
  const auto starts = std::make_shared<const std::vector<int64_t>>(
      window_starts(options, end - start, targets, stream));
  const auto window = [data, targets, start, options](int64_t first) -> Tensors {
    std::vector<int64_t> steps(options.sequence_length);
    for (int64_t i = 0; i < std::ssize(steps); ++i) {
      steps[i] = start + first + i * options.sampling_rate;
    }
    const Tensors x = take_rows(Tensors(data), steps);
    if (!targets) return x;
    return Tensors::tuple({x, row_of(*targets, start + first)});
  };
  Dataset out = Dataset::from_generator(
      [starts, window] {
        return [starts, window, at = size_t{0}]() mutable -> std::optional<Tensors> {
          if (at == starts->size()) return std::nullopt;
          return window((*starts)[at++]);
        };
      },
      std::ssize(*starts));
  if (options.shuffle) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 8;
    out = out.shuffle(options.batch_size ? std::min(*options.batch_size, kMost) * 8 : 1024,
                      {.seed = options.seed});
  }
  return options.batch_size ? out.batch(*options.batch_size) : out;
}

}  // namespace keel::utils
