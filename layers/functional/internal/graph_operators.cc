#include <keel/layers/functional/internal/functional_operators.h>

namespace keel {
namespace {

constinit const GraphOperators* graph_operators = nullptr;

}  // namespace

void set_graph_operators(const GraphOperators& operators) { graph_operators = &operators; }

bool is_operator(const Config& entry) {
  if (graph_operators != nullptr) return graph_operators->recognizes(entry);
  const Config* const module = entry.find("module");
  return module != nullptr && module->is_string() && module->string().starts_with("keras.src.ops");
}

OperatorCall layer_for_operator(const std::string& caller, const std::string& class_name,
                                const Config& config, const Config& arguments,
                                const std::vector<Tensor>& tensors) {
  if (graph_operators == nullptr) {
    throw NotImplementedError(caller, ": the operator ", class_name,
                              " of the graph requires the library keel_catalog; link keel::keel");
  }
  return graph_operators->convert(caller, class_name, config, arguments, tensors);
}

}  // namespace keel
