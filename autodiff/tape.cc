#include <keel/autodiff/tape.h>

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/framework/base/internal/hash_map.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/matmul_precision.h>

namespace keel {
namespace {

// One recorded op.
struct Entry {
  std::shared_ptr<const Op> op;
  std::vector<uint64_t> input_ids, output_ids;
  std::vector<TensorSpec> input_specs, output_specs;
  std::vector<Tensor> inputs, outputs;  // those that vjp() reads, per Retain; else empty handles
};

// Gradients of custom ops must be checked: kernels derive buffer sizes from the shapes of the
// tensors that the gradients belong to and do not check them again.
void check_gradient(const Gradient& gradient, const Op& op, size_t input, const TensorSpec& spec) {
  const auto returned = [&](const auto&... what) {
    return str("GradientTape: the gradient that ", op.class_name(), " returns for input ", input,
               " must ", what...);
  };
  const auto fit = [&](const Shape& shape, DType dtype) {
    if (dtype != spec.dtype) throw TypeError(returned("be ", spec.dtype, ", received ", dtype));
    if (shape != spec.shape) {
      throw ValueError(returned("have its shape ", spec.shape, ", received ", shape));
    }
  };
  if (!gradient.is_slices()) {
    const Tensor dense = gradient.dense();
    return fit(dense.shape(), dense.dtype());
  }
  const auto& [ids, values, dense_shape] = gradient.slices();
  fit(dense_shape, values.dtype());
  if (ids.rank() != 1 || dense_shape.rank() == 0 ||
      values.shape() != dense_shape.with(0, ids.dim(0))) {
    throw ValueError(returned("have a row of ", dense_shape, " for each id, received ids of shape ",
                              ids.shape(), " and values of shape ", values.shape()));
  }
}

// Returns the gradients of an entry's outputs; nothing if none of them has one.
std::vector<Gradient> gradients_of_outputs(const Entry& entry,
                                           const HashMap<uint64_t, Gradient>& gradients) {
  std::vector<Gradient> out;
  for (size_t i = 0; i < entry.output_ids.size(); ++i) {
    const Gradient* const gradient = gradients.find(entry.output_ids[i]);
    if (gradient == nullptr || !*gradient) continue;
    out.resize(entry.output_ids.size());
    out[i] = *gradient;
  }
  return out;
}

// Returns the inputs that lead to a source, as a mask.
uint32_t wanted_inputs(const Entry& entry, const HashSet<uint64_t>& reachable) {
  uint32_t wanted = 0;
  for (size_t i = 0; i < std::min<size_t>(entry.input_ids.size(), 32); ++i) {
    if (reachable.contains(entry.input_ids[i])) wanted |= 1u << i;
  }
  return wanted;
}

// Adds the gradients that an entry's op has returned for its inputs.
void add_gradients_of_inputs(const Entry& entry, const std::vector<Gradient>& input_gradients,
                             const HashSet<uint64_t>& reachable,
                             HashMap<uint64_t, Gradient>& gradients) {
  if (input_gradients.size() != entry.input_ids.size()) {
    throw ValueError("GradientTape: ", entry.op->class_name(),
                     " must return a gradient for each of ", entry.input_ids.size(),
                     " inputs, received ", input_gradients.size());
  }
  for (size_t i = 0; i < input_gradients.size(); ++i) {
    if (input_gradients[i] && reachable.contains(entry.input_ids[i])) {
      // Gradients of integer inputs are never read, so their spec does not matter.
      const TensorSpec& spec = entry.input_specs[i];
      if (is_floating(spec.dtype)) check_gradient(input_gradients[i], *entry.op, i, spec);
      gradients[entry.input_ids[i]].add(input_gradients[i]);
    }
  }
}

}  // namespace

struct GradientTape::Impl {
  TapeOptions options;
  bool recording = true;
  bool used = false;
  int pauses = 0;
  std::vector<Entry> entries;
  HashSet<uint64_t> watched;  // tensors that depend on something watched
  HashMap<uint64_t, std::vector<uint64_t>> variable_values;  // variable id -> ids of values read
  HashSet<uint64_t> watched_variables;

  bool records() const { return recording && pauses == 0; }

  // The recording of one thread.
  struct Recording {
    std::vector<Impl*> tapes;  // alive, the outermost first
    int no_gradients = 0;      // number of NoGradient objects alive
    int suspensions = 0;       // number of SuspendRecording objects alive
  };
  static Recording& of_thread() {
    thread_local Recording recording;
    return recording;
  }

