// summary: what a model is made of, as a table (keras.Model.summary).
#pragma once

#include <iosfwd>

#include <keel/layers/training/model.h>

namespace keel {

struct SummaryOptions {
  int64_t line_length = 80;     // longer cells are wrapped; at least 40 (ValueError)
  bool expand_nested = false;   // list the layers of models inside, too
  bool show_trainable = false;  // a column with Y, N, or - for layers without parameters
};

// Name, class, output shape and number of parameters of each layer, and how many parameters
// there are in all, with their size in memory. Functional models with branches get a column with
// the layers each one takes its inputs from, as "name[call][output]". Shapes that nobody knows
// yet are "?"; a layer that is not built has "0 (unbuilt)" parameters. Tables that an embedding
// engine holds count as what they are in all its shards together. The slots of an optimizer that
// has taken a step are counted too.
void summary(const Model& model, const SummaryOptions& options, std::ostream& out);
// The same to the standard output.
void summary(const Model& model, const SummaryOptions& options = {});

// "215.04 KB"
std::string format_bytes(int64_t bytes);

}  // namespace keel
