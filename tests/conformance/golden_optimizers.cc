#include <algorithm>

#include <keel/optimizers/optimizer.h>
#include <keel/optimizers/schedules/internal/schedule_registry.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"

namespace keel::conformance {
namespace {

std::vector<Variable> variables_of(const Config& problem) {
  std::vector<Variable> out;
  for (const Config& item : Fields(problem, "optimizer_problem").need("variables").items()) {
    out.emplace_back(golden_tensor(item), VariableOptions{.name = item["name"].string()});
  }
  return out;
}

// The gradients of each step, which a record may have itself.
std::vector<std::vector<Gradient>> gradients_of(const Config& steps_of_variables, size_t steps) {
  std::vector<std::vector<Gradient>> out;
  for (const Config& step : steps_of_variables.items()) {
    if (out.size() == steps) break;
    out.emplace_back();
    for (const Config& item : step.items()) out.back().emplace_back(golden_tensor(item));
  }
  if (out.size() != steps) throw ValueError("optimizer_problem has no gradients for all steps");
  return out;
}

void compare_values(const std::string& what, const Config& expected,
                    const std::vector<Variable>& variables, Comparison& result) {
  result.compare("number of " + what, static_cast<int64_t>(expected.items().size()),
                 static_cast<int64_t>(variables.size()));
  if (expected.items().size() != variables.size()) return;
  for (size_t v = 0; v < variables.size(); ++v) {
    result.compare(what + " " + variables[v].path(), golden_array(expected.items()[v]),
                   array_of(variables[v].read()));
  }
}

// Keras names unnamed variables "variable", "variable_1", ..., with a counter per process. Such
// variables are identified by position.
bool is_unnamed(const std::string& name) {
  return name == "variable" || name.starts_with("variable_");
}

struct State {
  std::string name;  // the name in Keras
  Array value;
};

// Returns the optimizer's state in Keras's order.
std::vector<State> state_of(Optimizer& optimizer, const std::vector<Variable>& variables) {
  std::vector<State> out;
  const std::vector<Variable> wrapper = optimizer.wrapper_variables();
  for (const Variable& v : optimizer.variables(variables)) {
    std::string name = v.path();
    std::ranges::replace(name, '/', '_');
    if (out.size() < wrapper.size() || v == optimizer.iterations_variable()) name = v.name();
    out.push_back({.name = name, .value = array_of(v.read())});
  }
  if (const auto rate = optimizer.learning_rate_source().number()) {
    const auto place = out.begin() + static_cast<std::ptrdiff_t>(wrapper.size()) + 1;
    out.insert(place, {.name = "learning_rate", .value = {.values = {*rate}}});
  }
  return out;
}

void compare_slots(const Config& expected, const std::vector<State>& state, Comparison& result) {
  result.compare("number of slots", static_cast<int64_t>(expected.items().size()),
                 static_cast<int64_t>(state.size()));
  for (size_t i = 0; i < std::min(state.size(), expected.items().size()); ++i) {
    const Config& slot = expected.items()[i];
    const std::string& name = slot["name"].string();
    // Keras names Adafactor's averages of rows and columns like the variable.
    const bool is_average = state[i].name == name + "_row" || state[i].name == name + "_column";
    if (state[i].name != name && !is_unnamed(name) && !is_average) {
      result.report("slot " + std::to_string(i), name, state[i].name);
    } else {
      result.compare("slot " + name, golden_array(slot), state[i].value);
    }
  }
}

double scale_of(const Optimizer& optimizer) {
  return optimizer.scale_loss(Tensor::scalar(1.0F)).item<float>();
}

void take_steps(Fields& fields, const Config& problem, Optimizer& optimizer,
                const std::vector<Variable>& variables, Comparison& result) {
  const auto steps = static_cast<size_t>(fields.need("steps").integer());
  const Config::List& rates = fields.need("learning_rate_per_step").items();
  const Config::List& after = fields.need("after").items();
  if (rates.size() != steps || after.size() != steps) {
    throw ValueError("learning_rate_per_step and after must have an item for each step");
  }
  const Config* own = fields.find("grads");
  const Config& all = own ? *own : Fields(problem, "optimizer_problem").need("grads");
  const auto gradients = gradients_of(all, steps);
  const Config* scales = fields.find("dynamic_scale_before_step");
  for (size_t k = 0; k < steps; ++k) {
    const std::string step = "step " + std::to_string(k) + ": ";
    result.compare(step + "learning rate", rates[k].number(), optimizer.learning_rate());
    if (scales) {
      result.compare(step + "loss scale", scales->items().at(k).number(), scale_of(optimizer));
    }
    optimizer.apply_gradients(gradients[k], variables);
    compare_values(step + "variable", after[k], variables, result);
  }
}

}  // namespace

void replay_schedule(Fields& fields, Comparison& result) {
  const auto schedule = optimizers::schedules::deserialize(class_and_config(fields));
  const std::vector<int64_t> steps = integers_of(fields.need("steps"));
  const Array values = array_of(fields.need("values"));
  Array got = {.shape = {static_cast<int64_t>(steps.size())}};
  for (int64_t step : steps) got.values.push_back((*schedule)(step));
  result.compare("values", values, got);
}

void replay_optimizer(Fields& fields, const Config& problem, Comparison& result) {
  const OptimizerHandle optimizer = optimizers::deserialize(class_and_config(fields));
  if (const Config* names = fields.find("exclude_from_weight_decay")) {
    std::vector<std::string> parts;
    decode(*names, parts);
    optimizer->exclude_from_weight_decay({}, parts);
  }
  const std::vector<Variable> variables = variables_of(problem);
  optimizer->build(variables);
  take_steps(fields, problem, *optimizer, variables, result);
  if (const Config* scale = fields.find("scale_loss_of_one_after")) {
    result.compare("loss scale at the end", scale->number(), scale_of(*optimizer));
  }
  result.compare("iterations", fields.need("iterations_final").integer(), optimizer->iterations());
  compare_slots(fields.need("slots_final"), state_of(*optimizer, variables), result);
  if (const Config* expected = fields.find("after_finalize")) {
    optimizer->finalize_variable_values(variables);
    compare_values("finalized variable", *expected, variables, result);
  }
}

}  // namespace keel::conformance