  void record(const std::shared_ptr<const Op>& op, std::span<const Tensor> inputs,
              std::span<const Tensor> outputs);
  void watch_value(uint64_t variable_id, const Tensor& value);
  std::vector<Gradient> gradients(const Tensor& target,
                                  const std::vector<std::vector<uint64_t>>& sources,
                                  const std::vector<TensorSpec>& specs, const GradientOptions& how);
  void check(const Tensor& target, const GradientOptions& how) const;
  std::vector<const Entry*> entries_to(HashSet<uint64_t>& reachable) const;
};

void GradientTape::Impl::record(const std::shared_ptr<const Op>& op, std::span<const Tensor> inputs,
                                std::span<const Tensor> outputs) {
  // Without a watched input the op cannot contribute to a gradient.
  if (std::ranges::none_of(inputs, [&](const Tensor& t) { return watched.contains(t.id()); })) {
    return;
  }
  Entry& entry = entries.emplace_back();
  entry.op = op;
  const Retain retain = op->retain();
  const auto keep = [](std::span<const Tensor> tensors, uint32_t mask, std::vector<uint64_t>& ids,
                       std::vector<TensorSpec>& specs, std::vector<Tensor>& kept) {
    ids.reserve(tensors.size());
    specs.reserve(tensors.size());
    kept.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      ids.push_back(tensors[i].id());
      specs.push_back(tensors[i].spec());
      if (i >= 32 ? mask == ~0u : (mask >> i & 1) != 0) kept[i] = tensors[i];
    }
  };
  keep(inputs, retain.inputs, entry.input_ids, entry.input_specs, entry.inputs);
  keep(outputs, retain.outputs, entry.output_ids, entry.output_specs, entry.outputs);
  // Integer results end the path, because they have no gradient.
  for (const Tensor& output : outputs) {
    if (is_floating(output.dtype())) watched.insert(output.id());
  }
}

void GradientTape::Impl::watch_value(uint64_t variable_id, const Tensor& value) {
  watched.insert(value.id());
  // A variable that is assigned between two reads has two values. Its gradient is the sum of both.
  std::vector<uint64_t>& known = variable_values[variable_id];
  if (std::ranges::find(known, value.id()) == known.end()) known.push_back(value.id());
}

// Returns the entries that depend on a tensor of `reachable`, in their order, and adds their
// outputs to `reachable`.
std::vector<const Entry*> GradientTape::Impl::entries_to(HashSet<uint64_t>& reachable) const {
  std::vector<const Entry*> out;
  for (const Entry& entry : entries) {
    if (std::ranges::none_of(entry.input_ids,
                             [&](uint64_t id) { return reachable.contains(id); })) {
      continue;
    }
    out.push_back(&entry);
    for (const uint64_t id : entry.output_ids) reachable.insert(id);
  }
  return out;
}

GradientTape::GradientTape(TapeOptions options) : impl_(std::make_unique<Impl>()) {
  matmul_precision();  // throws for an unknown name in the environment before any state changes
  impl_->options = options;
  Impl::of_thread().tapes.push_back(impl_.get());
}

GradientTape::~GradientTape() { std::erase(Impl::of_thread().tapes, impl_.get()); }

void GradientTape::watch(const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) {
    throw TypeError("GradientTape.watch: the tensor must be floating, received ", tensor.dtype());
  }
  impl_->watched.insert(tensor.id());
}

void GradientTape::watch(const Variable& variable) {
  impl_->watched_variables.insert(variable.id());
  impl_->watch_value(variable.id(), variable.read());
}

void GradientTape::Impl::check(const Tensor& target, const GradientOptions& how) const {
  if (used && !options.persistent) {
    throw RuntimeError(
        "GradientTape.gradient: called twice on a tape that is not persistent; pass "
        "{.persistent = true}");
  }
  if (how.output_gradient && how.output_gradient.shape() != target.shape()) {
    throw ValueError("GradientTape.gradient: output_gradient must have shape ", target.shape(),
                     " of the target, received ", how.output_gradient.shape());
  }
  if (how.output_gradient && how.output_gradient.dtype() != target.dtype()) {
    throw TypeError("GradientTape.gradient: output_gradient must have dtype ", target.dtype(),
                    " of the target, received ", how.output_gradient.dtype());
  }
}

