// keel plot: draws a model.
#include <iostream>

#include <keel/layers/visualization/visualization.h>
#include <keel/savedmodel/tool/commands.h>
#include <keel/savedmodel/tool/model_file.h>

namespace keel::tool {
namespace {

struct PlotFlags {
  std::string model;
  PlotModelOptions plot;
};

int run(const PlotFlags& flags) {
  plot_model(*load_whole_model("keel plot", flags.model).model, flags.plot);
  std::cout << "wrote " << flags.plot.to_file << '\n';
  return 0;
}

}  // namespace

void add_plot(CommandLine& keel) {
  CommandLine& command =
      keel.add_command("plot", "Draws the layers of a model and their connections.");
  const auto flags = std::make_shared<PlotFlags>();
  command.argument("MODEL", &flags->model, "model file");
  command.argument("OUT", &flags->plot.to_file,
                   "picture (.svg, .png, .pdf or .jpg), which requires Graphviz, or Graphviz text "
                   "(.dot)");
  command.option("--show_shapes", &flags->plot.show_shapes,
                 "show the shapes of inputs and outputs");
  command.option("--show_dtype", &flags->plot.show_dtype, "show the dtypes of outputs");
  command.option("--show_layer_names", &flags->plot.show_layer_names,
                 "show layer names in addition to classes");
  command.option("--show_layer_activations", &flags->plot.show_layer_activations,
                 "show the activations of layers");
  command.option("--show_trainable", &flags->plot.show_trainable,
                 "show which layers are trainable");
  command.option("--expand_nested", &flags->plot.expand_nested, "draw the layers of nested models");
  command.option("--rankdir", &flags->plot.rankdir, "direction of the graph",
                 {.allowed = {"TB", "BT", "LR", "RL"}});
  command.option("--dpi", &flags->plot.dpi, "resolution of bitmap pictures",
                 {.placeholder = "N=200", .limits = {.least = 1}});
  command.set_run([flags] { return run(*flags); });
}

}  // namespace keel::tool
