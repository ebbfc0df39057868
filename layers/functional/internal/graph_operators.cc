#include <keel/layers/functional/internal/functional_operators.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constinit const GraphOperators* graph_operators = nullptr;

// Returns the functions of keel_catalog, which sets them when it adds its layers, or null.
const GraphOperators* linked_operators() {
  layer_registry();
  return graph_operators;
}

}  // namespace

void set_graph_operators(const GraphOperators& operators) { graph_operators = &operators; }

bool is_operator(const Config& entry) {
  if (const auto* const linked = linked_operators()) return linked->recognizes(entry);
  const Config* const module = entry.find("module");
  return module != nullptr && module->is_string() && module->string().starts_with("keras.src.ops");
}

OperatorCall layer_for_operator(const std::string& caller, const std::string& class_name,
                                const Config& config, const Config& arguments,
                                const std::vector<Tensor>& tensors) {
  const GraphOperators* const linked = linked_operators();
  if (linked == nullptr) {
    throw NotImplementedError(caller, ": the operator ", class_name,
                              " of the graph requires the library keel_catalog; link keel::keel");
  }
  return linked->convert(caller, class_name, config, arguments, tensors);
}

}  // namespace keel
