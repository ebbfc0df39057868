#include <keel/layers/serving/steps/planner.h>

#include <algorithm>
#include <array>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/internal/int8_table.h>
#include <keel/layers/layer.h>
#include <keel/layers/serving/steps/internal/lookup_step.h>
#include <keel/layers/serving/steps/internal/plan_state.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>
#include <keel/layers/serving/steps/internal/steps.h>

namespace keel {
namespace {

bool has_mask(const TensorLike& symbol) {
  return symbol.layout() == Layout::kDense && symbol.tensor().mask();
}

bool has_known_rows(const TensorSpec& spec) {
  return spec.layout == Layout::kDense && spec.shape.rank() >= 1 &&
         spec.shape.without(0).fully_defined();
}

LookupStep::Entry entry_of(const Planner& planner, PlanLookup lookup, PlanValue out) {
  const TensorSpec& ids = planner.spec(lookup.ids);
  const int64_t per_row =
      ids.layout == Layout::kDense ? planner.row_shape(lookup.ids).size() : int64_t{0};
  return {.lookup = std::move(lookup), .out = out, .layout = ids.layout, .per_row = per_row};
}

// Copies the variables of a layer that the plan will call.
void copy_variables(const Layer& layer, VariableSnapshot& copies) {
  for (const Variable& variable : layer.variables()) {
    if (variable.is_virtual()) {
      throw RuntimeError(
          "ServingPlan: the tables of ", layer.class_name(), " ", layer.name(),
          " belong to the engine of a TPUStrategy; save the model and create the plan "
          "from the result of load_model outside the strategy");
    }
    copies.add(variable);
  }
}

}  // namespace

Planner::Planner() : state_(std::make_unique<State>()) {}
Planner::~Planner() = default;

const TensorSpec& Planner::spec(PlanValue value) const { return state_->values[value.number].spec; }

PlanValue Planner::add_value(TensorLike symbol) {
  const TensorSpec spec = symbol.spec();
  state_->values.push_back({.symbol = std::move(symbol), .spec = spec});
  return {static_cast<int>(state_->values.size()) - 1};
}

PlanValue Planner::add_tensor(TensorLike symbol) {
  const PlanValue out = add_value(std::move(symbol));
  state_->values[out.number].slot = state_->slots++;
  return out;
}

PlanValue Planner::add_input(const std::string& name, const TensorSpec& spec) {
  const PlanValue out = add_tensor(make_symbolic(spec, nullptr, 0));
  state_->values[out.number].is_input = true;
  state_->values[out.number].sources = {name};
  state_->input_names.push_back(name);
  const int64_t rows = spec.shape.rank() == 0 ? kUnknown : spec.shape[0];
  if (rows != kUnknown) state_->batch_sizes.fill(rows);
  return out;
}

PlanValue Planner::constant(const TensorLike& value) {
  const PlanValue out = add_tensor(value);
  state_->values[out.number].is_constant = true;
  state_->constants.emplace_back(state_->values[out.number].slot, value);
  return out;
}

PlanValue Planner::make_rows(const Shape& row_shape) {
  return add_value(
      Tensor::symbolic({.shape = Shape{kUnknown} + row_shape, .dtype = DType::kFloat32}));
}

std::optional<std::vector<PlanValue>> Planner::rows(const PlanValues& values, bool cast) {
  const std::vector<PlanValue> all = flatten(values);
  for (PlanValue value : all) {
    const TensorSpec& s = spec(value);
    const bool castable = cast && (is_floating(s.dtype) || is_integer(s.dtype));
    if (!has_known_rows(s) || !state_->is_batch(value).value_or(false) ||
        (s.dtype != DType::kFloat32 && !castable)) {
      return {};
    }
  }
  std::vector<PlanValue> out;
  for (PlanValue value : all) {
    const State::Value& v = state_->values[value.number];
    // Inputs are checked before the plan runs; the results of called layers can only be checked
    // when they exist (ConvertStep).
    if (v.slot < 0 || (v.is_input && v.spec.dtype == DType::kFloat32)) {
      out.push_back(value);
      continue;
    }
    out.push_back(make_rows(row_shape(value)));
    const int64_t width = row_shape(value).size();
    add(std::make_unique<ConvertStep>(value, out.back(), width), {value}, {out.back()});
  }
  return out;
}

PlanValue Planner::reshaped(PlanValue value, const Shape& row_shape) {
  if (state_->values[value.number].slot >= 0) {
    const PlanValue copy = make_rows(this->row_shape(value));
    const int64_t width = row_shape.size();
    add(std::make_unique<CopyStep>(value, copy, width), {value}, {copy});
    value = copy;
  }
  TensorSpec spec = this->spec(value);
  spec.shape = spec.shape.slice(0, 1) + row_shape;
  const PlanValue out = add_value(Tensor::symbolic(spec));
  state_->values[out.number].parent = value.number;
  return out;
}

PlanValue Planner::joined(const std::vector<PlanValue>& parts, const Shape& row_shape) {
  const PlanValue out = make_rows(row_shape);
  int64_t column = 0;
  for (PlanValue part : parts) {
    const int64_t width = this->row_shape(part).size();
    // Whole rows that are not yet part of another value are written directly to their place in the
    // result.
    const auto [number, offset] = state_->root(part);
    State::Value& root = state_->values[number];
    if (root.slot < 0 && number != out.number && root.spec.shape.without(0).size() == width &&
        offset == 0) {
      root.parent = out.number;
      root.column = column;
    } else {
      const PlanValue copy = make_rows({width});
      state_->values[copy.number].parent = out.number;
      state_->values[copy.number].column = column;
      add(std::make_unique<CopyStep>(part, copy, width), {part}, {copy});
    }
    column += width;
  }
  return out;
}

PlanValue Planner::product(PlanValue x, const Variable& kernel, const Variable& bias,
                           RowFunction function) {
  auto& packed = state_->packed[{kernel.id(), bias ? bias.id() : 0}];
  const int64_t in = kernel.shape()[0], units = kernel.shape()[1];
  if (packed == nullptr) {
    const NoGradient pause;
    const Tensor w = kernel.read(), b = bias ? bias.read() : Tensor();
    packed = std::make_shared<kernels::PackedMatrix>(
        w.data<float>().data(), bias ? b.data<float>().data() : nullptr, in, units);
  }
  const Shape row = row_shape(x);
  const PlanValue y = make_rows(row.rank() == 0 ? Shape{units} : row.with(-1, units));
  // Rows without elements need the step as well: their result is the bias.
  const int64_t repeats = row.rank() == 0 ? 1 : row.drop_last().size();
  add(std::make_unique<ProductStep>(packed, function, x, y, repeats), {x}, {y});
  return y;
}

PlanValue Planner::map(PlanValue x, RowFunction function) {
  if (function.kind() == RowFunction::Kind::kLinear) return x;
  const Shape row = row_shape(x);
  const PlanValue y = make_rows(row);
  const int64_t length = row.rank() == 0 ? 1 : row[-1];
  add(std::make_unique<MapStep>(function, x, y, row.size(), length), {x}, {y});
  return y;
}

std::optional<PlanValue> Planner::affine(PlanValue x, const Affine& numbers) {
  const Shape row = row_shape(x);
  const int64_t length = row.rank() == 0 ? 1 : row[-1];
  std::array<std::vector<float>, 3> spread;
  for (size_t i = 0; i < spread.size(); ++i) {
    const Tensor& given = *std::array{&numbers.center, &numbers.factor, &numbers.offset}[i];
    if (given.size() != 1 && given.size() != length) return {};
    for (int64_t j = 0; j < row.size(); ++j) {
      spread[i].push_back(given.data<float>()[given.size() == 1 ? 0 : j % length]);
    }
  }
  const PlanValue y = make_rows(row);
  add(std::make_unique<AffineStep>(std::move(spread), numbers.divides, x, y), {x}, {y});
  return y;
}

std::optional<PlanValue> Planner::look_up(PlanLookup lookup) {
  const TensorSpec ids = spec(lookup.ids);
  const bool is_dense = ids.layout == Layout::kDense;
  const auto is_input = [&](PlanValue v) { return state_->values[v.number].is_input; };
  if (lookup.count_dropped && !is_input(lookup.ids)) return {};  // would count once per piece
  if (lookup.pools_dense && is_dense && ids.shape.rank() != 2) return {};
  const bool fits = is_dense ? has_known_rows(ids) && !lookup.weights &&
                                   state_->is_batch(lookup.ids).value_or(false)
                             : ids.shape.rank() == 2 && is_input(lookup.ids) &&
                                   (!lookup.weights || is_input(*lookup.weights));
  const bool strings = lookup.keys != nullptr && lookup.keys->has_strings();
  const bool has_type = strings ? ids.dtype == DType::kString
                                : ids.dtype == DType::kInt32 || ids.dtype == DType::kInt64;
  if (!fits || !has_type ||
      (lookup.table.dtype() != DType::kFloat32 && !(is_dense && lookup.scales)) ||
      (lookup.weights && spec(*lookup.weights).dtype != DType::kFloat32)) {
    return {};
  }
  lookup.table = state_->tables.try_emplace(lookup.table.id(), lookup.table).first->second;
  const int64_t dim = lookup.table.dim(1);
  if (auto& tables = state_->int8_tables; tables && !lookup.scales) {
    std::shared_ptr<const Int8Table>& table = (*tables)[lookup.table.id()];
    if (!table) table = std::make_shared<const Int8Table>(lookup.table, lookup.caller);
    lookup.int8 = table;
  }
  const Shape positions = is_dense && !lookup.pools_dense ? row_shape(lookup.ids)
                          : lookup.sequence_length > 0    ? Shape{lookup.sequence_length}
                                                          : Shape{};
  const PlanValue out = make_rows(positions + Shape{dim});
  if (is_input(lookup.ids)) {
    state_->lookups.push_back(std::move(lookup));
    state_->looked_up.push_back(out);
    return out;
  }
  const PlanValue from = lookup.ids;
  auto step =
      std::make_unique<LookupStep>(std::vector{entry_of(*this, std::move(lookup), out)}, true);
  reserve_scratch(step->scratch());
  add(std::move(step), {from}, {out});
  return out;
}

void Planner::place_lookups() {
  if (state_->lookups.empty()) return;
  std::vector<LookupStep::Entry> entries;
  for (size_t i = 0; i < state_->lookups.size(); ++i) {
    entries.push_back(entry_of(*this, state_->lookups[i], state_->looked_up[i]));
  }
  std::vector<int> roots;
  for (PlanValue value : state_->looked_up) roots.push_back(state_->root(value).first);
  // The roots matter: a joined value is read under its own number, but contains looked-up rows.
  const auto first = std::ranges::find_if(state_->steps, [&](const State::Step& step) {
    return std::ranges::any_of(step.reads, [&](PlanValue value) {
      return std::ranges::find(roots, state_->root(value).first) != roots.end();
    });
  });
  auto step = std::make_unique<LookupStep>(std::move(entries), false);
  reserve_scratch(step->scratch());
  state_->steps.insert(
      first,
      {.step = std::move(step), .reads = {}, .writes = state_->looked_up, .layer = "embeddings"});
}

void Planner::reserve_scratch(int64_t floats) {
  state_->scratch = std::max(state_->scratch, floats);
}

void Planner::add(std::unique_ptr<PlanStep> step, const std::vector<PlanValue>& reads,
                  const std::vector<PlanValue>& writes) {
  state_->steps.push_back(
      {.step = std::move(step),
       .reads = reads,
       .writes = writes,
       .layer = state_->layers.empty() ? std::string() : state_->layers.back()});
}

PlanValues Planner::call(const std::shared_ptr<Operation>& operation, const PlanValues& inputs,
                         const CallOptions& options) {
  const auto layer = std::dynamic_pointer_cast<Layer>(operation);
  state_->layers.push_back(layer ? layer->name() : operation->class_name());
  std::optional<PlanValues> out;
  if (layer != nullptr && !options.training.value_or(false)) {
    const bool sees_masks = layer->supports_masking() || !layer->sublayers().empty();
    bool masked = false;
    for (PlanValue value : flatten(inputs)) {
      masked = masked || has_mask(state_->values[value.number].symbol);
    }
    // Sizes to which the state is rolled back if plan() returns nothing.
    const size_t steps = state_->steps.size(), lookups = state_->lookups.size();
    if (!masked || !sees_masks) out = layer->plan(*this, inputs);
    if (!out) {
      state_->steps.resize(steps);
      state_->lookups.resize(lookups);
      state_->looked_up.resize(lookups);
    }
  }
  if (!out) out = call_at_run_time(operation, inputs, options);
  const std::set<std::string> sources = state_->sources_of(inputs);
  for (PlanValue value : flatten(*out)) {
    state_->values[value.number].sources.insert(sources.begin(), sources.end());
  }
  state_->layers.pop_back();
  return *out;
}

PlanValues Planner::call_at_run_time(const std::shared_ptr<Operation>& operation,
                                     const PlanValues& inputs, const CallOptions& options) {
  if (const auto layer = std::dynamic_pointer_cast<Layer>(operation)) {
    copy_variables(*layer, *state_->copies);
  }
  const VariableSnapshot::Scope scope(*state_->copies);
  const NoGraphScope no_graph;
  const NoGradient pause;
  const Tensors results = operation->replay(
      map_structure(inputs, [&](PlanValue v) { return state_->values[v.number].symbol; }), options);
  PlanValues outputs =
      map_structure(results, [&](const TensorLike& symbol) { return add_tensor(symbol); });
  const std::vector<PlanValue> made = flatten(outputs);
  for (const std::vector<TensorLike>& symbols :
       state_->try_sizes(*operation, inputs, options, made.size())) {
    for (size_t i = 0; i < made.size(); ++i) {
      state_->values[made[i].number].at_sizes.push_back(symbols[i]);
    }
  }
  const auto input_of = [&](PlanValue value) -> CallStep::Input {
    if (state_->values[value.number].slot >= 0) return {.value = value};
    return {.value = value, .row_shape = row_shape(value), .is_rows = true};
  };
  // Layers that take a dict name its features themselves.
  const std::set<std::string> sources =
      inputs.is_dict() ? std::set<std::string>() : state_->sources_of(inputs);
  add(std::make_unique<CallStep>(operation, options, map_structure(inputs, input_of),
                                 flatten(outputs), state_->copies,
                                 std::vector<std::string>(sources.begin(), sources.end())),
      flatten(inputs), flatten(outputs));
  return outputs;
}

std::set<std::string> Planner::State::sources_of(const PlanValues& inputs) const {
  std::set<std::string> out;
  for (PlanValue value : flatten(inputs)) {
    const std::set<std::string>& own = values[value.number].sources;
    out.insert(own.begin(), own.end());
  }
  return out;
}

std::optional<bool> Planner::State::is_batch(PlanValue value) const {
  const Value& v = values[value.number];
  if (v.spec.layout != Layout::kDense || v.spec.shape.rank() == 0 || v.is_constant) return false;
  if (v.slot < 0 || v.is_input) return true;
  if (v.at_sizes.empty()) return {};
  for (size_t i = 0; i < v.at_sizes.size(); ++i) {
    const Shape shape = v.at_sizes[i].spec().shape;
    if (shape.rank() > 0 && shape[0] == kUnknown) return {};
    if (shape.rank() == 0 || shape[0] != batch_sizes[i]) return false;
  }
  return true;
}

std::optional<TensorLike> Planner::State::at_size(PlanValue value, size_t which) const {
  const Value& v = values[value.number];
  if (v.is_constant) return v.symbol;
  TensorSpec spec = v.spec;
  if (v.slot < 0 || v.is_input) {
    const bool has_rows = spec.shape.rank() > 0 && spec.shape[0] == kUnknown;
    if (has_rows) spec.shape = spec.shape.with(0, batch_sizes[which]);
    return make_symbolic(spec, nullptr, 0);
  }
  if (v.at_sizes.empty()) return {};
  // A result of unknown size cannot be used: next to it, a batch of one row might be broadcast
  // while larger batches are not.
  spec = v.at_sizes[which].spec();
  if (spec.shape.rank() > 0 && spec.shape[0] == kUnknown) return {};
  return v.at_sizes[which];
}

std::vector<std::vector<TensorLike>> Planner::State::try_sizes(Operation& operation,
                                                               const PlanValues& inputs,
                                                               const CallOptions& options,
                                                               size_t results) const {
  std::vector<std::vector<TensorLike>> out;
  for (size_t which = 0; which < batch_sizes.size(); ++which) {
    std::vector<TensorLike> symbols;
    for (PlanValue value : flatten(inputs)) {
      const std::optional<TensorLike> symbol = at_size(value, which);
      if (!symbol) return {};
      symbols.push_back(*symbol);
    }
    try {
      out.push_back(flatten(operation.replay(pack_sequence_as(inputs, symbols), options)));
    } catch (const std::exception&) {
      return {};  // the operation does not accept every batch size
    }
    if (out.back().size() != results) return {};
  }
  return out;
}

std::pair<int, int64_t> Planner::State::root(PlanValue value) const {
  int number = value.number;
  int64_t column = 0;
  for (; values[number].parent >= 0; number = values[number].parent) {
    column += values[number].column;
  }
  return {number, column};
}

int64_t Planner::State::place_values(const std::vector<PlanValue>& results,
                                     std::vector<PlanPlace>& places) const {
  // Floats in a cache line; blocks are rounded up to whole lines.
  constexpr int64_t kLine = 16;
  struct Block {
    int first = -1, last = -1;  // steps that use it
    int64_t begin = 0, end = 0;
  };
  std::vector<Block> blocks(values.size());
  const auto use = [&](PlanValue value, int step) {
    Block& block = blocks[root(value).first];
    if (block.first < 0) block.first = step;
    block.last = step;
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    for (PlanValue value : steps[i].reads) use(value, static_cast<int>(i));
    for (PlanValue value : steps[i].writes) use(value, static_cast<int>(i));
  }
  for (PlanValue value : results) use(value, static_cast<int>(steps.size()));

  int64_t floats = 0;
  std::vector<const Block*> placed;
  for (size_t i = 0; i < values.size(); ++i) {
    Block& block = blocks[i];
    if (values[i].slot >= 0 || values[i].parent >= 0 || block.first < 0) continue;
    const int64_t width = values[i].spec.shape.without(0).size();
    const int64_t size = (width + kLine - 1) / kLine * kLine;
    // Finds the lowest place that does not overlap a block in use at the same time.
    std::ranges::sort(placed, {}, &Block::begin);
    for (const Block* other : placed) {
      const bool together = other->first <= block.last && block.first <= other->last;
      if (together && block.begin < other->end && other->begin < block.begin + size) {
        block.begin = other->end;
      }
    }
    block.end = block.begin + size;
    floats = std::max(floats, block.end);
    placed.push_back(&block);
  }
  for (const Value& value : values) {
    if (value.slot >= 0) {
      const bool has_rows = has_known_rows(value.spec);
      places.push_back({.slot = value.slot,
                        .stride = has_rows ? value.spec.shape.without(0).size() : int64_t{0}});
      continue;
    }
    const auto [number, column] = root({static_cast<int>(&value - values.data())});
    places.push_back({.offset = blocks[number].begin,
                      .column = column,
                      .stride = blocks[number].end - blocks[number].begin});
  }
  return floats;
}

// Defined here because PlanValues is complete here; layer.cc does not depend on plans.
std::optional<PlanValues> Layer::plan(Planner&, const PlanValues&) const { return {}; }

}  // namespace keel

template class keel::Nest<keel::PlanValue>;
template std::vector<keel::PlanValues>::~vector();
template std::vector<keel::PlanValues>::vector(const std::vector<keel::PlanValues>& other);
