// Functions of keras.ops that create tensors. Floating-point results are float32 unless `dtype` is
// set.
#pragma once

#include <string>

#include <keel/autodiff/keras_ops/operand.h>
#include <keel/framework/tensor_like.h>

namespace keel::keras_ops {

// ---- Constants.

// Return tensors of this shape filled with one number.
Tensor zeros(const Shape& shape, std::optional<DType> dtype = {});
Tensor ones(const Shape& shape, std::optional<DType> dtype = {});
Tensor full(const Shape& shape, const Operand& fill_value, std::optional<DType> dtype = {});
Tensor empty(const Shape& shape, std::optional<DType> dtype = {});  // zeros
// Return tensors of the shape of x, and of its dtype unless `dtype` is set. They have no gradient.
Tensor zeros_like(const Tensor& x, std::optional<DType> dtype = {});
Tensor ones_like(const Tensor& x, std::optional<DType> dtype = {});
Tensor empty_like(const Tensor& x, std::optional<DType> dtype = {});
Tensor full_like(const Tensor& x, const Operand& fill_value, std::optional<DType> dtype = {});
// Ones on diagonal k of a matrix [N, M]; M is N by default.
Tensor eye(int64_t N, std::optional<int64_t> M = {}, int64_t k = 0,
           std::optional<DType> dtype = {});
// Ones on the diagonal of a square matrix: eye(n).
Tensor identity(int64_t n, std::optional<DType> dtype = {});
// Ones on and below diagonal k.
Tensor tri(int64_t N, std::optional<int64_t> M = {}, int64_t k = 0,
           std::optional<DType> dtype = {});

// ---- Ranges.

// Returns start, start + step, ... below stop; with one argument, 0, 1, ... below it. The dtype is
// int32 if all arguments are integers.
Tensor arange(const Operand& start, const std::optional<Operand>& stop = {},
              const std::optional<Operand>& step = {}, std::optional<DType> dtype = {});
// Returns `num` evenly spaced numbers from start to stop. Tensors get the new axis `axis`.
Tensor linspace(const Operand& start, const Operand& stop, int64_t num = 50, bool endpoint = true,
                std::optional<DType> dtype = {}, int axis = 0);
// Returns the result of linspace() and the distance between neighbors (`retstep` of Keras).
std::pair<Tensor, Tensor> linspace_with_step(const Operand& start, const Operand& stop,
                                             int64_t num = 50, bool endpoint = true,
                                             std::optional<DType> dtype = {}, int axis = 0);
// Returns base to the powers of linspace().
Tensor logspace(const Operand& start, const Operand& stop, int64_t num = 50, bool endpoint = true,
                double base = 10, std::optional<DType> dtype = {}, int axis = 0);
// Returns numbers from start to stop with equal ratios.
Tensor geomspace(const Operand& start, const Operand& stop, int64_t num = 50, bool endpoint = true,
                 std::optional<DType> dtype = {}, int axis = 0);
// Returns the coordinates of the grid of vectors; `indexing` is "xy" or "ij".
std::vector<Tensor> meshgrid(const std::vector<Tensor>& x, const std::string& indexing = "xy");
// Returns the powers of x as columns, decreasing unless `increasing`.
Tensor vander(const Tensor& x, std::optional<int64_t> N = {}, bool increasing = false);

// ---- Windows of x elements.

// Return the symmetric window of this name.
Tensor bartlett(int64_t x);
Tensor blackman(int64_t x);
Tensor hamming(int64_t x);
Tensor hanning(int64_t x);
Tensor kaiser(int64_t x, double beta);

// ---- Encodings and conversions.

// Negative ids and ids of num_classes or more give zeros.
Tensor one_hot(const Tensor& x, int64_t num_classes, int axis = -1,
               std::optional<DType> dtype = {});
// The ids of `axis` become one vector of zeros and ones.
Tensor multi_hot(const Tensor& inputs, int64_t num_classes, int axis = -1,
                 std::optional<DType> dtype = {});
// Return the same with sparse=true: only the ones, in row-major order.
SparseTensor one_hot_sparse(const Tensor& x, int64_t num_classes, int axis = -1,
                            std::optional<DType> dtype = {});
SparseTensor multi_hot_sparse(const Tensor& inputs, int64_t num_classes, int axis = -1,
                              std::optional<DType> dtype = {});
// Return x as a tensor, converted to `dtype`.
Tensor array(const Operand& x, std::optional<DType> dtype = {});
Tensor convert_to_tensor(const Operand& x, std::optional<DType> dtype = {});
// Returns the elements in row-major order, as elements of T. Throws TypeError if x has another
// dtype.
template <class T>
std::vector<T> convert_to_numpy(const Tensor& x) {
  return x.to_vector<T>();
}

}  // namespace keel::keras_ops
