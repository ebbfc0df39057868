// Shows models and training: summary() prints the layers of a model, plot_model() draws them, and
// plot_history() draws learning curves.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include <keel/layers/training/callback.h>
#include <keel/layers/training/model.h>

namespace keel {

// Options of summary.
struct SummaryOptions {
  int64_t line_length = 80;     // longer cells are wrapped; at least 40, otherwise ValueError
  bool expand_nested = false;   // also list the layers of nested models
  bool show_trainable = false;  // add a column with Y, N, or - for layers without parameters
};

// Prints the layers of a model as a table (keras.Model.summary): the name, class, output shape and
// number of parameters of each layer, and the total number of parameters with their size in memory.
//
// - Functional models with branches get a column with the layers that provide the inputs, as
//   "name[call][output]".
// - Unknown shapes are "?"; a layer that is not built has "0 (unbuilt)" parameters.
// - Tables of an embedding engine count with all their shards.
// - The slot variables of an optimizer that has taken a step are counted, too.
void summary(const Model& model, const SummaryOptions& options, std::ostream& out);
// Prints to the standard output.
void summary(const Model& model, const SummaryOptions& options = {});

// Returns a size with its unit: "215.04 KB".
std::string format_bytes(int64_t bytes);

// Options of plot_model and model_to_dot.
struct PlotModelOptions {
  // The file that plot_model writes. The suffixes ".dot" and ".gv" select Graphviz text, and
  // ".png", ".svg", ".pdf" and ".jpg" select an image.
  std::string to_file = "model.png";
  bool show_shapes = false;       // show the shapes of inputs and outputs
  bool show_dtype = false;        // show the dtypes of outputs
  bool show_layer_names = false;  // show the names next to the class names
  std::string rankdir = "TB";  // direction of the graph: "TB" (top to bottom), "BT", "LR" or "RL"
  bool expand_nested = false;  // draw the layers of nested models, in a box
  int64_t dpi = 200;           // resolution of raster images
  bool show_layer_activations = false;  // show the activations of layers that have one
  bool show_trainable = false;          // show which layers are trainable
};

// Returns the graph in Graphviz's DOT language: one node for each layer and op of a functional or
// sequential model, and one edge for each tensor between them. Any other model is a single node.
// Unknown shapes are "?". Throws ValueError for an unknown rankdir and for dpi < 1.
std::string model_to_dot(const Model& model, const PlotModelOptions& options = {});

// Draws the graph of a model's layers (keras.utils.plot_model) and writes it to options.to_file.
// Images are drawn by Graphviz's program `dot`. Throws RuntimeError if `dot` is not installed or
// fails, ValueError for an unknown suffix, and IoError if the file cannot be written. In a job of
// several processes rank 0 writes.
void plot_model(const Model& model, const PlotModelOptions& options = {});

// Options of plot_history.
struct HistoryPlotOptions {
  std::string title = {};               // empty: no title
  std::vector<std::string> names = {};  // without "val_"; empty: all names, the loss first
  bool log_scale = false;  // log scale of the values; values that are not positive are omitted
};

// Returns an SVG document with one panel per name. A panel shows the values over the epochs,
// counted from 1, as a line, and the validation values as a second line. Throws ValueError, listing
// the known names, for a name that the history does not have, and for a history without epochs.
std::string history_svg(const History& history, const HistoryPlotOptions& options = {});
// Writes history_svg() to a file. Throws the same errors, and IoError if the file cannot be
// written.
void plot_history(const History& history, const std::filesystem::path& path,
                  const HistoryPlotOptions& options = {});

}  // namespace keel
