#include <keel/savedmodel/keras/internal/keras_h5_optimizer.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>

#include <keel/framework/update_rule.h>
#include <keel/optimizers/step/optimizer_slots.h>

namespace keel {
namespace {

constexpr const char* kGroup = kOptimizerWeights;

std::vector<Variable> trainable_variables(const Model& model) {
  std::vector<Variable> out = model.trainable_variables();
  std::erase_if(out, [](const Variable& v) { return v.is_virtual(); });
  return out;
}

// Returns the names of a slot in Keras 2: the name since 2.11, then the older name if it differs.
std::vector<std::string> keras_2_names(const std::string& class_name, const std::string& slot) {
  static const std::map<std::string, std::map<std::string, std::vector<std::string>>> kOfClasses = {
      {"Adadelta",
       {{"accumulated_grad", {"accumulated_grad", "accum_grad"}},
        {"accumulated_delta_var", {"accumulated_delta_var", "accum_var"}}}},
      {"Adamax", {{"norm", {"u", "v"}}}},
      {"RMSprop",
       {{"velocity", {"velocity", "rms"}},
        {"momentum", {"momentum"}},
        {"average_gradient", {"average_gradient", "mg"}}}}};
  static const std::map<std::string, std::string> kOfAll = {
      {"momentum", "m"}, {"velocity", "v"}, {"velocity_hat", "vhat"}};
  const auto of_class = kOfClasses.find(class_name);
  if (of_class != kOfClasses.end()) {
    const auto found = of_class->second.find(slot);
    if (found != of_class->second.end()) return found->second;
  }
  const auto found = kOfAll.find(slot);
  return {found == kOfAll.end() ? slot : found->second};
}

// Returns the slot that an entry of a file belongs to. Keras 2.15 writes "Adam/m/dense/kernel:0",
// earlier versions "Adam/dense/kernel/m:0", and Keras 3 "adam/dense_kernel_momentum".
std::optional<size_t> slot_of(std::string name, const Optimizer& optimizer) {
  if (name.ends_with(":0")) name.resize(name.size() - 2);
  const size_t first = name.find('/');
  const size_t last = name.rfind('/');
  const bool has_parts = first != last;
  const std::string second =
      has_parts ? name.substr(first + 1, name.find('/', first + 1) - first - 1) : "";
  const std::vector<Slot>& slots = optimizer.slot_specs();
  for (size_t s = 0; s < slots.size(); ++s) {
    std::vector<std::string> names =
        keras_2_names(optimizer.unwrapped().class_name(), slots[s].name);
    names.push_back(slots[s].name);
    const auto is = [&](const std::string& part) { return std::ranges::count(names, part) > 0; };
    if (has_parts && (is(second) || is(name.substr(last + 1)))) return s;
  }
  // The longest match is the right one: "gradient_accumulator" also ends in "accumulator".
  std::optional<size_t> out;
  for (size_t s = 0; s < slots.size(); ++s) {
    const bool longer = !out || slots[s].name.size() > slots[*out].name.size();
    if (longer && name.ends_with("_" + slots[s].name)) out = s;
  }
  return out;
}

// Returns a name that is not in `taken`. Layers of different nested models may have the same name.
std::string unique_name(const std::vector<std::string>& taken, const std::string& name) {
  std::string out = name + ":0";
  for (int i = 1; std::ranges::find(taken, out) != taken.end(); ++i) {
    out = name + "_" + std::to_string(i) + ":0";
  }
  return out;
}

enum class Kind { kIteration, kLearningRate, kWrapper, kShared, kSlot };

Kind kind_of(const std::string& name, const Optimizer& optimizer) {
  const std::string last = name.substr(name.rfind('/') + 1);
  if (last == "iteration" || last == "iteration:0" || last == "iter:0") return Kind::kIteration;
  if (last.starts_with("learning_rate")) return Kind::kLearningRate;
  for (const Variable& own : optimizer.wrapper_variables()) {
    if (last == own.name() || last == own.name() + ":0") return Kind::kWrapper;
  }
  if (optimizer.shared_slots().empty()) return Kind::kSlot;
  // Keras does not name its variable; before 2.11 the name was different.
  for (const char* start : {"u_product", "variable", "Variable", "momentum_cache"}) {
    if (last.starts_with(start) && !slot_of(name, optimizer)) return Kind::kShared;
  }
  return Kind::kSlot;
}

// The datasets of each slot, in the order of the variables.
struct Stored {
  std::string iterations;
  std::map<std::string, std::string> wrapper;  // by the last part of the name
  std::vector<std::string> shared;
  std::vector<std::vector<std::string>> slots;
};

Stored stored_weights(const Hdf5File& file, const Optimizer& optimizer) {
  Stored out;
  out.slots.resize(optimizer.slot_specs().size());
  size_t unnamed = 0;
  for (const std::string& name : file.string_list(kGroup, "weight_names")) {
    const std::string dataset = absl::StrCat(kGroup, "/", name);
    const Kind kind = kind_of(name, optimizer);
    if (kind == Kind::kIteration) out.iterations = dataset;
    if (kind == Kind::kWrapper) {
      const std::string last = name.substr(name.rfind('/') + 1);
      out.wrapper[last.substr(0, last.find(':'))] = dataset;
    }
    if (kind == Kind::kShared) out.shared.push_back(dataset);
    if (kind != Kind::kSlot) continue;
    std::optional<size_t> slot = slot_of(name, optimizer);
    // Keras names the first two slots of a variable like the variable, the row before the column.
    if (!slot && optimizer.unwrapped().class_name() == "Adafactor") slot = unnamed++ % 2;
    if (!slot)
      throw IoError(file.path(), ", ", kGroup, ": '", name,
                    "' is not a known slot of this optimizer");
    out.slots[*slot].push_back(dataset);
  }
  return out;
}

// Returns the variables that have slot `s`.
std::vector<Variable> with_slot(const Optimizer& optimizer, size_t s,
                                const std::vector<Variable>& variables) {
  std::vector<Variable> out;
  for (const Variable& v : variables) {
    if (slot_shape(optimizer.rule(), s, v)) out.push_back(v);
  }
  return out;
}

// Returns the slot variable that each dataset belongs to.
std::map<std::string, Variable> targets_of(const Hdf5File& file, const Stored& stored,
                                           Optimizer& optimizer,
                                           const std::vector<Variable>& variables) {
  optimizer.build(variables);
  std::map<std::string, Variable> out;
  for (size_t s = 0; s < stored.slots.size(); ++s) {
    const std::string& name = optimizer.slot_specs()[s].name;
    const std::vector<std::string>& datasets = stored.slots[s];
    if (datasets.empty()) continue;  // was not built when it was saved
    const std::vector<Variable> having = with_slot(optimizer, s, variables);
    for (size_t v = 0; v < having.size(); ++v) {
      const Variable slot = optimizer.slots(having[v])[s];
      const Shape found = file.spec(datasets[v]).shape;
      if (found != slot.shape()) {
        throw ValueError(file.path(), ", ", kGroup, ": slot '", name, "' of ", having[v].path(),
                         " requires shape ", slot.shape(), "; the file has ", found);
      }
      out.emplace(datasets[v], slot);
    }
  }
  return out;
}

Tensor scalar_of(const Hdf5File& file, const std::string& dataset, DType dtype) {
  const Tensor out = file.read(dataset, dtype);
  if (out.size() != 1) throw IoError(file.path(), ", ", dataset, ": must be a scalar");
  return out.reshaped({});
}

// Computes the shared slots from the number of steps, for versions that do not store them.
std::vector<Tensor> shared_after(const Optimizer& optimizer, int64_t iterations) {
  std::vector<double> values;
  for (const Slot& slot : optimizer.rule().shared_slots()) values.push_back(slot.initial);
  for (int64_t i = 0; i < iterations; ++i) {
    optimizer.rule().step_shared(values, {.iteration = i});
  }
  std::vector<Tensor> out;
  for (const double value : values) out.push_back(Tensor::scalar(value));
  return out;
}

void add_slot(const std::shared_ptr<Optimizer>& optimizer, const Variable& variable, size_t s,
              std::vector<OptimizerState>& out) {
  const Variable slot = optimizer->slots(variable)[s];
  out.push_back({.name = slot.path(),
                 .spec = slot.spec(),
                 .is_slot = true,
                 // Read when needed, because each process may hold only a part of the slot.
                 .get = [=] { return optimizer->slots(variable)[s].read(); },
                 .set = [=](const Tensor& value) { slot.assign(value); }});
}

}  // namespace

std::vector<OptimizerWeight> optimizer_weights(const Model& model) {
  const std::shared_ptr<Optimizer> optimizer = model.optimizer();
  if (!optimizer->optimizers().empty()) {
    throw NotImplementedError(
        "save_model: .h5 files cannot hold the state of a MultiOptimizer; save a .keras file, or "
        "set include_optimizer to false");
  }
  const std::vector<Variable> variables = trainable_variables(model);
  optimizer->build(variables);
  std::vector<OptimizerWeight> out;
  std::vector<std::string> names;
  const std::string& class_name = optimizer->unwrapped().class_name();
  for (const Variable& own : optimizer->wrapper_variables()) {
    names.push_back(absl::StrCat(optimizer->class_name(), "/", own.name(), ":0"));
    out.push_back({.name = names.back(), .get = [=] { return own.read(); }});
  }
  names.emplace_back("iteration:0");
  out.push_back(
      {.name = names.back(), .get = [=] { return optimizer->iterations_variable().read(); }});
  const std::vector<Slot>& slots = optimizer->slot_specs();
  for (const auto& [v, s] : order_in_files(slots, variables.size())) {
    if (!slot_shape(optimizer->rule(), s, variables[v])) continue;
    const std::string slot = keras_2_names(class_name, slots[s].name)[0];
    names.push_back(
        unique_name(names, absl::StrCat(class_name, "/", slot, "/", variables[v].path())));
    out.push_back({.name = names.back(), .get = [=, variable = variables[v], slot_index = s] {
                     return optimizer->slots(variable)[slot_index].read();
                   }});
  }
  for (const Variable& shared : optimizer->shared_slots()) {
    out.push_back({.name = absl::StrCat(class_name, "/", shared.name(), ":0"),
                   .get = [=] { return shared.read(); }});
  }
  return out;
}

void leave_optimizer_out(const std::string& where, size_t needed, size_t stored) {
  std::cerr << absl::StrCat(where, ": the optimizer requires ", needed, " tensors, the file has ",
                            stored, "; the optimizer starts with fresh state\n");
}

void read_optimizer_weights(const Hdf5File& file, const Model& model) {
  if (!file.has(kGroup) || model.optimizer() == nullptr) return;
  Optimizer& optimizer = *model.optimizer();
  if (!optimizer.optimizers().empty()) {
    return leave_optimizer_out(absl::StrCat(file.path(), ", ", kGroup),
                               optimizer_state(model).size(),
                               file.string_list(kGroup, "weight_names").size());
  }
  const Stored stored = stored_weights(file, optimizer);
  if (stored.iterations.empty())
    throw IoError(file.path(), ", ", kGroup, ": iterations are missing");
  const std::vector<Variable> variables = trainable_variables(model);
  for (size_t s = 0; s < stored.slots.size(); ++s) {
    const size_t needed = with_slot(optimizer, s, variables).size();
    const size_t found = stored.slots[s].size();
    if (found == 0 || found == needed) continue;
    return leave_optimizer_out(absl::StrCat(file.path(), ", ", kGroup), needed, found);
  }
  const std::map<std::string, Variable> targets = targets_of(file, stored, optimizer, variables);
  const int64_t calls = scalar_of(file, stored.iterations, DType::kInt64).item<int64_t>();
  const bool has_shared = stored.shared.size() == optimizer.shared_slots().size();
  std::vector<Tensor> shared;
  for (const std::string& dataset : stored.shared) {
    if (has_shared) shared.push_back(scalar_of(file, dataset, DType::kFloat64));
  }
  for (const auto& [dataset, target] : targets) target.assign(file.read(dataset, target.dtype()));
  for (const Variable& own : optimizer.wrapper_variables()) {
    const auto found = stored.wrapper.find(own.name());
    if (found != stored.wrapper.end()) own.assign(scalar_of(file, found->second, own.dtype()));
  }
  optimizer.set_iterations(calls);
  if (!has_shared) shared = shared_after(optimizer, optimizer.iterations());
  for (size_t i = 0; i < shared.size(); ++i) optimizer.shared_slots()[i].assign(shared[i]);
}

namespace {

void add_variable(const Variable& variable, bool is_slot, std::vector<OptimizerState>& out) {
  out.push_back({.name = variable.path(),
                 .spec = variable.spec(),
                 .is_slot = is_slot,
                 .get = [=] { return variable.read(); },
                 .set = [=](const Tensor& value) { variable.assign(value); }});
}

// Adds the state of one optimizer except wrapper_variables().
void add_state(const std::shared_ptr<Optimizer>& optimizer, const std::vector<Variable>& variables,
               std::vector<OptimizerState>& out) {
  out.push_back(
      {.name = "iteration",
       .spec = {.shape = {}, .dtype = DType::kInt64},
       .get = [=] { return optimizer->iterations_variable().read(); },
       .set = [=](const Tensor& value) { optimizer->set_iterations(value.item<int64_t>()); }});
  if (optimizer->learning_rate_source().number()) {
    out.push_back(
        {.name = "learning_rate",
         .spec = {.shape = {}, .dtype = DType::kFloat32},
         .get = [=] { return Tensor::scalar(static_cast<float>(optimizer->learning_rate())); },
         .set =
             [=](const Tensor& v) {
               // The config stores the same rate with more digits.
               const auto rate = v.item<float>();
               if (static_cast<float>(optimizer->learning_rate()) == rate) return;
               optimizer->set_learning_rate(rate);
             }});
  }
  for (const auto& [v, s] : order_in_files(optimizer->slot_specs(), variables.size())) {
    if (slot_shape(optimizer->rule(), s, variables[v])) add_slot(optimizer, variables[v], s, out);
  }
  for (const Variable& shared : optimizer->shared_slots()) add_variable(shared, true, out);
}

}  // namespace

std::vector<OptimizerState> optimizer_state(const Model& model) {
  const std::shared_ptr<Optimizer> optimizer = model.optimizer();
  const std::vector<Variable> variables = trainable_variables(model);
  optimizer->build(variables);
  std::vector<OptimizerState> out;
  for (const Variable& own : optimizer->wrapper_variables()) add_variable(own, false, out);
  const std::vector<OptimizerHandle> several = optimizer->optimizers();
  if (several.empty()) add_state(optimizer, variables, out);
  for (const OptimizerHandle& one : several) {
    std::vector<Variable> own;
    std::ranges::copy_if(variables, std::back_inserter(own), [&](const Variable& v) {
      return &optimizer->optimizer_of(v) == one.shared().get();
    });
    add_state(one.shared(), own, out);
  }
  return out;
}

}  // namespace keel
