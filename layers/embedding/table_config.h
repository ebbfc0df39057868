// TableConfig and FeatureConfig: which embedding tables there are, and which features look ids up
// in them (tf.tpu.experimental.embedding).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/initializers.h"
#include "framework/kernels/gather.h"
#include "framework/nest.h"
#include "optimizers/table_optimizer.h"

namespace keel {

// One table of vocabulary_size rows and dim columns.
struct TableConfig {
  int64_t vocabulary_size = 0;  // > 0
  int64_t dim = 0;              // > 0
  // Unset: truncated normal, mean 0, stddev 1 / sqrt(dim).
  std::optional<Initializer> initializer = {};
  TableOptimizer optimizer = {};  // unset: the layer's
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  std::string name = {};          // unset: "table_<i>", i in order of first use
};

// A table *is* a TableConfig object: features that hold the same Table share its rows, and two
// objects with equal fields are two tables.
using Table = std::shared_ptr<TableConfig>;
// ValueError unless vocabulary_size and dim are positive and the combiner is known.
Table make_table(TableConfig config);

// One feature.
struct FeatureConfig {
  Table table = nullptr;
  // > 0: ids of a row are not pooled; the result is [batch, max_sequence_length, dim], longer rows
  // cut, shorter ones followed by zeros.
  int64_t max_sequence_length = 0;
  // Shape of the result without dim; unset: from the input.
  std::optional<Shape> output_shape = {};
  // Lookups of sparse ids on the host leave out negative ids, and weights that are not positive
  // unless the combiner is sum.
  bool validate_weights_and_indices = true;
  std::string name = {};
};

kernels::Combiner combiner_from_name(const std::string& name);  // ValueError if unknown
Initializer table_initializer(const TableConfig& table);

// A layer's own copies of the tables of a feature_config, so that the user's objects are never
// written to.
struct TableSet {
  struct Entry {
    Table original;  // what the user's FeatureConfigs hold
    Table own;       // a copy, with the name and optimizer in force
  };
  std::vector<Entry> tables;  // in order of first use
  // Position of a user's table or of a copy; -1 if it is not among them.
  int find(const Table& table) const;
  // The same features on the layer's copies. ValueError, with the feature's path and `who`, for a
  // table that is not among them.
  Nest<FeatureConfig> on_own_tables(const Nest<FeatureConfig>& features,
                                    const std::string& who) const;
};

// Tables of `features` in order of first use, with names and optimizers settled.
// ValueError for a FeatureConfig without table or with a negative max_sequence_length, and for
// two tables of one name.
TableSet collect_tables(const Nest<FeatureConfig>& features, const TableOptimizer& optimizer);

}  // namespace keel
