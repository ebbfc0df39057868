// EstimatorGraph: the graph that one call of a model_fn makes, and how its columns name tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/embedding/v1/embedding_config_spec.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/estimator/estimator_spec.h>

namespace keel::estimator {

struct EstimatorGraph {
  EstimatorSpec spec;
  // From `inputs` to what the mode needs of "loss", "predictions" and "metrics": {name: (y_true,
  // y_pred[, sample_weight])}.
  Functional model;
  std::vector<LayerHandle<Layer>> layers;  // in the order they were called first
};

// Symbolic inputs for tensors of these specs, of any number of rows, and any width if sparse.
// ValueError for a spec without batch dimension.
Tensors symbolic_inputs(const Specs& specs);

// Calls model_fn; `features` and `labels` follow from `inputs`. ValueError if the spec lacks what
// the mode needs, or its loss is no scalar.
EstimatorGraph make_graph(const ModelFn& model_fn, const Tensors& inputs, const Tensors& features,
                          const Tensors& labels, ModeKeys mode);

// The layers of a graph, input layers left out, in the order they were called first.
std::vector<LayerHandle<Layer>> layers_by_call(const FunctionalModel& model);

// What checkpoints call the variable of each table: the columns' checkpoint_name() for the layers
// that take them, or of a spec by dicts the table's own name. Errors as TPUEstimator says.
std::map<std::string, std::string> table_variable_names(
    const EmbeddingConfigSpec& spec, const std::vector<LayerHandle<Layer>>& layers);

}  // namespace keel::estimator
