// Parsing of the layer calls in the config of a functional graph, as Keras 2 and Keras 3 write
// them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/framework/config/config.h>
#include <keel/framework/nest_functions.h>
#include <keel/framework/tensor.h>

namespace keel {

// Refers to output `output` of call `call` of a layer, or holds a constant; includes an explicit
// mask.
struct GraphReference {
  std::string layer = {};
  int64_t call = 0;
  int64_t output = 0;
  std::optional<Tensor> constant = {};
  std::shared_ptr<GraphReference> mask = {};
};
using GraphReferences = Nest<GraphReference>;

// A call of a layer, with the inputs in the structure that the layer's call() accepts.
struct GraphCall {
  GraphReferences inputs;
  CallOptions options = {};
};

// A call of an operator: its tensors, and its arguments with placeholders for them
// (operator_arguments.h). Positional arguments have their numbers as names.
struct OperatorNode {
  GraphReferences tensors;  // a list
  Config arguments;
};

// Parses the parts of a graph's config. Throws ValueError, prefixed with `caller`, for malformed
// configs, and NotImplementedError for unsupported features.
class GraphParser {
 public:
  explicit GraphParser(std::string caller) : caller_(std::move(caller)) {}

  // Throws ValueError with the caller's prefix.
  template <class... Args>
  [[noreturn]] void fail(const Args&... args) const {
    throw ValueError(caller_, ": ", args...);
  }

  // Return a field of a dict. Throw ValueError if it is missing or has another type.
  const Config& field(const Config& config, const char* key) const;
  const Config::List& list(const Config& config, const char* key) const;
  const std::string& text(const Config& config, const char* key) const;

  // Parses one call of a layer in either form: {"args", "kwargs"}, or a list of [layer, call,
  // output, keywords], where the keywords of the last item apply. Arguments are matched by the
  // call_signature of the class. Errors name the layer and the argument.
  GraphCall call(const Config& node, const std::string& layer, const std::string& class_name) const;
  // Parses one call of an operator, in the form {"args", "kwargs"} of Keras 3 or in that of
  // TensorFlow's operators in Keras 2, where the first argument stands alone or in a list.
  OperatorNode operator_call(const Config& node) const;
  // Parses the inputs or outputs of the model.
  GraphReferences ends(const Config& config) const;
  // Parses a structure of tensors and constants.
  GraphReferences structure(const Config& config) const;

 private:
  GraphReferences::Items children(const Config::List& items) const;
  GraphReference reference(const Config& config) const;
  GraphReference constant(const Config& config) const;
  Shape array(const Config& config, std::vector<double>& values, bool& integers) const;

  const std::string caller_;
};

}  // namespace keel

extern template class keel::Nest<keel::GraphReference>;
extern template std::vector<keel::GraphReferences>::~vector();
extern template std::vector<keel::GraphReferences>::vector(
    const std::vector<keel::GraphReferences>& other);
