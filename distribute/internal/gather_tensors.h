// gather_tensors() collects the tensors of all processes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <keel/distribute/process_group.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

// Returns the tensors that all processes pass, those of rank 0 first. Number, shapes and dtypes may
// differ between processes. Collective with label `what`. Throws TypeError for strings.
std::vector<Tensor> gather_tensors(ProcessGroup& group, std::string_view what,
                                   std::span<const Tensor> mine);

}  // namespace keel::distribute
