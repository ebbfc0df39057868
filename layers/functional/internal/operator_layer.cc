#include <keel/layers/functional/internal/operator_layer.h>

#include <algorithm>

#include <keel/autodiff/tape.h>
#include <keel/layers/functional/internal/functional_operators.h>
#include <keel/layers/functional/internal/operator_functions.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Inputs with more elements are not sampled.
constexpr int64_t kLargestSample = int64_t{1} << 28;

// Returns zeros with `size` in place of unknown dimensions.
Tensor sample(const Tensor& x, int64_t size, const std::string& layer) {
  std::vector<int64_t> dims;
  int64_t room = kLargestSample;
  for (const int64_t dim : x.shape().dims()) {
    dims.push_back(dim == kUnknown ? size : dim);
    room /= std::max<int64_t>(dims.back(), 1);
  }
  if (room == 0) {
    throw ValueError("Operator ", layer, ": an input of shape ", x.shape(),
                     " is too large to infer the result's shape, ", "which takes at most ",
                     kLargestSample, " elements; write a layer for it");
  }
  return Tensor::zeros(Shape(dims), x.dtype());
}

// Returns the dimensions that two results share; the others are unknown.
Shape common(const Shape& a, const Shape& b) {
  std::vector<int64_t> dims;
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a[i] == b[i] ? a[i] : kUnknown);
  return Shape(dims);
}

}  // namespace

OperatorLayer::OperatorLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  const OperatorFunction* const function = operator_function(options_.function);
  if (function == nullptr) {
    throw NotImplementedError("Operator ", name(), ": the function '", options_.function,
                              "' has no counterpart here; write a layer for it");
  }
  const std::string unknown = unknown_argument(*function, options_.arguments);
  if (!unknown.empty()) {
    throw NotImplementedError("Operator ", name(), " (", options_.function, "): the argument '",
                              unknown, "' is not supported; write a layer for it");
  }
}

Tensors OperatorLayer::compute(const std::vector<Tensor>& inputs) const {
  try {
    return operator_function(options_.function)
        ->compute(OperatorArguments(options_.arguments, inputs));
  } catch (const ValueError& error) {
    throw ValueError("Operator ", name(), " (", options_.function, "): ", error.what());
  } catch (const TypeError& error) {
    throw TypeError("Operator ", name(), " (", options_.function, "): ", error.what());
  }
}

Tensors OperatorLayer::call(const Tensors& inputs, const CallContext&) {
  std::vector<Tensor> tensors;
  for (const TensorLike& t : flatten(inputs)) tensors.push_back(t.tensor());
  if (std::ranges::none_of(tensors, &Tensor::is_symbolic)) return compute(tensors);
  // Two results for different sizes of the unknown dimensions show which dimensions of the result
  // depend on them.
  const SuspendRecording suspended;
  std::vector<Tensor> small, large;
  for (const Tensor& t : tensors) {
    small.push_back(t.is_symbolic() ? sample(t, 2, name()) : t);
    large.push_back(t.is_symbolic() ? sample(t, 3, name()) : t);
  }
  const Tensors results = compute(small);
  const std::vector<TensorLike> others = flatten(compute(large));
  if (others.size() != flatten(results).size()) {
    throw ValueError("Operator ", name(), " (", options_.function,
                     "): the number of results depends on an unknown dimension");
  }
  size_t next = 0;
  return map_structure(results, [&](const TensorLike& t) -> TensorLike {
    const Tensor& other = others.at(next++).tensor();
    if (other.rank() != t.tensor().rank()) {
      throw ValueError("Operator ", name(), ": the rank of the result is not known");
    }
    return Tensor::symbolic(
        {.shape = common(t.tensor().shape(), other.shape()), .dtype = t.tensor().dtype()});
  });
}

Config OperatorLayer::get_config() const {
  return Config::dict({{"name", name()},
                       {"trainable", trainable()},
                       {"function", options_.function},
                       {"arguments", options_.arguments}});
}

std::shared_ptr<OperatorLayer> OperatorLayer::from_config(const Config& config) {
  Options options;
  for (const auto& [key, value] : config.entries()) {
    if (key == "name" && !value.is_null()) options.name = value.string();
    if (key == "trainable") options.trainable = value.boolean();
    if (key == "function") options.function = value.string();
    if (key == "arguments") {
      value.entries();  // throws for anything but a dict
      options.arguments = value;
    }
  }
  return std::make_shared<OperatorLayer>(std::move(options));
}

// Also provides the conversion of operators, which makes layers of this class.
namespace internal {
void register_OperatorLayer(Registry<Layer>& registry);
void register_OperatorLayer(Registry<Layer>& registry) {
  set_graph_operators(kCatalogOperators);
  registry.add_builtin<OperatorLayer>({});
}
}  // namespace internal

}  // namespace keel
