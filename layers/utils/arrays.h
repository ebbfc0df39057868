// Functions that prepare arrays (keras.utils): to_categorical, normalize, pad_sequences; and
// set_random_seed.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <keel/framework/random.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/training/compile/step_data.h>

namespace keel::utils {

// These functions are also in keras.utils: the seed of all random numbers (framework/random.h), and
// the parts of a batch (layers/training/compile/step_data.h).
using keel::pack_x_y_sample_weight;
using keel::set_random_seed;
using keel::unpack_x_y_sample_weight;

// Returns float32 vectors with 1 at the class of each element and 0 elsewhere: [...] becomes [...,
// num_classes], and so does [..., 1]. `x` has any numeric dtype; floats are truncated to integers.
// num_classes is by default one more than the largest class. Throws ValueError for a class out of
// range, and for an empty `x` without num_classes.
Tensor to_categorical(const Tensor& x, std::optional<int64_t> num_classes = {});

// Divides `x` by its norms of this order along an axis; vectors of zeros stay zeros. Order 2 is the
// Euclidean norm, infinity the largest absolute value, minus infinity the smallest, and 0 the
// number of elements that are not 0. Returns float64 for float64, otherwise float32. Not
// differentiable; keras_ops::normalize() is. Throws ValueError for an axis out of range.
Tensor normalize(const Tensor& x, int axis = -1, double order = 2);

// Options of pad_sequences().
struct PadSequencesOptions {
  std::optional<int64_t> maxlen = {};  // length of the results; default: of the longest sequence
  DType dtype = DType::kInt32;         // of the results
  std::string padding = "pre";         // pad at the beginning, or at the end: "post"
  std::string truncating = "pre";      // drop steps at the beginning, or at the end: "post"
  std::variant<double, std::string> value = 0.0;  // of padding steps; a string for strings
};

// Makes sequences equally long: returns [sequences, maxlen, ...] for a ragged tensor of sequences,
// whose steps are its values [n, ...]. Numbers are converted to the dtype. Throws ValueError for
// an unknown `padding` or `truncating` and for a negative maxlen, and TypeError if only one of the
// sequences, the dtype and the value is strings.
Tensor pad_sequences(const RaggedTensor& sequences, const PadSequencesOptions& options = {});
// Does the same with sequences of numbers or strings.
template <Element T>
Tensor pad_sequences(const std::vector<std::vector<T>>& sequences,
                     const PadSequencesOptions& options = {}) {
  return pad_sequences(RaggedTensor::from_rows(sequences), options);
}

}  // namespace keel::utils