std::vector<Gradient> GradientTape::Impl::gradients(
    const Tensor& target, const std::vector<std::vector<uint64_t>>& sources,
    const std::vector<TensorSpec>& specs, const GradientOptions& how) {
  check(target, how);
  used = true;
  const profile::Scope scope(profile::Phase::kFramework, "tape", profile::Phase::kBackward);
  HashSet<uint64_t> wanted;
  for (const auto& ids : sources) {
    for (const uint64_t id : ids) wanted.insert(id);
  }
  HashSet<uint64_t> reachable = wanted;  // tensors that depend on a source
  const std::vector<const Entry*> on_path = entries_to(reachable);
  HashMap<uint64_t, Gradient> gradients;
  gradients[target.id()] = how.output_gradient ? how.output_gradient : ops::ones_like(target);
  // From the last op to the first: all ops that read a tensor come after the op that made it, so
  // its gradient is complete when that op is reached.
  for (auto it = on_path.rbegin(); it != on_path.rend(); ++it) {
    const Entry& entry = **it;
    const std::vector<Gradient> output_gradients = gradients_of_outputs(entry, gradients);
    if (!output_gradients.empty()) {
      add_gradients_of_inputs(entry,
                              entry.op->vjp({.input_specs = entry.input_specs,
                                             .output_specs = entry.output_specs,
                                             .inputs = entry.inputs,
                                             .outputs = entry.outputs,
                                             .output_gradients = output_gradients,
                                             .wanted = wanted_inputs(entry, reachable)}),
                              reachable, gradients);
    }
    // The output gradients have been propagated to the inputs, so free their memory now. Those of
    // sources are read below.
    for (const uint64_t id : entry.output_ids) {
      if (wanted.contains(id)) continue;
      if (Gradient* const gradient = gradients.find(id)) *gradient = {};
    }
  }
  std::vector<Gradient> out;
  for (const auto& ids : sources) {
    Gradient& sum = out.emplace_back();
    for (const uint64_t id : ids) {
      const Gradient* const gradient = gradients.find(id);
      if (gradient != nullptr && *gradient) sum.add(*gradient);
    }
  }
  if (how.unconnected_gradients == UnconnectedGradients::kZero) {
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i]) out[i] = Tensor::zeros(specs[i].shape, specs[i].dtype);
    }
  }
  if (!options.persistent) {
    recording = false;
    entries.clear();
    watched.clear();
  }
  return out;
}

std::vector<Gradient> GradientTape::gradient(const Tensor& target,
                                             const std::vector<Variable>& sources,
                                             const GradientOptions& options) {
  std::vector<std::vector<uint64_t>> ids;
  std::vector<TensorSpec> specs;
  for (const Variable& v : sources) {
    const auto* const values = impl_->variable_values.find(v.id());
    ids.push_back(values == nullptr ? std::vector<uint64_t>{} : *values);
    specs.push_back(v.spec());
  }
  // Outer tapes still record the ops of the gradient, which gives them second derivatives.
  const Pause pause(*this);
  return impl_->gradients(target, ids, specs, options);
}

std::vector<Gradient> GradientTape::input_gradient(const Tensor& target,
                                                   const std::vector<Tensor>& sources,
                                                   const GradientOptions& options) {
  std::vector<std::vector<uint64_t>> ids;
  std::vector<TensorSpec> specs;
  for (const Tensor& t : sources) {
    // A tensor that is not watched may be on paths that were recorded only in part, which would
    // give a wrong gradient.
    ids.emplace_back();
    if (impl_->watched.contains(t.id())) ids.back().push_back(t.id());
    specs.push_back(t.spec());
  }
  const Pause pause(*this);
  return impl_->gradients(target, ids, specs, options);
}

void GradientTape::reset() {
  auto fresh = std::make_unique<Impl>();
  fresh->options = impl_->options;
  fresh->pauses = impl_->pauses;
  std::ranges::replace(Impl::of_thread().tapes, impl_.get(), fresh.get());
  impl_ = std::move(fresh);
}

GradientTape::Pause::Pause(GradientTape& tape) : tape_(tape) { ++tape_.impl_->pauses; }
GradientTape::Pause::~Pause() { --tape_.impl_->pauses; }

bool GradientTape::any_active() {
  const Impl::Recording& now = Impl::of_thread();
  return now.no_gradients + now.suspensions == 0 && std::ranges::any_of(now.tapes, &Impl::records);
}

bool GradientTape::watches(const Tensor& tensor) {
  return any_active() && std::ranges::any_of(Impl::of_thread().tapes, [&](const Impl* tape) {
           return tape->records() && tape->watched.contains(tensor.id());
         });
}

bool GradientTape::any_in_use() {
  const Impl::Recording& now = Impl::of_thread();
  return now.no_gradients == 0 && std::ranges::any_of(now.tapes, &Impl::recording);
}

void GradientTape::record_all(const std::shared_ptr<const Op>& op, std::span<const Tensor> inputs,
                              std::span<const Tensor> outputs) {
  for (Impl* tape : Impl::of_thread().tapes) {
    if (tape->records()) tape->record(op, inputs, outputs);
  }
}

void GradientTape::on_read(uint64_t variable_id, const Tensor& value) {
  const Impl::Recording& now = Impl::of_thread();
  if (now.no_gradients + now.suspensions > 0) return;
  for (Impl* tape : now.tapes) {
    if (!tape->records()) continue;
    if (tape->options.watch_accessed_variables || tape->watched_variables.contains(variable_id)) {
      tape->watch_value(variable_id, value);
    }
  }
}

NoGradient::NoGradient() { ++GradientTape::Impl::of_thread().no_gradients; }
NoGradient::~NoGradient() { --GradientTape::Impl::of_thread().no_gradients; }

SuspendRecording::SuspendRecording() { ++GradientTape::Impl::of_thread().suspensions; }
SuspendRecording::~SuspendRecording() { --GradientTape::Impl::of_thread().suspensions; }

}  // namespace keel
