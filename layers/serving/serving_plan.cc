#include <keel/layers/serving/serving_plan.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/framework/base/parallel.h>
#include <keel/framework/exact_cast.h>
#include <keel/layers/serving/steps/internal/plan_state.h>
#include <keel/layers/serving/steps/internal/workspace.h>

namespace keel {
namespace {

constexpr const char* kCaller = "ServingPlan";

struct Output {
  PlanValue value;
  bool has_rows;   // float32 [batch, ...] of known shape
  bool is_tensor;  // a result of a called layer, or an input, returned unchanged
  int64_t width;
};

// Collects the leaves of `received` in the order of `expected`; ignores dict keys that are not
// expected.
void collect(const Tensors& expected, const Tensors& received, std::vector<TensorLike>& out,
             const std::string& path = "") {
  if (expected.is_leaf() && received.is_leaf()) {
    out.push_back(received.leaf());
    return;
  }
  if (expected.is_dict() && received.is_dict()) {
    for (const auto& [key, child] : expected.entries()) {
      collect(child, received.at(key), out, nest_internal::child_path(path, key));
    }
    return;
  }
  if (!expected.is_sequence() || expected.kind() != received.kind() ||
      expected.items().size() != received.items().size()) {
    assert_same_structure(expected, received, path);
  }
  for (size_t i = 0; i < expected.items().size(); ++i) {
    collect(expected.items()[i], received.items()[i], out,
            nest_internal::child_path(path, std::to_string(i)));
  }
}

TensorLike with_dtype(const std::string& caller, const TensorLike& tensor, DType dtype) {
  const Tensor& values = tensor.values();
  const bool is_number = values.dtype() != DType::kString && dtype != DType::kString;
  const bool cuts = is_floating(values.dtype()) && !is_floating(dtype);
  if (values.dtype() == dtype || !is_number || cuts) return tensor;
  return exact_cast(caller, tensor, dtype);
}

}  // namespace

struct ServingPlan::State {
  ModelHandle model;
  Tensors structure;  // structure of the inputs
  PlanValues results;
  Planner planner;
  std::vector<std::string> input_names;
  std::vector<std::string> input_callers;  // by input: the start of its error messages
  std::vector<TensorSpec> input_specs, output_specs;
  std::vector<Output> outputs;
  std::vector<const PlanStep*> steps;
  std::vector<std::string> layers;  // by step
  std::vector<PlanPlace> places;
  std::vector<std::pair<int, TensorLike>> constants;
  int slots = 0;
  int64_t floats = 0;  // per row
  int64_t scratch = 0;
  bool by_rows = true;
  mutable WorkspacePool workspaces;

  explicit State(ModelHandle made_from) : model(std::move(made_from)) {}
  void make(Planner::State& made);

