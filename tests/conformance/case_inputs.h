// Reads the inputs that reference cases of embeddings share from their fields: ids, tables,
// features and modes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// One feature of one batch.
struct FeatureInput {
  TensorLike ids;
  std::optional<TensorLike> weights;
};
// Reads "dense_shape", "indices", "values", "weights".
FeatureInput sparse_input(Fields& fields);
// Reads "row_lengths", "values", "weights". Appends empty rows up to `rows`.
FeatureInput ragged_input(Fields& fields, int64_t rows = 0);
// Returns the input without ids, for replicas that do not take part in a case.
TensorLike without_ids(const TensorLike& input);

// Reads "combiner" and "quantization". The table is named "table".
TableConfig table_of(Fields& fields, int64_t rows, int64_t dim);
// Reads "max_sequence_length", "output_shape" and "validate".
FeatureConfig feature_of(Fields& fields, const Table& table);

// The modes in which a case runs.
struct Modes {
  bool host = false, engine = false;
};
Modes modes_of(Fields& fields, const std::string& otherwise);

// Runs `body` under a CPUStrategy for the host, and under TPUStrategies with several numbers of
// cores and hosts for the engine. Passes a name for messages. Stops at the first difference.
void under_strategies(const Modes& modes, const Comparison& result,
                      const std::function<void(distribute::Strategy&, const std::string&)>& body);

}  // namespace keel::conformance
