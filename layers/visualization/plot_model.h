// plot_model: a picture of a model's layers and how they are connected (keras.utils.plot_model).
#pragma once

#include <string>

#include <keel/layers/training/model.h>

namespace keel {

struct PlotModelOptions {
  // Of plot_model. ".dot" and ".gv" files are text; ".png", ".svg", ".pdf" and ".jpg" are pictures.
  std::string to_file = "model.png";
  bool show_shapes = false;             // of inputs and outputs
  bool show_dtype = false;              // of outputs
  bool show_layer_names = false;        // beside the classes
  std::string rankdir = "TB";           // from top to bottom; or "BT", "LR" or "RL"
  bool expand_nested = false;           // draw the layers of models inside, in a box
  int64_t dpi = 200;                    // of pictures made of dots
  bool show_layer_activations = false;  // of layers that have one
  bool show_trainable = false;
};

// The picture in Graphviz's language: a node for each layer and for each op of a functional model,
// an edge for each tensor between them. A model that is neither functional nor sequential is one
// node. Shapes that nobody knows yet are "?". ValueError for another rankdir or a dpi below 1.
std::string model_to_dot(const Model& model, const PlotModelOptions& options = {});

// Writes it to options.to_file. Pictures are drawn by Graphviz's program `dot`: RuntimeError if it
// is not installed or fails. ValueError for another suffix, IoError if the file cannot be written.
// In a job of several processes rank 0 writes.
void plot_model(const Model& model, const PlotModelOptions& options = {});

}  // namespace keel
