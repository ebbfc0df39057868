// summary: prints the layers of a model as a table (keras.Model.summary).
#pragma once

#include <iosfwd>

#include <keel/layers/training/model.h>

namespace keel {

// Options of summary.
struct SummaryOptions {
  int64_t line_length = 80;     // longer cells are wrapped; at least 40, otherwise ValueError
  bool expand_nested = false;   // also list the layers of nested models
  bool show_trainable = false;  // add a column with Y, N, or - for layers without parameters
};

// Prints the name, class, output shape and number of parameters of each layer, and the total number
// of parameters with their size in memory.
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

}  // namespace keel
