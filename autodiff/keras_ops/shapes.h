// Functions of keras.ops that change the shape of tensors or the order of their elements. All have
// gradients.
#pragma once

#include <map>
#include <string>

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// ---- Axes.

// Returns the elements in another shape; one dimension may be kUnknown (-1).
Tensor reshape(const Tensor& x, const Shape& newshape);
Tensor ravel(const Tensor& x);  // flattened to one axis
// Reorders the axes, or reverses them if `axes` is empty.
Tensor transpose(const Tensor& x, const std::vector<int>& axes = {});
// Exchanges two axes.
Tensor swapaxes(const Tensor& x, int axis1, int axis2);
// Moves the axes `source` to the positions `destination`; the others keep their order.
Tensor moveaxis(const Tensor& x, const std::vector<int>& source,
                const std::vector<int>& destination);
// Inserts axes of dimension 1; their positions are those in the result.
Tensor expand_dims(const Tensor& x, const Axes& axis);
// Removes axes of dimension 1, by default all of them.
Tensor squeeze(const Tensor& x, const Axes& axis = {});
// Repeats x to a shape, as NumPy does.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
// Splits, joins and reorders named axes: "b (h w) c -> b c h w" with the lengths of new names.
// "..." stands for any number of axes, on both sides.
Tensor rearrange(const Tensor& tensor, const std::string& pattern,
                 const std::map<std::string, int64_t>& axes_lengths = {});

// ---- Joining and splitting.

// Join tensors along an existing axis, or along a new one (stack).
Tensor concatenate(const std::vector<Tensor>& xs, int axis = 0);
Tensor stack(const std::vector<Tensor>& x, int axis = 0);
Tensor append(const Tensor& x1, const Tensor& x2, Axis axis = {});  // flattens without `axis`
Tensor hstack(const std::vector<Tensor>& xs);        // along the second axis, or the only one
Tensor vstack(const std::vector<Tensor>& xs);        // along the first axis of at least two
Tensor dstack(const std::vector<Tensor>& xs);        // along the third axis
Tensor column_stack(const std::vector<Tensor>& xs);  // vectors become columns
// Splits into equal parts, or before each of the positions `indices`.
std::vector<Tensor> split(const Tensor& x, int64_t sections, int axis = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& indices, int axis = 0);
// Splits into parts whose lengths differ by at most 1.
std::vector<Tensor> array_split(const Tensor& x, int64_t sections, int axis = 0);
std::vector<Tensor> array_split(const Tensor& x, const std::vector<int64_t>& indices, int axis = 0);
// Split along the second axis (or the only one), the first and the third.
std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& indices);
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& indices);
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& indices);
// Returns the slices along an axis, which `num` must count if it is given.
std::vector<Tensor> unstack(const Tensor& x, std::optional<int64_t> num = {}, int axis = 0);

// ---- Repeating, reordering and padding.

// Repeats x as a whole along each axis.
Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats);
// Repeats each element; `repeats` has one element, or one for each position of the axis.
Tensor repeat(const Tensor& x, const std::vector<int64_t>& repeats, Axis axis = {});
// Reverses axes.
Tensor flip(const Tensor& x, const Axes& axis = {});
Tensor fliplr(const Tensor& x);  // flips the second axis
Tensor flipud(const Tensor& x);  // flips the first axis
// Moves elements towards the end of the axis, or of the flattened tensor; they return at the start.
Tensor roll(const Tensor& x, const std::vector<int64_t>& shift, const Axes& axis = {});
// Rotates by k right angles in the plane of two axes, from the first towards the second.
Tensor rot90(const Tensor& array, int k = 1, std::pair<int, int> axes = {0, 1});
// The elements before and after each axis.
using PadWidth = std::vector<std::pair<int64_t, int64_t>>;
// Adds elements before and after each axis. `mode` is "constant", "reflect" (without the edge) or
// "symmetric" (with it).
Tensor pad(const Tensor& x, const PadWidth& pad_width, const std::string& mode = "constant",
           std::optional<double> constant_values = {});
Tensor pad(const Tensor& x, int64_t pad_width, const std::string& mode = "constant",
           std::optional<double> constant_values = {});

// ---- Diagonals.

Tensor tril(const Tensor& x, int64_t k = 0);      // zeros above diagonal k
Tensor triu(const Tensor& x, int64_t k = 0);      // zeros below diagonal k
Tensor diag(const Tensor& x, int64_t k = 0);      // a vector to a matrix, or a matrix to a vector
Tensor diagflat(const Tensor& x, int64_t k = 0);  // the flattened tensor to a matrix
// Return the diagonal of the matrices in two axes, and its sum.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int axis1 = 0, int axis2 = 1);
Tensor trace(const Tensor& x, int64_t offset = 0, int axis1 = 0, int axis2 = 1);

// ---- Blocks of images.

// Moves groups of channels to squares of pixels, and back. With channels_last, the channels of a
// pixel of a square are neighbors, and with channels_first, those of a resulting channel.
Tensor depth_to_space(const Tensor& x, int64_t block_size,
                      const std::string& data_format = "channels_last");
Tensor space_to_depth(const Tensor& x, int64_t block_size,
                      const std::string& data_format = "channels_last");
// Two numbers: for the height and the width.
struct Pair {
  int64_t height;  // the first number
  int64_t width;   // the second number
  // Make a pair of one number, or of two.
  Pair(int64_t both) : height(both), width(both) {}  // NOLINT: implicit
  Pair(int64_t of_height, int64_t of_width) : height(of_height), width(of_width) {}
};
// Returns the windows of images [batch, channels, height, width] as columns [batch, channels *
// window, windows], and the sums of such columns as images of `output_size`.
Tensor unfold(const Tensor& x, Pair kernel_size, Pair dilation = 1, Pair padding = 0,
              Pair stride = 1);
Tensor fold(const Tensor& x, Pair output_size, Pair kernel_size, Pair dilation = 1,
            Pair padding = 0, Pair stride = 1);

}  // namespace keel::keras_ops
