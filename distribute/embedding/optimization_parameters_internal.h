// What a record says of one table's updates. For configuration.cc alone.
#pragma once

#include <keel/distribute/embedding/configuration.h>

namespace keel::distribute {

namespace proto {
class OptimizationParameters;
}

// ValueError, naming the table, for a rule that is no engine's.
proto::OptimizationParameters write_optimization_parameters(const EngineTable& table);

// Fills update, learning_rate or its tag, quantization and low_dimensional_packing. ValueError for
// what no engine can have been made from.
void read_optimization_parameters(const proto::OptimizationParameters& parameters,
                                  EngineTable& table);

}  // namespace keel::distribute
