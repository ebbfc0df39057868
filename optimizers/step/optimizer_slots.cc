#include <keel/optimizers/step/optimizer_slots.h>

#include <algorithm>
#include <set>
#include <tuple>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/distribute/internal/placement.h>
#include <keel/distribute/strategy.h>
#include <keel/framework/base/internal/memory_error.h>

namespace keel {
namespace {

using distribute::Communicator;
using distribute::Strategy;

// Returns a tensor that stores one row and repeats it. The memory of the slots is allocated in the
// first step, which decides on the layout.
Tensor initial_value(DType dtype, const Shape& shape, double value) {
  const bool has_rows = shape.rank() > 0;
  const Shape of_row = has_rows ? shape.slice(1, shape.rank()) : shape;
  const Tensor row = dtype == DType::kFloat64 ? Tensor::full<double>(of_row, value)
                                              : Tensor::full(of_row, static_cast<float>(value));
  return has_rows ? row.repeated(shape[0]) : row;
}

std::vector<Variable> made(const Variable& variable, const UpdateRule& rule,
                           const std::vector<Slot>& specs) {
  const auto* of_variable = dynamic_cast<const VariableSlots*>(&rule);
  const size_t of_rule = rule.slots().size();
  std::vector<Variable> out;
  for (const Slot& slot : specs) {
    const bool copies = of_variable != nullptr && out.size() < of_rule &&
                        of_variable->starts_with_variable(out.size());
    const Shape shape = slot_shape(rule, out.size(), variable).value_or(Shape({0}));
    out.emplace_back(
        copies ? variable.read() : initial_value(variable.dtype(), shape, slot.initial),
        VariableOptions{.name = slot.name, .trainable = false});
    out.back().set_path(variable.path() + "/" + slot.name);
  }
  return out;
}

}  // namespace

std::vector<SlotPlace> order_in_files(std::span<const Slot> slots, size_t variables) {
  std::set<int> groups;
  for (const Slot& slot : slots) groups.insert(slot.group);
  std::vector<SlotPlace> out;
  for (const int group : groups) {
    for (size_t v = 0; v < variables; ++v) {
      for (size_t s = 0; s < slots.size(); ++s) {
        if (slots[s].group == group) out.push_back({.variable = v, .slot = s});
      }
    }
  }
  return out;
}

VariableInfo info_of(const Variable& variable) {
  return {.shape = variable.shape(), .path = variable.path()};
}

std::optional<Shape> slot_shape(const UpdateRule& rule, size_t slot, const Variable& variable) {
  // The table has the slots of its rows.
  if (VariableStorage(variable).keyed_rows() != nullptr) return {};
  const auto* of_variable = dynamic_cast<const VariableSlots*>(&rule);
  if (of_variable == nullptr || slot >= rule.slots().size()) return variable.shape();
  return of_variable->slot_shape(slot, info_of(variable));
}

void OptimizerSlots::build(const std::vector<Variable>& variables) {
  const std::lock_guard lock(mutex_);
  for (const Variable& variable : variables) {
    if (variable.is_virtual() || slots_.contains(variable.id())) continue;
    const double bytes =
        bytes_for(variable.shape(), static_cast<double>(size_of(variable.dtype())) *
                                        static_cast<double>(specs_.size()));
    slots_.emplace(variable.id(),
                   allocate_for("Optimizer: slots of " + variable.path(), variable.shape(), bytes,
                                [&] { return made(variable, *rule_, specs_); }));
  }
}

void OptimizerSlots::restart(const std::vector<Variable>& variables) {
  const auto* of_variable = dynamic_cast<const VariableSlots*>(rule_.get());
  if (of_variable == nullptr) return;
  for (const Variable& variable : variables) {
    const std::vector<Variable> slots = this->slots(variable);
    for (size_t s = 0; s < std::min(slots.size(), rule_->slots().size()); ++s) {
      if (of_variable->starts_with_variable(s)) VariableStorage(slots[s]).replace(variable.read());
    }
  }
}

bool OptimizerSlots::has(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  return slots_.contains(variable.id());
}

std::vector<Variable> OptimizerSlots::slots(const Variable& variable) const {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(variable.id());
  return found == slots_.end() ? std::vector<Variable>() : found->second;
}

void OptimizerSlots::shard(const std::vector<Variable>& dense, const std::vector<Variable>& moved) {
  sharded_over_ = &Strategy::current().process_group();
  const Communicator& communicator = Strategy::current().communicator();
  // Shards that this step invalidates: they contain a variable of `moved` but have another list of
  // variables or other replicas.
  std::vector<Variable> disturbed;
  bool known = dense.empty();
  for (const SlotSharding& shard : shardings_) {
    if (shard.variables == dense && shard.first_replicas == communicator.placement().first) {
      known = true;
    } else if (shard.has_any(moved)) {
      disturbed.insert(disturbed.end(), shard.variables.begin(), shard.variables.end());
    }
  }
  make_whole(disturbed);
  if (known) return;
  SlotSharding shard = {
      .variables = dense, .slots = {}, .first_replicas = communicator.placement().first};
  int64_t total = 0;
  for (const Variable& v : dense) {
    shard.slots.push_back(slots(v));
    total += v.shape().size();
  }
  std::tie(shard.first, shard.end) = communicator.local_shard(total);
  shardings_.push_back(std::move(shard));
}

void OptimizerSlots::make_whole(const std::vector<Variable>& variables) const {
  // Shards that stay are first; those to gather follow.
  const auto to_gather = std::ranges::stable_partition(
      shardings_, [&](const SlotSharding& shard) { return !shard.has_any(variables); });
  if (to_gather.empty()) return;
  all_gather_slots(*sharded_over_, {to_gather.begin(), to_gather.end()});
  shardings_.erase(to_gather.begin(), to_gather.end());
}

}  // namespace keel
