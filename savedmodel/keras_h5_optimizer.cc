#include "savedmodel/keras_h5_optimizer.h"

#include <algorithm>
#include <map>
#include <optional>

namespace keel {
namespace {

constexpr const char* kGroup = kOptimizerWeights;

std::vector<Variable> trainable_variables(const Model& model) {
  std::vector<Variable> out = model.trainable_variables();
  std::erase_if(out, [](const Variable& v) { return v.is_virtual(); });
  return out;
}

// What Keras 2 calls a slot.
std::string keras_2_name(const std::string& slot) {
  if (slot == "momentum") return "m";
  return slot == "velocity" ? "v" : slot;
}

// Which slot of the rule a file's entry belongs to. Keras 2.15: "Adam/m/dense/kernel:0"; before:
// "Adam/dense/kernel/m:0"; Keras 3: "adam/dense_kernel_momentum".
std::optional<size_t> slot_of(std::string name, const std::vector<Slot>& slots) {
  if (name.ends_with(":0")) name.resize(name.size() - 2);
  const size_t first = name.find('/');
  const size_t last = name.rfind('/');
  const bool has_parts = first != last;
  const std::string second =
      has_parts ? name.substr(first + 1, name.find('/', first + 1) - first - 1) : "";
  const auto is = [&](const std::string& part, size_t s) {
    return part == slots[s].name || part == keras_2_name(slots[s].name);
  };
  for (size_t s = 0; s < slots.size(); ++s) {
    if (has_parts && (is(second, s) || is(name.substr(last + 1), s))) return s;
  }
  for (size_t s = 0; s < slots.size(); ++s) {
    if (name.ends_with("_" + slots[s].name)) return s;
  }
  return std::nullopt;
}

// Layers of different nested models may have one name.
std::string unique_name(const std::vector<std::string>& taken, const std::string& name) {
  std::string out = name + ":0";
  for (int i = 1; std::ranges::find(taken, out) != taken.end(); ++i) {
    out = name + "_" + std::to_string(i) + ":0";
  }
  return out;
}

enum class Kind { kIteration, kLearningRate, kSlot };

Kind kind_of(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  if (last == "iteration" || last == "iteration:0" || last == "iter:0") return Kind::kIteration;
  return last.starts_with("learning_rate") ? Kind::kLearningRate : Kind::kSlot;
}

// Datasets by slot, in the order of the variables.
struct Stored {
  std::string iterations;
  std::vector<std::vector<std::string>> slots;
};

Stored stored_weights(const Hdf5File& file, const std::vector<Slot>& slots) {
  Stored out;
  out.slots.resize(slots.size());
  for (const std::string& name : file.string_list(kGroup, "weight_names")) {
    const std::string dataset = str(kGroup, "/", name);
    const Kind kind = kind_of(name);
    if (kind == Kind::kIteration) out.iterations = dataset;
    if (kind != Kind::kSlot) continue;
    const std::optional<size_t> slot = slot_of(name, slots);
    if (!slot) throw IoError(file.path(), ", ", kGroup, ": '", name, "' is no slot known here");
    out.slots[*slot].push_back(dataset);
  }
  return out;
}

}  // namespace

std::vector<OptimizerWeight> optimizer_weights(const Model& model) {
  const std::shared_ptr<Optimizer> optimizer = model.optimizer();
  const std::vector<Variable> variables = trainable_variables(model);
  optimizer->build(variables);
  std::vector<std::string> names = {"iteration:0"};
  std::vector<OptimizerWeight> out = {
      {.name = names[0], .get = [=] { return Tensor::scalar<int64_t>(optimizer->iterations()); }}};
  const std::vector<Slot> slots = optimizer->rule().slots();
  for (const Variable& variable : variables) {
    for (size_t s = 0; s < slots.size(); ++s) {
      names.push_back(unique_name(names, str(optimizer->class_name(), "/",
                                             keras_2_name(slots[s].name), "/", variable.path())));
      out.push_back(
          {.name = names.back(), .get = [=] { return optimizer->slots(variable)[s].read(); }});
    }
  }
  return out;
}

void read_optimizer_weights(const Hdf5File& file, const Model& model) {
  if (!file.has(kGroup) || model.optimizer() == nullptr) return;
  Optimizer& optimizer = *model.optimizer();
  const std::vector<Slot> slots = optimizer.rule().slots();
  const Stored stored = stored_weights(file, slots);
  if (stored.iterations.empty()) throw IoError(file.path(), ", ", kGroup, ": has no iterations");
  std::map<std::string, Variable> targets;
  const std::vector<Variable> variables = trainable_variables(model);
  optimizer.build(variables);
  for (size_t s = 0; s < slots.size(); ++s) {
    const std::vector<std::string>& datasets = stored.slots[s];
    if (datasets.empty()) continue;  // never built when it was saved
    if (datasets.size() != variables.size()) {
      throw ValueError(file.path(), ", ", kGroup, ": slot '", slots[s].name, "' needs ",
                       variables.size(), " tensors, the file has ", datasets.size());
    }
    for (size_t v = 0; v < variables.size(); ++v) {
      const Shape found = file.spec(datasets[v]).shape;
      if (found != variables[v].shape()) {
        throw ValueError(file.path(), ", ", kGroup, ": slot '", slots[s].name, "' of ",
                         variables[v].path(), " needs shape ", variables[v].shape(),
                         ", the file has ", found);
      }
      targets.emplace(datasets[v], optimizer.slots(variables[v])[s]);
    }
  }
  const Tensor iterations = file.read(stored.iterations, DType::kInt64);
  if (iterations.size() != 1) throw IoError(file.path(), ", ", stored.iterations, ": no scalar");
  for (const auto& [dataset, target] : targets) target.assign(file.read(dataset, target.dtype()));
  optimizer.set_iterations(iterations.item<int64_t>());
}

}  // namespace keel
