// Checks the features of a DistributedEmbedding, and encodes them as keras_rs does.
#pragma once

#include <string>

#include <keel/layers/embedding/distributed/distributed_config.h>

namespace keel::keras_rs {

// Returns the table's initializer, or the default one if it is unset.
Initializer table_initializer(const TableConfig& table);

// Throws ValueError, naming `path`, for a feature without a table; for shapes other than those
// described above; and for a table whose name is empty or contains '/', whose dimensions are not
// positive, or whose combiner or placement is unknown.
void check_feature(const std::string& path, const FeatureConfig& feature);

// Encodes the structure of features, with tables referred to by position, and the tables, each
// once, in order of first use:
//   {"feature_configs": {"user": {"name", "table": 0, "input_shape", "output_shape"}, ...},
//    "tables": [{"name", "vocabulary_size", ...}, ...]}
Config encode_feature_configs(const Nest<FeatureConfig>& features);
// Decodes features. Features that shared a table share one again, and so do tables that shared an
// optimizer. Throws ValueError for a table position that is out of range and under the conditions
// of from_config.
Nest<FeatureConfig> decode_feature_configs(const Config& features, const Config& tables);

}  // namespace keel::keras_rs
