#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <spawn.h>
#include <sys/wait.h>

#include <keel/distribute/process_group.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/visualization/internal/shape_text.h>
#include <keel/layers/visualization/internal/xml_text.h>
#include <keel/layers/visualization/visualization.h>

namespace keel {
namespace {

constexpr char kCaller[] = "plot_model";

std::string dtype_text(const Specs& specs) {
  return absl::StrJoin(flatten(specs), ", ",
                       [](std::string* out, const TensorSpec& spec) { *out += str(spec.dtype); });
}

// Unwraps a list of one: ops list their operands and results even if there is only one.
Specs without_list_of_one(const Specs& specs) {
  return specs.is_sequence() && specs.items().size() == 1 ? specs[0] : specs;
}

// The specs shown in a node; unset if unknown.
struct NodeSpecs {
  std::optional<Specs> inputs = {}, outputs = {};
};

// The nodes through which tensors enter and leave a part of the graph.
struct Ends {
  std::vector<std::string> entries, exits;
};

// Builds the DOT text of a model.
class Drawing {
 public:
  explicit Drawing(const PlotModelOptions& options) : options_(options) {}

  std::string draw(const Model& model) {
    add(model, "  ");
    std::string out = absl::StrCat(
        "digraph model {\n  graph [rankdir=", options_.rankdir, ", dpi=", options_.dpi,
        ", fontname=\"Helvetica\"];\n  node [shape=plaintext, margin=0, fontname=\"Helvetica\", ",
        "fontsize=12];\n  edge [color=\"#555555\"];\n");
    out += text_;
    for (const auto& [from, to] : edges_) absl::StrAppend(&out, "  ", from, " -> ", to, ";\n");
    return out + "}\n";
  }

 private:
  Ends add(const Model& model, const std::string& indent) {
    if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
      return add_functional(*functional, indent);
    }
    if (const auto* sequential = dynamic_cast<const SequentialModel*>(&model)) {
      return add_sequential(*sequential, indent);
    }
    return add_operation(model, {}, indent);
  }

  Ends add_functional(const FunctionalModel& model, const std::string& indent) {
    for (const auto& node : model.nodes()) {
      NodeSpecs specs = {.outputs = without_list_of_one(node->output_specs)};
      if (!flatten(node->inputs).empty()) {
        specs.inputs = without_list_of_one(specs_of(node->inputs));
      }
      const Ends ends = add_operation(*node->operation, specs, indent);
      size_t position = 0;
      for (const TensorLike& input : flatten(node->inputs)) {
        const GraphNode* producer = input.values().producer().get();
        const size_t entry = std::min(position++, ends.entries.size() - 1);
        if (producer != nullptr && producer != node.get()) {
          connect(exit_of(input), ends.entries[entry]);
        }
      }
    }
    Ends ends;
    for (const TensorLike& input : flatten(model.inputs())) ends.entries.push_back(exit_of(input));
    for (const TensorLike& output : flatten(model.outputs())) ends.exits.push_back(exit_of(output));
    return ends;
  }

  Ends add_sequential(const SequentialModel& model, const std::string& indent) {
    const auto layers = model.layers();
    const auto built = [](const auto& layer) { return layer->built(); };
    std::optional<Specs> specs;
    if (model.input_spec() && std::ranges::all_of(layers, built)) specs = *model.input_spec();
    if (layers.empty()) return add_operation(model, {}, indent);
    Ends all;
    for (const auto& layer : layers) {
      NodeSpecs of_layer = {.inputs = specs};
      if (specs) specs = of_layer.outputs = layer->compute_output_spec(*specs);
      const Ends ends = add_operation(*layer, of_layer, indent);
      if (all.entries.empty()) {
        all.entries = ends.entries;
      } else {
        connect(all.exits[0], ends.entries[0]);
      }
      all.exits = ends.exits;
    }
    return all;
  }

  // Adds a node, or a box of nodes for a nested model that is expanded, unless it exists already.
  Ends add_operation(const Operation& operation, const NodeSpecs& specs,
                     const std::string& indent) {
    if (const auto it = drawn_.find(&operation); it != drawn_.end()) return it->second;
    Ends ends;
    const auto* model = dynamic_cast<const Model*>(&operation);
    const bool has_layers = dynamic_cast<const FunctionalModel*>(model) != nullptr ||
                            dynamic_cast<const SequentialModel*>(model) != nullptr;
    if (options_.expand_nested && has_layers && !model->layers().empty()) {
      absl::StrAppend(&text_, indent, "subgraph cluster_", boxes_++, " {\n", indent, "  label=\"",
                      model->name(), "\";\n", indent, "  style=rounded;\n");
      ends = add(*model, indent + "  ");
      text_ += indent + "}\n";
    } else {
      const std::string id = absl::StrCat("node_", drawn_.size());
      absl::StrAppend(&text_, indent, id, " [label=<", label(operation, specs), ">];\n");
      ends = {.entries = {id}, .exits = {id}};
    }
    drawn_.emplace(&operation, ends);
    return ends;
  }

