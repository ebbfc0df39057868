// Conversion of operators in Keras 3 graphs (x * y, keras.ops), which are not layers in Keras, to
// layers of this library.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// The layer that replaces an operator, and the inputs to call it with.
struct OperatorCall {
  Config layer;  // {"class_name", "config"}
  Tensors inputs;
};

// Returns true if an entry of a graph is such an operator. The test uses its module or, in legacy
// files that have none, its class.
bool is_operator(const Config& entry);

// Returns the layer call equivalent to an operator of a graph, called with `arguments` (see
// OperatorNode) and the tensors that they refer to. The operator is a class of Keras 3 with its
// config, or a TFOpLambda or SlicingOpLambda of Keras 2 with the name of its function, or a
// TensorFlowOpLayer with a node of TensorFlow's graph.
//
// Arithmetic on tensors of the same rank or on a tensor and a constant, concatenation, reshaping
// and activations become layers of Keras. Other functions that operator_function() has become an
// OperatorLayer. Throws NotImplementedError, prefixed with `caller` and naming the operator, for
// the rest.
OperatorCall layer_for_operator(const std::string& caller, const std::string& class_name,
                                const Config& config, const Config& arguments,
                                const std::vector<Tensor>& tensors);

// The functions above. They belong to the library keel_catalog, whose functions of keras.ops
// compute the operators; without it, is_operator() recognizes most operators and
// layer_for_operator() throws NotImplementedError.
struct GraphOperators {
  decltype(&is_operator) recognizes;
  decltype(&layer_for_operator) convert;
};
extern const GraphOperators kCatalogOperators;
// Sets the functions; keel_catalog calls it when it adds its layers to layer_registry().
void set_graph_operators(const GraphOperators& operators);

}  // namespace keel
