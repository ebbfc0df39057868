// Functions shared by layers that map values to categories.
#pragma once

#include <optional>
#include <string>

#include <keel/framework/base/function_ref.h>
#include <keel/framework/data/dataset.h>
#include <keel/layers/preprocessing/hashing.h>

namespace keel {

// Replaces the values of x, of any layout, by fn(values), which must have the same shape and dtype
// `dtype`. Row splits and indices are kept. Returns a symbolic tensor without calling fn if x is
// symbolic.
TensorLike map_values(const TensorLike& x, DType dtype, FunctionRef<Tensor(const Tensor&)> fn);

// Throws ValueError, naming the layer, if the config has the path of a file as its vocabulary.
void reject_vocabulary_files(const std::string& class_name, const Config& config);

// The values of an `output_mode` option.
enum class OutputMode { kInt, kOneHot, kMultiHot, kCount, kTfIdf };
// Throws ValueError, prefixed with `caller`, for a name other than the first four.
OutputMode output_mode_from_name(const std::string& name, const std::string& caller);

// The form of encoded categories, which are in [0, depth).
struct Encoding {
  OutputMode mode;
  int64_t depth = 0;
  bool sparse = false;  // make SparseTensors of encodings
};
// Throws ValueError, prefixed with `caller`, if `sparse` is set for kInt.
void check_sparse(bool sparse, OutputMode mode, const std::string& caller);

// Encodes categories, int64, as float32 in one of the forms that preprocessing.h describes. kTfIdf
// is like kCount; the caller applies the factors. The result is symbolic if x is. `weights`,
// float32 with x's shape and layout, apply to kCount only. Throws ValueError for kOneHot if x is
// not dense.
TensorLike encode_categories(const TensorLike& x, const Encoding& encoding,
                             const std::string& caller,
                             const std::optional<TensorLike>& weights = {});

// Calls fn with the tensor of each of the first `steps` batches, or of all. Throws TypeError,
// prefixed with `caller`, if a batch is a structure.
void for_each_batch(const data::Dataset& batches, std::optional<int64_t> steps,
                    const std::string& caller, FunctionRef<void(const TensorLike&)> fn);

}  // namespace keel
