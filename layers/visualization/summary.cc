#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <optional>

#include <keel/framework/update_rule.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/layers/visualization/internal/shape_text.h>
#include <keel/layers/visualization/internal/text_table.h>
#include <keel/layers/visualization/visualization.h>
#include <keel/optimizers/step/optimizer_slots.h>

namespace keel {
namespace {

struct Parameters {
  int64_t count = 0, bytes = 0;
};

struct ParameterCounts {
  Parameters trainable, other;
};

ParameterCounts parameters_of(const Layer& layer) {
  ParameterCounts out;
  for_each_state_entry(layer, [&](const std::string&, const StateEntry& entry) {
    if (entry.kind != StateEntry::Kind::kWeight) return;
    // The ids of a table with dynamic ids are not parameters.
    if (entry.any_rows && entry.spec.dtype != DType::kFloat32) return;
    Parameters& part = entry.trainable ? out.trainable : out.other;
    part.count += entry.spec.shape.size();
    part.bytes += entry.spec.shape.size() * static_cast<int64_t>(size_of(entry.spec.dtype));
  });
  return out;
}

// Counts the state of an optimizer that has taken a step: slots, iteration and learning rate.
std::optional<Parameters> optimizer_parameters(const Model& model) {
  const auto optimizer = model.optimizer();
  if (optimizer == nullptr || optimizer->iterations() == 0) return {};
  Parameters out;
  std::vector<Variable> scalars = optimizer->wrapper_variables();
  const auto add_scalars_of = [&](const Optimizer& own) {
    out.count += 2;
    out.bytes += static_cast<int64_t>(sizeof(int64_t) + sizeof(float));
    scalars.insert(scalars.end(), own.shared_slots().begin(), own.shared_slots().end());
  };
  const std::vector<OptimizerHandle> several = optimizer->optimizers();
  for (const OptimizerHandle& own : several) add_scalars_of(*own);
  if (several.empty()) add_scalars_of(*optimizer);
  for (const Variable& scalar : scalars) {
    out.count += 1;
    out.bytes += static_cast<int64_t>(size_of(scalar.dtype()));
  }
  for (const Variable& variable : model.trainable_variables()) {
    if (variable.is_virtual()) continue;
    int64_t size = 0;
    const Optimizer& own = optimizer->optimizer_of(variable);
    for (size_t s = 0; s < own.slot_specs().size(); ++s) {
      const auto shape = slot_shape(own.rule(), s, variable);
      if (shape) size += shape->size();
    }
    out.count += size;
    out.bytes += size * static_cast<int64_t>(size_of(variable.dtype()));
  }
  return out;
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return digits;
}

// The calls of layers inside a model: their output shapes and the sources of their inputs.
class Calls {
 public:
  explicit Calls(const Model& model) {
    if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
      for (const auto& node : functional->nodes()) nodes_[node->operation.get()].push_back(&*node);
      for (const auto& node : functional->nodes()) {
        branches_ = branches_ || sources(*node).size() > 1;
      }
      for (const auto& [operation, nodes] : nodes_) branches_ = branches_ || nodes.size() > 1;
    } else if (const auto* sequential = dynamic_cast<const SequentialModel*>(&model)) {
      const auto built = [](const auto& layer) { return layer->built(); };
      if (sequential->input_spec() && std::ranges::all_of(model.layers(), built)) {
        follow(*sequential);
      }
    }
  }

  bool branches() const { return branches_; }

  std::string output_shape(const Layer& layer) const {
    if (const auto it = nodes_.find(&layer); it != nodes_.end()) {
      return shape_text(it->second[0]->output_specs);
    }
    const auto it = outputs_.find(&layer);
    return it == outputs_.end() ? "?" : shape_text(it->second);
  }

  std::string connected_to(const Layer& layer) const {
    const auto it = nodes_.find(&layer);
    std::vector<std::string> all;
    if (it != nodes_.end()) {
      for (const GraphNode* node : it->second) {
        for (const std::string& source : sources(*node)) all.push_back(source);
      }
    }
    return all.empty() ? "-" : absl::StrJoin(all, ", ");
  }

 private:
  void follow(const SequentialModel& model) {
    Specs specs = *model.input_spec();
    for (const auto& layer : model.layers()) {
      specs = layer->compute_output_spec(specs);
      outputs_[&*layer] = specs;
    }
  }

