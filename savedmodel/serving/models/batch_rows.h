// Joins the rows of several requests, and divides the rows of one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Returns true if the inputs of two requests for one signature have the same shapes but for their
// numbers of rows, so that their rows can be joined.
bool joins(std::span<const InputValues> a, std::span<const InputValues> b);

// Appends rows [begin, end) of a finished input to `to`, which reset() has prepared for the same
// input. Call to.finish() after the last rows.
void append_rows(const TensorView& from, int64_t begin, int64_t end, InputValues& to);

// Prepares `to` for `rows` rows of outputs that are float32 [rows, ...] of known shape.
void allocate_rows(const ServedSignature& signature, int64_t rows, RunOutputs& to);
// Copies rows [begin, begin + rows) of such outputs to the rows of `to` that start at `at`.
void copy_rows(const RunOutputs& from, int64_t begin, int64_t rows, RunOutputs& to, int64_t at);

// Inputs and outputs of a joined run, in memory that the next one reuses.
struct JoinMemory {
  std::vector<InputValues> inputs;
  RunOutputs outputs;

  // Starts inputs for a signature.
  void reset(const ServedSignature& signature);
  // Frees what an unusual batch has left.
  void shrink();
};

}  // namespace keel::serving
