// Feature columns as configs, for files of models whose layers take them.
#pragma once

#include <keel/layers/feature_columns/feature_column.h>

namespace keel::feature_column {

// {"class_name": ..., "config": ...}, as FeatureColumn::get_config says.
Config encode(const Column& column);
// ValueError for an unknown class or key, and as the functions that make columns say.
void decode(const Config& config, Column& column);
void decode(const Config& config, Categorical& column);  // the inner config of a categorical one

}  // namespace keel::feature_column
