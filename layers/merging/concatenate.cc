#include "layers/merging/concatenate.h"

#include "autodiff/ops.h"
#include "layers/merging/merge.h"

namespace keel {

Tensors ConcatenateLayer::call(const Tensors& inputs, const CallContext&) {
  return ops::concat(merge_inputs(*this, inputs, 1), options_.axis);
}

}  // namespace keel
