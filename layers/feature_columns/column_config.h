// Serialization of feature columns, for the configs of layers that use them.
#pragma once

#include <keel/layers/feature_columns/feature_column.h>

namespace keel::feature_column {

// Returns {"class_name": ..., "config": ...}; see FeatureColumn::get_config.
Config encode(const Column& column);
// Creates the column of a config. Throws ValueError for an unknown class or key, and under the
// conditions of the functions that create columns.
void decode(const Config& config, Column& column);
void decode(const Config& config, Categorical& column);  // from its get_config()

}  // namespace keel::feature_column