  std::string exit_of(const TensorLike& tensor) const {
    const std::vector<std::string>& exits =
        drawn_.at(tensor.values().producer()->operation.get()).exits;
    const auto output = static_cast<size_t>(tensor.values().producer_output());
    return exits[std::min(output, exits.size() - 1)];
  }

  void connect(const std::string& from, const std::string& to) {
    const std::pair<std::string, std::string> edge(from, to);
    if (std::ranges::find(edges_, edge) == edges_.end()) edges_.push_back(edge);
  }

  static std::string row(const std::string& cell) {
    return absl::StrCat("<tr><td>", cell, "</td></tr>");
  }

  std::string label(const Operation& operation, const NodeSpecs& specs) const {
    const auto* layer = dynamic_cast<const Layer*>(&operation);
    const bool named = options_.show_layer_names && layer != nullptr;
    const std::string title =
        named ? absl::StrCat("<b>", xml_escaped(layer->name()), "</b> (",
                             xml_escaped(operation.class_name()), ")")
              : absl::StrCat("<b>", xml_escaped(operation.class_name()), "</b>");
    std::string out = absl::StrCat(
        "<table border=\"0\" cellborder=\"1\" cellspacing=\"0\" cellpadding=\"6\">",
        "<tr><td bgcolor=\"#1f2d3d\"><font color=\"white\">", title, "</font></td></tr>");
    if (layer != nullptr && options_.show_layer_activations) {
      const std::string activation = activation_of(*layer);
      if (!activation.empty()) out += row("Activation: " + xml_escaped(activation));
    }
    const auto shape = [](const std::optional<Specs>& s) { return s ? shape_text(*s) : "?"; };
    const bool is_input = dynamic_cast<const InputLayer*>(layer) != nullptr;
    if (options_.show_shapes) {
      if (!is_input) out += row("Input shape: " + xml_escaped(shape(specs.inputs)));
      out += row("Output shape: " + xml_escaped(shape(specs.outputs)));
    }
    if (options_.show_dtype) {
      out += row("Output dtype: " + (specs.outputs ? dtype_text(*specs.outputs) : "?"));
    }
    if (options_.show_trainable && layer != nullptr) {
      out += row(layer->trainable() ? "Trainable" : "Non-trainable");
    }
    return out + "</table>";
  }

  // Returns the name of the activation, such as "relu"; empty if the layer has none or no config.
  static std::string activation_of(const Layer& layer) {
    Config config;
    try {
      config = layer.get_config();
    } catch (const NotImplementedError&) {
      return "";
    }
    const Config* activation = config.find("activation");
    if (activation == nullptr || activation->is_null()) return "";
    if (activation->is_string()) return activation->string();
    const Config* name = activation->is_dict() ? activation->find("class_name") : nullptr;
    return name != nullptr && name->is_string() ? name->string() : "";
  }

  const PlotModelOptions& options_;
  std::string text_;
  int boxes_ = 0;
  std::map<const Operation*, Ends> drawn_;
  std::vector<std::pair<std::string, std::string>> edges_;
};

void write_text(const std::string& path, const std::string& text) {
  try {
    write_text_file(path, text);
  } catch (const IoError& error) {
    throw IoError(kCaller, ": cannot write the file ", error.what());
  }
}

void run_graphviz(const std::string& format, const std::string& text, const std::string& to_file) {
  const TemporaryFile source((std::filesystem::temp_directory_path() / "keel_plot").string(),
                             TemporaryFile::kPrivate);
  source.write(0, text);
  std::vector<std::string> words = {"dot", "-T" + format, "-o", to_file, source.path()};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  if (posix_spawnp(&process, "dot", nullptr, nullptr, arguments.data(), environ) != 0) {
    throw RuntimeError(kCaller, ": Graphviz's program 'dot' is required to draw '", to_file,
                       "' but is not installed; install Graphviz or write a '.dot' file");
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw RuntimeError(kCaller, ": Graphviz's program 'dot' failed to draw '", to_file, "'");
  }
}

}  // namespace

std::string model_to_dot(const Model& model, const PlotModelOptions& options) {
  static const std::set<std::string> kDirections = {"TB", "BT", "LR", "RL"};
  if (!kDirections.contains(options.rankdir)) {
    throw ValueError(kCaller, ": rankdir must be 'TB', 'BT', 'LR' or 'RL', received '",
                     options.rankdir, "'");
  }
  if (options.dpi < 1) throw ValueError(kCaller, ": dpi must be positive, received ", options.dpi);
  return Drawing(options).draw(model);
}

void plot_model(const Model& model, const PlotModelOptions& options) {
  const std::string suffix = std::filesystem::path(options.to_file).extension().string();
  static const std::set<std::string> kSuffixes = {".dot", ".gv", ".png", ".svg", ".pdf", ".jpg"};
  if (!kSuffixes.contains(suffix)) {
    throw ValueError(kCaller,
                     ": to_file must end in .dot, .gv, .png, .svg, .pdf or .jpg, received '",
                     options.to_file, "'");
  }
  const std::string text = model_to_dot(model, options);
  if (distribute::processes().rank() != 0) return;
  if (suffix == ".dot" || suffix == ".gv") return write_text(options.to_file, text);
  run_graphviz(suffix.substr(1), text, options.to_file);
}

}  // namespace keel