  int64_t check(std::span<const TensorView> inputs) const;
  void check_outputs(std::span<const std::span<float>> to, int64_t batch) const;
  void run(const Lease& lease, int64_t batch, std::span<const std::span<float>> to) const;
  void run_pieces(const PlanCall& whole, std::span<const std::span<float>> to) const;
  void run_piece(const PlanCall& call, std::span<const std::span<float>> to) const;
};

ServingPlan::ServingPlan(ModelHandle model, const ServingPlanOptions& options)
    : state_(std::make_unique<State>(std::move(model))) {
  State& s = *state_;
  if (options.table_dtype == "int8") {
    s.planner.state_->int8_tables.emplace();
  } else if (options.table_dtype != "float32") {
    throw ValueError(kCaller, ": table_dtype must be float32 or int8, received '",
                     options.table_dtype, "'");
  }
  std::vector<PlanValue> inputs;
  const std::optional<ModelInputs> known = s.model->symbolic_inputs();
  if (!known) {
    throw ValueError(kCaller, ": ", s.model->class_name(), " ", s.model->name(),
                     " has no known inputs; use a functional model, or a sequential one that has "
                     "an Input layer or has been called");
  }
  s.structure = known->tensors;
  s.input_names = known->names;
  for (const std::string& name : s.input_names) {
    s.input_callers.push_back(absl::StrCat(kCaller, ": input '", name, "'"));
  }
  for (const TensorLike& input : flatten(s.structure)) s.input_specs.push_back(input.spec());
  for (size_t i = 0; i < s.input_specs.size(); ++i) {
    inputs.push_back(s.planner.add_input(s.input_names[i], s.input_specs[i]));
  }
  s.results = s.planner.call(s.model.shared(), pack_sequence_as(s.structure, inputs));
  s.planner.place_lookups();
  s.make(*s.planner.state_);
}

ServingPlan::~ServingPlan() = default;
ServingPlan::ServingPlan(ServingPlan&&) noexcept = default;
ServingPlan& ServingPlan::operator=(ServingPlan&&) noexcept = default;

void ServingPlan::State::make(Planner::State& made) {
  const std::vector<PlanValue> values = flatten(results);
  floats = made.place_values(values, places);
  for (const Planner::State::Step& step : made.steps) {
    steps.push_back(step.step.get());
    layers.push_back(step.layer);
    by_rows = by_rows && step.step->by_rows();
  }
  for (PlanValue value : values) {
    const TensorSpec& spec = made.values[value.number].spec;
    const bool has_rows = made.is_batch(value).value_or(true) && spec.layout == Layout::kDense &&
                          spec.dtype == DType::kFloat32 && spec.shape.rank() > 0 &&
                          spec.shape.without(0).fully_defined();
    outputs.push_back({.value = value,
                       .has_rows = has_rows,
                       .is_tensor = made.values[value.number].slot >= 0,
                       .width = has_rows ? spec.shape.without(0).size() : int64_t{0}});
    output_specs.push_back(spec);
  }
  constants = made.constants;
  slots = made.slots;
  scratch = made.scratch;
}

// Returns the number of rows of the batch.
int64_t ServingPlan::State::check(std::span<const TensorView> inputs) const {
  if (inputs.size() != input_specs.size()) {
    throw ValueError(kCaller, ": requires ", input_specs.size(), " inputs, received ",
                     inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView& view = inputs[i];
    check_view(input_callers[i], input_specs[i], view);
    if (view.rows != inputs[0].rows) {
      throw ValueError(kCaller, ": input '", input_names[i], "' has ", view.rows,
                       " rows, but input '", input_names[0], "' has ", inputs[0].rows,
                       "; all inputs must have the same number of rows");
    }
  }
  return inputs.empty() ? 0 : inputs[0].rows;
}

void ServingPlan::State::check_outputs(std::span<const std::span<float>> to, int64_t batch) const {
  if (to.size() != outputs.size()) {
    throw ValueError(kCaller, ": requires a buffer for each of ", outputs.size(),
                     " outputs, received ", to.size());
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (!outputs[i].has_rows) {
      throw NotImplementedError(kCaller, ": output ", i,
                                " is not a float32 tensor [batch, ...] of known ",
                                "shape; call the plan with tensors");
    }
    if (std::ssize(to[i]) != batch * outputs[i].width) {
      throw ValueError(kCaller, ": output ", i, " requires ", batch * outputs[i].width,
                       " floats, received a buffer of ", to[i].size());
    }
  }
}

// Holds a workspace for one call or for one piece of it, and returns it to the pool.
class ServingPlan::Lease {
 public:
  Lease(const State& plan, int64_t rows) : plan_(plan), workspace_(plan.workspaces.take()) {
    if (workspace_ == nullptr) {
      workspace_ = std::make_unique<Workspace>();
      workspace_->views.resize(plan.slots);
      workspace_->tensors.resize(plan.slots, TensorLike(Tensor()));
      for (const auto& [slot, value] : plan.constants) {
        workspace_->tensors[slot] = value;
        workspace_->views[slot] = view_of(value);
      }
    }
    capacity_ = plan.by_rows ? kPieceRows : std::max<int64_t>(rows, 1);
    workspace_->reserve(plan.scratch + plan.floats * capacity_);
  }
  ~Lease() {
    // Drops references to tensors of the call; constants stay for the next call.
    if (holds_tensors_) {
      std::ranges::fill(workspace_->tensors, TensorLike(Tensor()));
      for (const auto& [slot, value] : plan_.constants) workspace_->tensors[slot] = value;
    }
    plan_.workspaces.release(std::move(workspace_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void set_inputs(std::span<const TensorView> views, std::span<const TensorLike> tensors) {
    std::ranges::copy(views, workspace_->views.begin());
    holds_tensors_ = !plan_.by_rows || !tensors.empty();
    std::ranges::copy(tensors, workspace_->tensors.begin());
  }
  TensorLike tensor(PlanValue value) const { return lend({}).tensor(value); }
  // Fills in the memory and places of a call.
  PlanCall lend(PlanCall call) const {
    call.places = &plan_.places;
    call.scratch = workspace_->floats;
    call.workspace = workspace_->floats + plan_.scratch;
    call.capacity = capacity_;
    if (call.views == nullptr) call.views = &workspace_->views;
    if (call.tensors == nullptr) call.tensors = &workspace_->tensors;
    return call;
  }

 private:
  const State& plan_;
  std::unique_ptr<Workspace> workspace_;
  int64_t capacity_;
  bool holds_tensors_ = false;
};

void ServingPlan::State::run_piece(const PlanCall& call,
                                   std::span<const std::span<float>> to) const {
  // All prefetches are issued before the first step, so that they overlap with its computation.
  for (const PlanStep* step : steps) step->prefetch(call);
  for (const PlanStep* step : steps) step->run(call);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].data() == nullptr || !outputs[i].is_tensor) continue;
    const TensorView& made = call.view(outputs[i].value);
    if (made.values == call.batch * outputs[i].width) continue;
    throw NotImplementedError(kCaller, ": output ", i, " has shape ", made.shape, " for ",
                              call.batch,
                              " rows, which a buffer cannot hold; call the plan with tensors");
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].data() == nullptr) continue;
    const int64_t width = outputs[i].width;
    const PlanRows from = call[outputs[i].value];
    float* out = to[i].data() + call.begin * width;
    for (int64_t r = 0; r < call.rows; ++r, out += width) std::copy_n(from[r], width, out);
  }
}

