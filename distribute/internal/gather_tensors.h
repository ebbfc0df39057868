// Brings the tensors of all processes together.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <keel/distribute/process_group.h>
#include <keel/framework/tensor.h>

namespace keel::distribute {

// The tensors that all processes pass, those of rank 0 first; they may differ in number, shape and
// dtype. Collective; `what` is its label. TypeError for strings.
std::vector<Tensor> gather_tensors(ProcessGroup& group, std::string_view what,
                                   std::span<const Tensor> mine);

}  // namespace keel::distribute
