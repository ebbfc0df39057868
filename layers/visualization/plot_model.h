// plot_model: draws the graph of a model's layers (keras.utils.plot_model).
#pragma once

#include <string>

#include <keel/layers/training/model.h>

namespace keel {

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

// Writes the graph to options.to_file. Images are drawn by Graphviz's program `dot`. Throws
// RuntimeError if `dot` is not installed or fails, ValueError for an unknown suffix, and IoError if
// the file cannot be written. In a job of several processes rank 0 writes.
void plot_model(const Model& model, const PlotModelOptions& options = {});

}  // namespace keel
