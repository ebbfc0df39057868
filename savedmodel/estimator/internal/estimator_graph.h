// EstimatorGraph: the graph built by one call of a model_fn, and the names of the tables of its
// columns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/estimator/tpu_estimator.h>

namespace keel::estimator {

// The result of make_graph().
struct EstimatorGraph {
  EstimatorSpec spec;
  // Maps `inputs` to the outputs of the mode among "loss", "predictions" and "metrics": {name:
  // (y_true, y_pred[, sample_weight])}.
  Functional model;
  std::vector<LayerHandle<Layer>> layers;  // in the order of their first call
};

// Returns symbolic inputs for tensors of these specs, with any number of rows, and with any width
// if they are sparse. Throws ValueError for a spec without a batch dimension.
Tensors symbolic_inputs(const Specs& specs);

// Calls model_fn. `features` and `labels` are computed from `inputs`. Throws ValueError if the
// returned spec lacks a field that the mode requires, or if its loss is not a scalar.
EstimatorGraph make_graph(const ModelFn& model_fn, const Tensors& inputs, const Tensors& features,
                          const Tensors& labels, ModeKeys mode);

// Returns the layers of a graph in the order of their first call, without input layers.
std::vector<LayerHandle<Layer>> layers_by_call(const FunctionalModel& model);

// Returns the variable name of each table in checkpoints: checkpoint_name() of the column, given
// the layer that uses it, or the table's own name if the spec consists of dicts. Throws the errors
// that TPUEstimator lists.
std::map<std::string, std::string> table_variable_names(
    const EmbeddingConfigSpec& spec, const std::vector<LayerHandle<Layer>>& layers);

}  // namespace keel::estimator
