// Containers of tensors that most sources copy and destroy, so that one source generates their
// code.

#include <keel/framework/tensor_like.h>

template std::vector<keel::Tensor>::~vector();
template std::vector<keel::Tensor>::vector(const std::vector<keel::Tensor>& other);
template std::vector<keel::Tensor>& std::vector<keel::Tensor>::operator=(
    const std::vector<keel::Tensor>& other);
template class keel::Nest<keel::TensorLike>;
template class keel::Nest<keel::TensorSpec>;
template std::vector<keel::TensorLike>::~vector();
template std::vector<keel::TensorLike>::vector(const std::vector<keel::TensorLike>& other);
template std::vector<keel::Tensors>::~vector();
template std::vector<keel::Tensors>::vector(const std::vector<keel::Tensors>& other);
template std::vector<keel::Specs>::~vector();
template std::vector<keel::Specs>::vector(const std::vector<keel::Specs>& other);
namespace keel {
template std::vector<TensorLike> flatten(const Nest<TensorLike>& nest);
template Tensors nest_internal::map_leaves(NodeView nest, FunctionRef<TensorLike(const void*)> fn);
template Specs nest_internal::map_leaves(NodeView nest, FunctionRef<TensorSpec(const void*)> fn);
}  // namespace keel
