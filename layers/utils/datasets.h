// Functions that make datasets (keras.utils): split_dataset, timeseries_dataset_from_array.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include <keel/framework/data/dataset.h>

namespace keel::utils {

// The size of a part of a dataset: a number of elements, or a fraction in (0, 1).
using SplitSize = std::variant<int64_t, double>;

// Options of split_dataset(). One of the sizes, or both, must be set.
struct SplitDatasetOptions {
  std::optional<SplitSize> left_size = {};   // default: all that is not in the right part
  std::optional<SplitSize> right_size = {};  // default: all that is not in the left part
  bool shuffle = false;                      // shuffle the elements before the split
  std::optional<int64_t> seed = {};  // of the shuffle; default: the next stream of the program
};

// Splits a finite dataset into its first and its last elements. A fraction is rounded to the
// nearest number of elements. The dataset is read once to count the elements if their number is not
// known; with `shuffle`, all elements are kept in memory. Batches are elements: unbatch() first to
// split rows. Throws ValueError for an infinite dataset, for sizes that are not positive, exceed
// the dataset or make a part empty, and if no size is set.
std::pair<data::Dataset, data::Dataset> split_dataset(const data::Dataset& dataset,
                                                      const SplitDatasetOptions& options);
// Splits the rows of arrays. The elements of the results are single rows.
std::pair<data::Dataset, data::Dataset> split_dataset(const Tensors& rows,
                                                      const SplitDatasetOptions& options);

// Options of timeseries_dataset_from_array().
struct TimeseriesOptions {
  int64_t sequence_length = 0;              // number of steps in a window; required
  int64_t sequence_stride = 1;              // steps from one window to the next
  int64_t sampling_rate = 1;                // steps from one step of a window to the next
  std::optional<int64_t> batch_size = 128;  // unset: elements are single windows
  bool shuffle = false;                     // shuffle the windows
  std::optional<int64_t> seed = {};         // of the shuffle; default: the program's next stream
  std::optional<int64_t> start_index = {};  // use the data from this step on
  std::optional<int64_t> end_index = {};    // ignore the data from this step on
};

// Makes a dataset of windows of a time series: window k consists of the steps k s, k s + r, k s + 2
// r, ... of `data` [steps, ...] for the stride s and the rate r, and has the target `targets[k s]`.
// Elements are (windows, targets) of shapes [batch, sequence_length, ...] and [batch, ...], or
// windows alone without targets. Windows without a target are dropped.
//
// With `shuffle`, the windows are permuted once, and again in a buffer of eight batches (1024
// windows without batches) in each iteration. Throws ValueError for lengths, rates and indices that
// are not positive or exceed the data.
data::Dataset timeseries_dataset_from_array(const Tensor& data,
                                            const std::optional<Tensor>& targets,
                                            const TimeseriesOptions& options);

}  // namespace keel::utils
