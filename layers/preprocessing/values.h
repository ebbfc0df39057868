// Functions shared by layers that map values to categories.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <keel/framework/data/dataset.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// Replaces the values of x, of any layout, by fn(values), which must have the same shape and dtype
// `dtype`. Row splits and indices are kept. Returns a symbolic tensor without calling fn if x is
// symbolic.
TensorLike map_values(const TensorLike& x, DType dtype,
                      const std::function<Tensor(const Tensor&)>& fn);

// Form of the categories in the result: "int", "one_hot", "multi_hot", "count", and "tf_idf" for
// lookups.
enum class OutputMode { kInt, kOneHot, kMultiHot, kCount, kTfIdf };
// Throws ValueError, prefixed with `caller`, for a name other than the first four.
OutputMode output_mode_from_name(const std::string& name, const std::string& caller);

// Encodes categories, int64 in [0, depth), as float32; negative categories are ignored.
//   kInt       unchanged
//   kOneHot    dense [..., 1] or [...] -> [..., depth], 1 at the category; [n] -> [n, depth]
//   kMultiHot  [..., n] -> [..., depth], 1 at each of the n categories; also a ragged or
//              sparse matrix with one row per sample
//   kCount     like kMultiHot with the number of occurrences, or the sum of the weights
//   kTfIdf     like kCount; the caller applies the factors
// The result is symbolic if x is. `weights`, float32 with x's shape and layout, apply to kCount
// only. Throws ValueError for kOneHot if x is not dense.
TensorLike encode_categories(const TensorLike& x, OutputMode mode, int64_t depth,
                             const std::string& caller,
                             const std::optional<TensorLike>& weights = {});

// Calls fn with the tensor of each batch. Throws TypeError, prefixed with `caller`, if a batch is a
// structure.
void for_each_batch(const data::Dataset& batches, const std::string& caller,
                    const std::function<void(const TensorLike&)>& fn);

}  // namespace keel
