// The calls of layers in the config of a functional graph, as Keras 2 and Keras 3 write them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/framework/config/config.h>
#include <keel/framework/nest.h>
#include <keel/framework/tensor.h>

namespace keel {

// Output `output` of call `call` of a layer, or a constant; with the mask that it is given.
struct GraphReference {
  std::string layer = {};
  int64_t call = 0;
  int64_t output = 0;
  std::optional<Tensor> constant = {};
  std::shared_ptr<GraphReference> mask = {};
};
using GraphReferences = Nest<GraphReference>;

// A call of a layer: the inputs as the layer here takes them.
struct GraphCall {
  GraphReferences inputs;
  CallOptions options = {};
};

// Reads the parts of a graph's config. Mistakes are ValueErrors that begin with `caller`, what is
// not offered is a NotImplementedError.
class GraphParser {
 public:
  explicit GraphParser(std::string caller) : caller_(std::move(caller)) {}

  template <class... Args>
  [[noreturn]] void fail(const Args&... args) const {
    throw ValueError(caller_, ": ", args...);
  }

  const Config& field(const Config& config, const char* key) const;
  const Config::List& list(const Config& config, const char* key) const;
  const std::string& text(const Config& config, const char* key) const;

  // One call of a layer in either form: {"args", "kwargs"}, or a list of [layer, call, output,
  // keywords], where the keywords of the last one count. Arguments are those of the class's
  // call_signature; an error about one names the layer and the argument.
  GraphCall call(const Config& node, const std::string& layer, const std::string& class_name) const;
  // Inputs or outputs of the model.
  GraphReferences ends(const Config& config) const;
  // Tensors and constants, in any structure.
  GraphReferences structure(const Config& config) const;

 private:
  GraphReferences::Items children(const Config::List& items) const;
  GraphReference reference(const Config& config) const;
  GraphReference constant(const Config& config) const;
  Shape array(const Config& config, std::vector<double>& values, bool& integers) const;

  const std::string caller_;
};

}  // namespace keel
