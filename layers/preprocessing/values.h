// What layers that turn values into numbers of categories have in common.
#pragma once

#include <functional>
#include <string>

#include "framework/data/dataset.h"
#include "framework/tensor_like.h"

namespace keel {

// The values of x, of any layout, replaced by fn(values), which is of the same shape and of
// `dtype`; row splits and indices stay. Of a symbolic x the spec alone.
TensorLike map_values(const TensorLike& x, DType dtype,
                      const std::function<Tensor(const Tensor&)>& fn);

// How categories come out: "int", "one_hot", "multi_hot" or "count".
enum class OutputMode { kInt, kOneHot, kMultiHot, kCount };
// ValueError, naming `who`, for another name; NotImplementedError for "tf_idf".
OutputMode output_mode_from_name(const std::string& name, const std::string& who);

// Categories, int64 in [0, depth), as float32; negative ones are left out.
//   kInt       as they are
//   kOneHot    dense [..., 1] or [...] -> [..., depth], 1 at the category
//   kMultiHot  [..., n] -> [..., depth], 1 at each of the n categories; also of a ragged or
//              sparse matrix of one row per sample
//   kCount     the same with the number of times
// Symbolic where x is. ValueError for kOneHot of a layout that is not dense.
TensorLike encode_categories(const TensorLike& x, OutputMode mode, int64_t depth,
                             const std::string& who);

// Calls fn with the tensor of each batch. TypeError, naming `who`, if a batch is a structure.
void for_each_batch(const data::Dataset& batches, const std::string& who,
                    const std::function<void(const TensorLike&)>& fn);

}  // namespace keel