void ServingPlan::State::run_pieces(const PlanCall& whole,
                                    std::span<const std::span<float>> to) const {
  // A multiple of the number of workers, so that all workers get the same number of pieces.
  const int64_t batch = whole.batch, least = (batch + kPieceRows - 1) / kPieceRows;
  const int64_t workers = num_workers();
  const int64_t pieces = (least + workers - 1) / workers * workers;
  const auto run = [&](int64_t begin, int64_t end) {
    const Lease lease(*this, kPieceRows);
    for (int64_t piece = begin; piece < end; ++piece) {
      PlanCall call = lease.lend({.batch = batch, .views = whole.views, .tensors = whole.tensors});
      call.begin = batch * piece / pieces;
      call.rows = batch * (piece + 1) / pieces - call.begin;
      run_piece(call, to);
    }
  };
  parallel_for(pieces, 1, std::cref(run));
}

void ServingPlan::State::run(const Lease& lease, int64_t batch,
                             std::span<const std::span<float>> to) const {
  PlanCall call = lease.lend({.batch = batch});
  for (const PlanStep* step : steps) step->check(call);
  if (by_rows && batch > kPieceRows) return run_pieces(call, to);
  call.rows = batch;
  run_piece(call, to);
}

void ServingPlan::run(std::span<const TensorView> inputs,
                      std::span<const std::span<float>> outputs) const {
  const int64_t batch = state_->check(inputs);
  state_->check_outputs(outputs, batch);
  Lease lease(*state_, batch);
  lease.set_inputs(inputs, {});
  state_->run(lease, batch, outputs);
}

Tensors ServingPlan::operator()(const Tensors& inputs) const {
  const State& s = *state_;
  std::vector<TensorLike> tensors;
  collect(s.structure, inputs, tensors);
  std::vector<TensorView> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = with_dtype(s.input_callers[i], tensors[i], s.input_specs[i].dtype);
    views.push_back(view_of(tensors[i]));
  }
  const int64_t batch = s.check(views);
  std::vector<Tensor> made(s.outputs.size());
  std::vector<std::span<float>> memory(s.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (s.outputs[i].is_tensor) continue;
    const Shape& shape = s.output_specs[i].shape;
    made[i] = Tensor::uninitialized(shape.with(0, batch), DType::kFloat32);
    memory[i] = made[i].mutable_data<float>();
  }
  Lease lease(s, batch);
  lease.set_inputs(views, tensors);
  s.run(lease, batch, memory);
  size_t i = 0;
  return map_structure(s.results, [&](PlanValue value) -> TensorLike {
    const size_t at = i++;
    return s.outputs[at].is_tensor ? lease.tensor(value) : TensorLike(made[at]);
  });
}

const std::vector<std::string>& ServingPlan::input_names() const { return state_->input_names; }
const std::vector<TensorSpec>& ServingPlan::input_specs() const { return state_->input_specs; }
const std::vector<TensorSpec>& ServingPlan::output_specs() const { return state_->output_specs; }

std::string ServingPlan::summary() const {
  std::string out =
      absl::StrCat("ServingPlan of ", state_->model->name(), ": ", state_->steps.size(), " steps, ",
                   state_->floats, " floats a row\n");
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    absl::StrAppend(&out, i, "  ", state_->layers[i], "  ", state_->steps[i]->what(), "\n");
  }
  return out;
}

std::vector<std::string> ServingPlan::called_layers() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    if (state_->steps[i]->calls_layer()) out.push_back(state_->layers[i]);
  }
  return out;
}

}  // namespace keel
