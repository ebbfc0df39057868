// DTypePolicy: what a layer keeps its variables in and what its matrix products take
// (keras.DTypePolicy).
//
//   "float32", "float64", ...  one dtype for all
//   "mixed_bfloat16"           float32 variables, gradients and results; both operands of a layer's
//                              matrix products are rounded to bfloat16, the nearest, and what they
//                              give is summed in float32: forward and in both gradients
//
// Keras rounds what layers hand to each other too; here that is float32 until a product takes it.
// "mixed_float16", "float16" and "bfloat16" are not offered (NotImplementedError): the first needs
// a scaled loss, and no tensor holds 16-bit floats.
#pragma once

#include <string>

#include "framework/config.h"
#include "framework/dtype.h"

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
  operator DType() const { return variables_; }  // NOLINT: implicit

  friend bool operator==(const DTypePolicy&, const DTypePolicy&) = default;
  // Of one dtype for all.
  friend bool operator==(const DTypePolicy& a, DType b) { return a == DTypePolicy(b); }

 private:
  DType variables_ = DType::kFloat32;
  bool bfloat16_products_ = false;
};

// What layers made from now on have unless told (keras.config.dtype_policy); float32 at first.
DTypePolicy dtype_policy();
// ValueError unless the variables are floating.
void set_dtype_policy(const DTypePolicy& policy);

// A plain dtype by its name, others as Keras's DTypePolicy object. Both are read, of Keras 2 too.
Config encode(const DTypePolicy& v);
void decode(const Config& c, DTypePolicy& v);

}  // namespace keel
