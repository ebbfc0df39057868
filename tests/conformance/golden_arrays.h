// Reads the arrays of files of golden numbers: {"shape", "data", "dtype"}, row-major, float32
// unless the dtype differs.
#pragma once

#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// Throws ValueError for other values and for a dtype that is not numeric.
Array golden_array(const Config& array);
// Returns an array of complex numbers, which are pairs, as one of real numbers with a last axis of
// 2; any other array unchanged.
Config without_complex(const Config& array);
// Returns a tensor of the array's dtype, including strings; an empty tensor for null.
Tensor golden_tensor(const Config& array);
std::vector<Tensor> golden_tensors(const Config& list);

// Returns a config in the form that classes read. The program that wrote the files wrote array
// parameters as text, "tensor([0.5000, 0.2000])"; they become lists.
Config golden_config(const Config& config);

}  // namespace keel::conformance
