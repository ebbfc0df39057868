// What layers that turn values into numbers of categories have in common.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <keel/framework/data/dataset.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// The values of x, of any layout, replaced by fn(values), which is of the same shape and of
// `dtype`; row splits and indices stay. Of a symbolic x the spec alone.
TensorLike map_values(const TensorLike& x, DType dtype,
                      const std::function<Tensor(const Tensor&)>& fn);

// How categories come out: "int", "one_hot", "multi_hot" or "count"; "tf_idf" of lookups.
enum class OutputMode { kInt, kOneHot, kMultiHot, kCount, kTfIdf };
// ValueError, naming `caller`, for another name than the first four.
OutputMode output_mode_from_name(const std::string& name, const std::string& caller);

// Categories, int64 in [0, depth), as float32; negative ones are left out.
//   kInt       as they are
//   kOneHot    dense [..., 1] or [...] -> [..., depth], 1 at the category; [n] -> [n, depth]
//   kMultiHot  [..., n] -> [..., depth], 1 at each of the n categories; also of a ragged or
//              sparse matrix of one row per sample
//   kCount     the same with the number of times, or the sum of the categories' weights
//   kTfIdf     as kCount; the caller scales
// Symbolic where x is. `weights`, of x's shape and layout, float32, are for kCount only.
// ValueError for kOneHot of a layout that is not dense.
TensorLike encode_categories(const TensorLike& x, OutputMode mode, int64_t depth,
                             const std::string& caller,
                             const std::optional<TensorLike>& weights = {});

// Calls fn with the tensor of each batch. TypeError, naming `caller`, if a batch is a structure.
void for_each_batch(const data::Dataset& batches, const std::string& caller,
                    const std::function<void(const TensorLike&)>& fn);

}  // namespace keel
