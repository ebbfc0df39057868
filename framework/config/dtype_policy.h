// DTypePolicy: the dtypes of a layer's variables and of the operands of its matrix products
// (keras.DTypePolicy).
//
//   "float32", "float64", ...  one dtype for everything
//   "mixed_bfloat16"           float32 variables, gradients and results; both operands of a layer's
//                              matrix products are rounded to the nearest bfloat16 and the products
//                              are summed in float32, in the forward pass and in both gradients
//   "mixed_float16"            likewise with float16, whose numbers overflow from 65520 on and lose
//                              digits below 2^-14; Model::compile scales the loss dynamically
//   "int8_from_float32"        int8 weights, otherwise like "float32"
//   "int8_from_mixed_bfloat16" int8 weights, otherwise like "mixed_bfloat16"
//
//   "int4/128_from_float32"    4-bit weights, with a scale for each column of 128 rows; "int4/-1"
//                              has a scale for each whole column
//
// The quantize() function of a layer sets a policy of quantized weights, which files store as
// keras.dtype_policies.QuantizedDTypePolicy or Int4DTypePolicy.
//
// Under the mixed policies, Keras also rounds the values that layers exchange. Keel keeps them in
// float32 until a matrix product uses them.
//
// "float16" and "bfloat16" throw NotImplementedError: tensors cannot hold 16-bit floats.
#pragma once

#include <cstdint>
#include <string>

#include <keel/framework/base/dtype.h>
#include <keel/framework/config/config.h>

namespace keel {

// A dtype policy. Converts from a DType or a name and to the DType of the variables.
class DTypePolicy {
 public:
  DTypePolicy();  // the global policy
  // Uses one dtype for everything.
  DTypePolicy(DType dtype) : variables_(dtype) {}  // NOLINT: implicit
  // Throws ValueError for an unknown name, and NotImplementedError as described above.
  DTypePolicy(const std::string& name);                              // NOLINT: implicit
  DTypePolicy(const char* name) : DTypePolicy(std::string(name)) {}  // NOLINT: implicit

  // Returns the name as Keras writes it.
  std::string name() const;
  // Returns the dtype of the variables.
  DType variable_dtype() const { return variables_; }
  // Returns true if the operands of matrix products are rounded to bfloat16.
  bool bfloat16_products() const { return bfloat16_products_; }
  // Returns true if the operands of matrix products are rounded to float16.
  bool float16_products() const { return float16_products_; }
  // Returns true if the weights are int8.
  bool int8_weights() const { return int8_weights_; }
  // Returns true if the weights are 4-bit integers.
  bool int4_weights() const { return int4_block_size_ != 0; }
  // Returns the number of rows that share a scale, -1 for whole columns; 0 without int4 weights.
  int64_t int4_block_size() const { return int4_block_size_; }
  // Returns true if the weights are int8 or int4.
  bool quantized_weights() const { return int8_weights() || int4_weights(); }
  // Return this policy with quantized weights. Throw NotImplementedError unless the variables are
  // float32 and the weights are not yet quantized. The block size must be positive or -1
  // (ValueError otherwise).
  DTypePolicy with_int8_weights() const;
  DTypePolicy with_int4_weights(int64_t block_size) const;  // See with_int8_weights().
  // Returns the dtype of the variables.
  operator DType() const { return variables_; }  // NOLINT: implicit

  friend bool operator==(const DTypePolicy&, const DTypePolicy&) = default;
  // Returns true if `a` is the policy with dtype `b` for everything.
  friend bool operator==(const DTypePolicy& a, DType b) { return a == DTypePolicy(b); }

 private:
  void check_quantizable() const;

  DType variables_ = DType::kFloat32;
  // The flags share one byte: the object takes 8, which an atomic holds without a lock.
  bool bfloat16_products_ : 1 = false;
  bool float16_products_ : 1 = false;
  bool int8_weights_ : 1 = false;
  int32_t int4_block_size_ = 0;
};

// Returns the policy of new layers that do not set one (keras.config.dtype_policy). The initial
// policy is float32.
DTypePolicy dtype_policy();
// Sets the policy that dtype_policy() returns. Throws ValueError if the variables are not floating
// or the weights are quantized.
void set_dtype_policy(const DTypePolicy& policy);

// encode() writes a policy with a single dtype as its name, and other policies as the DTypePolicy,
// QuantizedDTypePolicy or Int4DTypePolicy objects of Keras. decode() reads names and these objects,
// including those of Keras 2; null gives the global policy.
Config encode(const DTypePolicy& v);
void decode(const Config& c, DTypePolicy& v);

}  // namespace keel
