#include <keel/layers/embedding/tables/dynamic_table.h>

#include <cmath>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/internal/keyed_table.h>

namespace keel {

distribute::KeyedTable& DynamicTable::table(const char* caller, bool drain) const {
  if (current_replica_context() != nullptr) {
    throw RuntimeError("DynamicTable::", caller,
                       ": called inside a replica; call it between steps, outside Strategy::run");
  }
  return access_(drain);
}

const DynamicVocabulary& DynamicTable::options() const {
  return table("options", false).options().dynamic;
}

int64_t DynamicTable::dim() const { return table("dim", false).options().dim; }

int64_t DynamicTable::size() const { return table("size").statistics().size; }

double DynamicTable::load() const {
  const distribute::KeyedTable& of = table("load");
  const int64_t capacity = of.options().dynamic.capacity;
  return capacity == 0 ? std::nan("")
                       : static_cast<double>(of.statistics().size) / static_cast<double>(capacity);
}

std::vector<char> DynamicTable::contains(const Tensor& keys) const {
  return table("contains").contains(keys);
}

DynamicTableStatistics DynamicTable::statistics() const {
  return table("statistics", false).statistics();
}

DynamicTableMemory DynamicTable::memory() const { return table("memory").memory(); }

Tensor DynamicTable::keys() const { return table("keys").keys(); }

Tensor DynamicTable::rows(const Tensor& keys) const { return table("rows").read(0, keys); }

Tensor DynamicTable::slots(const std::string& name, const Tensor& keys) const {
  const distribute::KeyedTable& of = table("slots");
  int part = 1;
  for (const Slot& slot : of.options().slots) {
    if (slot.name == name) return of.read(part, keys);
    ++part;
  }
  throw ValueError("slots: the optimizer of table '", of.options().name, "' has no slot '", name,
                   "'");
}

DynamicKeyInfo DynamicTable::info(int64_t key) const {
  return table("info").info(Tensor::from<int64_t>({key}, {1}));
}

DynamicKeyInfo DynamicTable::info(const std::string& key) const {
  return table("info").info(Tensor::from<std::string>({key}, {1}));
}

void DynamicTable::assign_rows(const Tensor& keys, const Tensor& values) const {
  table("assign_rows").assign_rows(keys, values);
}

void DynamicTable::erase(const Tensor& keys) const { table("erase").erase(keys); }

int64_t DynamicTable::prune(const PruneOptions& options) const {
  return table("prune").prune(options);
}

void DynamicTable::set_clock(int64_t clock) const { table("set_clock").set_clock(clock); }

void DynamicTable::on_evict(EvictionCallback callback) const {
  table("on_evict").on_evict(std::move(callback));
}

DynamicTableState DynamicTable::state() const { return table("state").state(); }

void DynamicTable::restore(const DynamicTableState& state) const {
  table("restore").restore(state);
}

}  // namespace keel
