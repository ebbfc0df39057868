// What reference cases of embeddings have in common: ids, tables, features and modes, read from
// their fields.
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
// From "dense_shape", "indices", "values", "weights".
FeatureInput sparse_input(Fields& fields);
// From "row_lengths", "values", "weights". Rows beyond the case's, up to `rows`, are empty.
FeatureInput ragged_input(Fields& fields, int64_t rows = 0);
// The same input without any id, for replicas that have no part in a case.
TensorLike without_ids(const TensorLike& input);

// From "combiner" and "quantization"; named "table".
TableConfig table_of(Fields& fields, int64_t rows, int64_t dim);
// From "max_sequence_length", "output_shape" and "validate".
FeatureConfig feature_of(Fields& fields, const Table& table);

struct Modes {
  bool host = false, engine = false;
};
Modes modes_of(Fields& fields, const std::string& otherwise);

// Runs `body` under a CPUStrategy for the host, and under TPUStrategies of several numbers of cores
// and hosts for the engine, with a name for messages, until results differ.
void under_strategies(const Modes& modes, const Comparison& result,
                      const std::function<void(distribute::Strategy&, const std::string&)>& body);

}  // namespace keel::conformance
