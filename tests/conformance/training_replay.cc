#include "tests/conformance/training_replay.h"

#include <algorithm>

#include "tests/conformance/trainers.h"

namespace keel::conformance {
namespace {

using distribute::Strategy;

// Runs `body` with each trainer on each engine. Stops at the first difference.
void with_trainers(const Training& training, const Comparison& result,
                   const std::function<void(Trainer&, const std::string&)>& body) {
  for (const NamedTrainer& way : trainers_for(training)) {
    under_strategies({.engine = true}, result, [&](Strategy& strategy, const std::string& where) {
      body(*way.make(strategy, training), way.name + where);
    });
  }
}

void require_engine(Fields& fields, const char* kind) {
  if (modes_of(fields, "engine").host) {
    throw ValueError("mode of a ", kind, " case must be 'engine'");
  }
}

int64_t most_rows(const Config& steps) {
  int64_t rows = 0;
  for (const Config& step : steps.items()) {
    for (const auto& [name, feature] : step.entries()) {
      rows = std::max<int64_t>(rows, feature["row_lengths"].items().size());
    }
  }
  return rows;
}

// Reads a gradient and appends empty rows up to `rows`, the number of rows of the largest batch.
Tensor gradient_of(const Config& gradient, int64_t rows_here, int64_t rows) {
  Array values = array_of(gradient);
  if (values.shape.size() < 2 || values.shape[0] != rows_here) {
    throw ValueError("field 'gradient': must have as many rows as the batch");
  }
  const size_t size_of_row = values.values.size() / std::max<int64_t>(rows_here, 1);
  values.values.resize(rows * size_of_row);
  values.shape[0] = rows;
  return float_tensor(values);
}

std::vector<StepInput> steps_of(const Config& steps, int64_t rows) {
  std::vector<StepInput> out;
  for (const Config& step : steps.items()) {
    StepInput& input = out.emplace_back();
    for (const auto& [name, feature] : step.entries()) {
      Fields fields(feature, "steps[" + std::to_string(out.size() - 1) + "]." + name);
      input.features.emplace(name, ragged_input(fields, rows));
      if (const Config* found = fields.find("gradient")) {
        const auto rows_here = static_cast<int64_t>(feature["row_lengths"].items().size());
        input.gradients.emplace(name, gradient_of(*found, rows_here, rows));
      }
      fields.finish();
    }
  }
  if (out.empty()) throw ValueError("field 'steps': must have a step");
  return out;
}

Training training_of(Fields& fields) {
  Training out;
  out.initial_table = array_of(fields.need("initial_table"));
  if (out.initial_table.shape.size() != 2) throw ValueError("field 'initial_table': must be rows");
  out.optimizer = fields.need("optimizer");
  out.learning_rates = array_of(fields.need("learning_rates")).values;
  if (out.learning_rates.empty()) throw ValueError("field 'learning_rates': must have a rate");
  out.rows = most_rows(fields.need("steps"));
  out.steps = steps_of(fields.need("steps"), out.rows);
  out.table = table_of(fields, out.initial_table.shape[0], out.initial_table.shape[1]);
  out.feature = feature_of(fields, nullptr);
  fields.finish();
  return out;
}

// Returns the training case of one step on a table whose elements are all `initial`.
Training one_step(const TableConfig& table, const StepInput& step, double initial,
                  const Config& optimizer, double rate) {
  Training out;
  out.initial_table.shape = {table.vocabulary_size, table.dim};
  out.initial_table.values.assign(table.vocabulary_size * table.dim, initial);
  out.table = table;
  out.optimizer = optimizer;
  out.learning_rates = {rate};
  out.steps = {step};
  return out;
}

void compare_step(Trainer& trainer, const Config& expected, const std::string& where,
                  Comparison& result) {
  Fields after(expected, where);
  const Config& values = after.need("table");
  const Config* slots = after.find("slots");
  after.finish();
  result.compare(where + "table", array_of(values), array_of(trainer.table()));
  if (slots == nullptr) return;
  for (const auto& [name, slot] : slots->entries()) {
    result.compare(where + "slots." + name, array_of(slot), array_of(trainer.slot(name)));
  }
}

}  // namespace

// The row gradient is the negative change that SGD at rate 1 makes to zeros. A row is touched if
// weight decay changes it.
void replay_gradient(Fields& fields, Fields& expected, Comparison& result) {
  require_engine(fields, "sparse_gradient");
  const Array gradient = array_of(fields.need("activation_gradient"));
  if (gradient.shape.size() < 2) throw ValueError("field 'activation_gradient': must have a dim");
  const int64_t rows = fields.need("vocabulary_size").integer(), dim = gradient.shape.back();
  const StepInput step = {.features = {{"f", sparse_input(fields)}},
                          .gradients = {{"f", float_tensor(gradient)}}};
  const TableConfig table = table_of(fields, rows, dim);
  fields.finish();
  const Config* row_gradient = expected.find("row_gradient");
  const Config* touched = expected.find("touched_rows");
  expected.finish();
  const Config sgd = Config::dict({{"type", "sgd"}});
  const Config decay = Config::dict({{"type", "sgd"}, {"weight_decay_factor", 0.5}});
  const auto trained = [&](double initial, const Config& optimizer, double rate, const auto& use) {
    with_trainers(one_step(table, step, initial, optimizer, rate), result,
                  [&](Trainer& trainer, const std::string& where) {
                    trainer.step(0);
                    use(array_of(trainer.table()), where);
                  });
  };
  if (row_gradient != nullptr) {
    trained(0, sgd, 1, [&](Array got, const std::string& where) {
      for (double& x : got.values) x = -x;
      result.compare(where + "row_gradient", array_of(*row_gradient), got);
    });
  }
  if (touched == nullptr) return;
  trained(1, decay, 0, [&](const Array& decayed, const std::string& where) {
    Array got;
    for (int64_t row = 0; row < rows; ++row) {
      if (decayed.values[row * dim] != 1) got.values.push_back(static_cast<double>(row));
    }
    got.shape = {static_cast<int64_t>(got.values.size())};
    result.compare(where + "touched_rows", array_of(*touched), got);
  });
}

void replay_training(Fields& fields, Fields& expected, Comparison& result) {
  require_engine(fields, "training");
  const Training training = training_of(fields);
  const std::vector<Config> per_step = expected.need("per_step").items();
  expected.finish();
  if (per_step.size() != training.steps.size()) {
    throw ValueError("per_step has ", per_step.size(), " steps, inputs have ",
                     training.steps.size());
  }
  with_trainers(training, result, [&](Trainer& trainer, const std::string& where) {
    for (size_t k = 0; k < training.steps.size(); ++k) {
      trainer.step(k);
      compare_step(trainer, per_step[k], where + "per_step[" + std::to_string(k) + "].", result);
    }
  });
}

void replay_pipeline(Fields& fields, Fields& expected, Comparison& result) {
  require_engine(fields, "pipeline");
  const Array row = array_of(fields.need("initial_row"));
  const auto dim = static_cast<int64_t>(row.values.size());
  const TableConfig table = {.vocabulary_size = 2, .dim = dim, .name = "table"};
  Training training = one_step(table, {}, 0, Config::dict({{"type", "sgd"}}),
                               fields.need("learning_rate").number());
  std::ranges::copy(row.values, training.initial_table.values.begin() + dim);
  training.pipelined = fields.boolean("pipeline_execution_with_tensor_core", false);
  training.steps.clear();
  for (const Config& gradient : fields.need("gradients").items()) {
    Array values = array_of(gradient);
    if (values.shape.empty()) values.values.resize(dim, values.values[0]);
    values.shape = {1, dim};
    training.steps.push_back(
        {.features = {{"f", {.ids = RaggedTensor::from_rows<int64_t>({{1}}), .weights = {}}}},
         .gradients = {{"f", float_tensor(values)}}});
  }
  fields.finish();
  const std::vector<Config> activations = expected.need("activations").items();
  const Config* final_row = expected.find("final_row");
  expected.finish();
  if (activations.size() != training.steps.size() || activations.empty()) {
    throw ValueError("activations: must be as many as gradients, and at least one");
  }
  with_trainers(training, result, [&](Trainer& trainer, const std::string& where) {
    for (size_t k = 0; k < training.steps.size(); ++k) {
      Array got = array_of(trainer.step(k).at("f"));
      got.shape = {dim};
      Array wanted = array_of(activations[k]);
      if (wanted.shape.empty()) {
        wanted = {.shape = {dim}, .values = std::vector<double>(dim, wanted.values[0])};
      }
      result.compare(where + "activations[" + std::to_string(k) + "]", wanted, got);
    }
    if (final_row == nullptr) return;
    const std::vector<double> values = array_of(trainer.table()).values;
    result.compare(where + "final_row", array_of(*final_row),
                   {.shape = {dim}, .values = {values.begin() + dim, values.end()}});
  });
}

}  // namespace keel::conformance
