#include <algorithm>
#include <map>
#include <numeric>

#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/recurrent/internal/cell_config.h>
#include <keel/layers/recurrent/rnn.h>
#include <keel/layers/registry.h>

namespace keel {

StackedRNNCellsLayer::StackedRNNCellsLayer(Options options)
    : RNNCell(kClassName, options), cells_(std::move(options.cells)) {
  if (cells_.empty()) {
    throw ValueError("StackedRNNCells ", name(), ": cells must not be empty; pass cells");
  }
  for (const auto& cell : cells_) track(cell);
}

std::vector<Shape> StackedRNNCellsLayer::input_shapes(const Shape& input) const {
  std::vector<Shape> out = {input};
  for (size_t i = 0; i + 1 < cells_.size(); ++i) out.push_back(cells_[i]->output_shape(out[i]));
  return out;
}

std::vector<Shape> StackedRNNCellsLayer::state_shapes(const Shape& input) const {
  const std::vector<Shape> inputs = input_shapes(input);
  std::vector<Shape> out;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const std::vector<Shape> states = cells_[i]->state_shapes(inputs[i]);
    out.insert(out.end(), states.begin(), states.end());
  }
  return out;
}

Shape StackedRNNCellsLayer::output_shape(const Shape& input) const {
  return cells_.back()->output_shape(input_shapes(input).back());
}

RNNCell::States StackedRNNCellsLayer::initial_states(const Shape& input) const {
  const std::vector<Shape> inputs = input_shapes(input);
  States out;
  for (size_t i = 0; i < cells_.size(); ++i) {
    for (Tensor& state : cells_[i]->initial_states(inputs[i])) {
      out.push_back(as_dtype(state, dtype()));
    }
  }
  return out;
}

Tensors::Items StackedRNNCellsLayer::packed(const States& states) const {
  const size_t needed = std::reduce(state_counts_.begin(), state_counts_.end(), size_t{0});
  if (states.size() != needed) return RNNCell::packed(states);  // the receiver rejects them
  Tensors::Items out;
  auto next = states.begin();
  for (size_t i = 0; i < cells_.size(); ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(state_counts_[i]);
    Tensors::Items items = cells_[i]->packed({next, end});
    next = end;
    if (items.size() == 1) {
      out.push_back(std::move(items[0]));
    } else {
      out.push_back(Tensors::list(std::move(items)));
    }
  }
  return out;
}

void StackedRNNCellsLayer::build_weights(const Specs& inputs) {
  const TensorSpec first = inputs.is_leaf() ? inputs.leaf() : inputs[0].leaf();
  const std::vector<Shape> shapes = input_shapes(first.shape);
  std::vector<size_t> counts;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const DType type = cells_[i]->dtype();
    Specs::Items parts = {TensorSpec{.shape = shapes[i], .dtype = type}};
    for (const Shape& state : cells_[i]->state_shapes(shapes[i])) {
      parts.push_back(TensorSpec{.shape = state, .dtype = type});
    }
    counts.push_back(parts.size() - 1);
    cells_[i]->build(Specs::list(std::move(parts)));
    prepend_to_paths(name(), *cells_[i]);
  }
  state_counts_ = std::move(counts);
}

// The first cell projects the inputs of all steps at once, the others those of each step.
RNNCell::Run StackedRNNCellsLayer::start(const Shape& input, bool training) {
  const std::vector<Shape> inputs = input_shapes(input);
  std::vector<Run> runs;
  std::vector<DType> dtypes;
  for (size_t i = 0; i < cells_.size(); ++i) {
    runs.push_back(cells_[i]->start(inputs[i], training));
    dtypes.push_back(cells_[i]->dtype());
  }
  Run out;
  if (runs[0].project) {
    out.project = [project = runs[0].project, type = dtypes[0]](const Tensor& x) {
      return project(as_dtype(x, type));
    };
  }
  out.step = [runs = std::move(runs), dtypes = std::move(dtypes), counts = state_counts_,
              result = dtype()](const Tensor& projected, const States& states) -> StepResult {
    StepResult all{.output = projected, .states = {}};
    auto next = states.begin();
    for (size_t i = 0; i < runs.size(); ++i) {
      States own;
      for (size_t k = 0; k < counts[i]; ++k) own.push_back(as_dtype(*next++, dtypes[i]));
      const Tensor x = as_dtype(all.output, dtypes[i]);
      StepResult step = runs[i].step(i > 0 && runs[i].project ? runs[i].project(x) : x, own);
      all.output = step.output;
      for (const Tensor& state : step.states) all.states.push_back(as_dtype(state, result));
    }
    all.output = as_dtype(all.output, result);
    return all;
  };
  return out;
}

Tensors StackedRNNCellsLayer::call(const Tensors& inputs, const CallContext& context) {
  const size_t count = std::reduce(state_counts_.begin(), state_counts_.end(), size_t{0});
  const auto [x, states] = step_inputs(inputs, count);
  StepResult result;
  if (any_symbolic(inputs)) {
    for (const Shape& shape : state_shapes(x.shape())) {
      result.states.push_back(Tensor::symbolic({.shape = shape, .dtype = dtype()}));
    }
    result.output = Tensor::symbolic({.shape = output_shape(x.shape()), .dtype = dtype()});
  } else {
    const Run run = start(x.shape(), context.training);
    result = run.step(run.project ? run.project(x) : x, states);
  }
  return Tensors::tuple({result.output, Tensors::list(packed(result.states))});
}

// Keras names the cells by their position in the attribute `cells`.
std::vector<std::string> StackedRNNCellsLayer::sublayer_attributes() const {
  std::vector<std::string> out;
  std::map<std::string, int> used;
  for (const auto& cell : cells_) {
    std::string name = "cells/" + to_snake_case(cell->class_name());
    const int k = used[name]++;
    out.push_back(k == 0 ? name : name + "_" + std::to_string(k));
  }
  return out;
}

Config StackedRNNCellsLayer::get_config() const {
  Config::List cells;
  for (const auto& cell : cells_) cells.push_back(layers::serialize(*cell));
  return Config::dict({{"name", name()},
                       {"trainable", trainable()},
                       {"dtype", encode(dtype_policy())},
                       {"cells", std::move(cells)}});
}

std::shared_ptr<Layer> StackedRNNCellsLayer::from_config(const Config& config) {
  Config rest = config;
  std::vector<LayerHandle<RNNCell>> cells;
  if (const Config* const found = config.find("cells"); found != nullptr && !found->is_null()) {
    cells = cells_from_config(*found, kClassName);
  }
  rest.erase("cells");
  auto options = keel::from_config<Options>(rest, kClassName);
  options.cells = std::move(cells);
  return std::make_shared<StackedRNNCellsLayer>(std::move(options));
}

KEEL_REGISTER(Layer, StackedRNNCellsLayer, .package = "keras", .call = "inputs, states, training")

}  // namespace keel
