// Conversion of one table's update parameters to and from a record. Used by configuration.cc and
// engine.cc.
#pragma once

#include <keel/distribute/embedding/configuration.h>

namespace keel::distribute {

namespace proto {
class OptimizationParameters;
}

// Throws ValueError, naming the table, for a rule that engines do not support.
proto::OptimizationParameters write_optimization_parameters(const EngineTable& table);

// Sets update, learning_rate or its tag, quantization and low_dimensional_packing of `table`.
// Throws ValueError for parameters that no engine can have been created from.
void read_optimization_parameters(const proto::OptimizationParameters& parameters,
                                  EngineTable& table);

}  // namespace keel::distribute
