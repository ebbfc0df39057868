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
                     .flags = {{"show_shapes", {}, "of inputs and outputs"},
                               {"show_dtype", {}, "of outputs"},
                               {"show_layer_names", {}, "beside the classes"},
                               {"show_layer_activations", {}, "of layers that have one"},
                               {"show_trainable", {}, "which layers are"},
                               {"expand_nested", {}, "draw the layers of models inside"},
                               {"rankdir", {"TB|BT|LR|RL"}, "from where to where; TB"},
                               {"dpi", {"N"}, "of pictures made of dots; 200"}}},
          .summary = "draws a model's layers and how they are connected",
          .details =
              "OUT is a picture, .svg, .png, .pdf or .jpg, for which Graphviz must be\n"
              "installed; or its text, .dot.",
          .run = run};
}

}  // namespace keel::tool
