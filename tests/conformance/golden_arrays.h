// What files of golden numbers hold: arrays {"shape", "data", "dtype"}, row-major, float32 unless
// the dtype says otherwise.
#pragma once

#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// ValueError for anything but such an array, and for a dtype that is no number.
Array golden_array(const Config& array);
// Of its dtype, strings too. An empty tensor for null.
Tensor golden_tensor(const Config& array);
std::vector<Tensor> golden_tensors(const Config& list);

// A config as a class reads it: where the program that wrote the file had an array among the
// parameters there is its text, "tensor([0.5000, 0.2000])", which becomes a list.
Config golden_config(const Config& config);

}  // namespace keel::conformance
