// keel plot: draws a model.
#include <iostream>

#include <keel/layers/visualization/plot_model.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/model_file.h>

namespace keel::tool {
namespace {

int run(const Arguments& arguments) {
  const std::string& out = arguments.operand(1);
  plot_model(*load_whole_model("keel plot", arguments.operand(0)).model,
             {.to_file = out,
              .show_shapes = arguments.has("show_shapes"),
              .show_dtype = arguments.has("show_dtype"),
              .show_layer_names = arguments.has("show_layer_names"),
              .rankdir = arguments.value("rankdir").value_or("TB"),
              .expand_nested = arguments.has("expand_nested"),
              .dpi = arguments.integer("dpi", 200, 1),
              .show_layer_activations = arguments.has("show_layer_activations"),
              .show_trainable = arguments.has("show_trainable")});
  std::cout << "wrote " << out << '\n';
  return 0;
}

}  // namespace

Command plot_command() {
  return {.syntax = {.command = "plot",
                     .operands = {"MODEL", "OUT"},
                     .flags = {{"show_shapes", {}, "show the shapes of inputs and outputs"},
                               {"show_dtype", {}, "show the dtypes of outputs"},
                               {"show_layer_names", {}, "show layer names in addition to classes"},
                               {"show_layer_activations", {}, "show the activations of layers"},
                               {"show_trainable", {}, "show which layers are trainable"},
                               {"expand_nested", {}, "draw the layers of nested models"},
                               {"rankdir", {"TB|BT|LR|RL"}, "direction of the graph; default TB"},
                               {"dpi", {"N"}, "resolution of bitmap pictures; default 200"}}},
          .summary = "draws the layers of a model and their connections",
          .details =
              "OUT is a picture (.svg, .png, .pdf or .jpg), which requires Graphviz, or\n"
              "Graphviz text (.dot).",
          .run = run};
}

}  // namespace keel::tool