  // Returns the layers that provide the inputs of a node, looking through ops.
  std::vector<std::string> sources(const GraphNode& node) const {
    std::vector<std::string> out;
    for (const TensorLike& input : flatten(node.inputs)) {
      const GraphNode* producer = input.values().producer().get();
      if (producer == nullptr || producer == &node) continue;
      std::vector<std::string> found;
      if (const auto* layer = dynamic_cast<const Layer*>(producer->operation.get())) {
        found = {absl::StrCat(layer->name(), "[", number(*producer), "][",
                              input.values().producer_output(), "]")};
      } else {
        found = sources(*producer);
      }
      for (const std::string& source : found) {
        if (std::ranges::find(out, source) == out.end()) out.push_back(source);
      }
    }
    return out;
  }

  // Returns the index of a node among the calls of its layer.
  size_t number(const GraphNode& node) const {
    const auto& all = nodes_.at(node.operation.get());
    return static_cast<size_t>(std::ranges::find(all, &node) - all.begin());
  }

  std::map<const Operation*, std::vector<const GraphNode*>> nodes_;
  std::map<const Layer*, Specs> outputs_;
  bool branches_ = false;
};

std::string trainable_mark(const Layer& layer, const ParameterCounts& counts) {
  if (counts.trainable.count + counts.other.count == 0) return "-";
  return layer.trainable() ? "Y" : "N";
}

bool is_known(const Layer& layer) {
  return layer.built() || dynamic_cast<const InputLayer*>(&layer) != nullptr;
}

void add_rows(const Model& model, const SummaryOptions& options, bool connections, size_t level,
              std::vector<std::vector<std::string>>& rows) {
  const Calls calls(model);
  const std::string prefix = level == 0 ? "" : std::string(3 * level, ' ') + "└ ";
  for (const auto& layer : model.layers()) {
    const ParameterCounts counts = parameters_of(*layer);
    std::vector<std::string> row = {
        absl::StrCat(prefix, layer->name(), " (", layer->class_name(), ")"),
        calls.output_shape(*layer),
        is_known(*layer) ? with_commas(counts.trainable.count + counts.other.count)
                         : "0 (unbuilt)"};
    if (connections) row.push_back(calls.connected_to(*layer));
    if (options.show_trainable) row.push_back(trainable_mark(*layer, counts));
    rows.push_back(std::move(row));
    const auto* inner = dynamic_cast<const Model*>(layer.shared().get());
    if (options.expand_nested && inner != nullptr) {
      add_rows(*inner, options, connections, level + 1, rows);
    }
  }
}

void print_total(const char* what, const Parameters& part, std::ostream& out) {
  out << ' ' << what << " params: " << with_commas(part.count) << " (" << format_bytes(part.bytes)
      << ")\n";
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return absl::StrFormat("%.2f %s", size, kUnits[unit]);
}

void summary(const Model& model, const SummaryOptions& options, std::ostream& out) {
  if (options.line_length < 40) {
    throw ValueError("summary: line_length must be at least 40, received ", options.line_length);
  }
  const bool connections = Calls(model).branches();
  std::vector<TextColumn> columns = {{.title = "Layer (type)"},
                                     {.title = "Output Shape"},
                                     {.title = "Param #", .right_aligned = true, .wraps = false}};
  if (connections) columns.push_back({.title = "Connected to"});
  if (options.show_trainable) columns.push_back({.title = "Trainable", .wraps = false});
  std::vector<std::vector<std::string>> rows;
  add_rows(model, options, connections, 0, rows);

  out << "Model: \"" << model.name() << "\"\n";
  print_table(columns, rows, options.line_length, out);
  const ParameterCounts counts = parameters_of(model);
  const std::optional<Parameters> of_optimizer = optimizer_parameters(model);
  Parameters total = of_optimizer.value_or(Parameters());
  for (const Parameters& part : {counts.trainable, counts.other}) {
    total.count += part.count;
    total.bytes += part.bytes;
  }
  print_total("Total", total, out);
  print_total("Trainable", counts.trainable, out);
  print_total("Non-trainable", counts.other, out);
  if (of_optimizer) print_total("Optimizer", *of_optimizer, out);
}

void summary(const Model& model, const SummaryOptions& options) {
  summary(model, options, std::cout);
}

}  // namespace keel
