// DTypePolicy: what a layer keeps its variables in and what its matrix products take
// (keras.DTypePolicy).
//
//   "float32", "float64", ...  one dtype for all
//   "mixed_bfloat16"           float32 variables, gradients and results; both operands of a layer's
//                              matrix products are rounded to bfloat16, the nearest, and what they
//                              give is summed in float32: forward and in both gradients
//   "int8_from_float32"        weights in int8, all else as in the policy behind "from": what
//   "int8_from_mixed_bfloat16" Embedding.quantize("int8") gives a layer, and files of it have
//                              (keras.dtype_policies.QuantizedDTypePolicy)
//
// Keras rounds what layers hand to each other too; here that is float32 until a product takes it.
// "mixed_float16", "float16" and "bfloat16" are not offered (NotImplementedError): the first needs
// a scaled loss, and no tensor holds 16-bit floats. Nor are other kinds of weights, such as int4.
#pragma once

#include <string>

#include <keel/framework/base/dtype.h>
#include <keel/framework/config/config.h>

namespace keel {

class DTypePolicy {
 public:
  DTypePolicy();                                   // the global one
  DTypePolicy(DType dtype) : variables_(dtype) {}  // NOLINT: implicit
  DTypePolicy(const std::string& name);            // NOLINT: implicit; ValueError if unknown
  DTypePolicy(const char* name) : DTypePolicy(std::string(name)) {}  // NOLINT: implicit

  std::string name() const;
  DType variable_dtype() const { return variables_; }
  bool bfloat16_products() const { return bfloat16_products_; }
  bool int8_weights() const { return int8_weights_; }
  // The same with weights in int8. NotImplementedError unless the variables are float32.
  DTypePolicy with_int8_weights() const;
  operator DType() const { return variables_; }  // NOLINT: implicit

  friend bool operator==(const DTypePolicy&, const DTypePolicy&) = default;
  // Of one dtype for all.
  friend bool operator==(const DTypePolicy& a, DType b) { return a == DTypePolicy(b); }

 private:
  DType variables_ = DType::kFloat32;
  // In one byte, so that the whole is as large as what processors load at once.
  bool bfloat16_products_ : 1 = false;
  bool int8_weights_ : 1 = false;
};

// What layers made from now on have unless told (keras.config.dtype_policy); float32 at first.
DTypePolicy dtype_policy();
// ValueError unless the variables are floating, and for weights in int8.
void set_dtype_policy(const DTypePolicy& policy);

// A plain dtype by its name, others as Keras's DTypePolicy and QuantizedDTypePolicy objects. Names
// and objects are read, of Keras 2 too.
Config encode(const DTypePolicy& v);
void decode(const Config& c, DTypePolicy& v);

}  // namespace keel
