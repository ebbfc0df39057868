#include <keel/layers/embedding/mid_level/internal/engine_tables.h>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>

namespace keel {

void EngineTables::build(const std::vector<Shape>& output_shapes) {
  const std::lock_guard lock(mutex_);
  if (built_) return;
  session_.build(output_shapes, restored_);
  restored_.clear();
  built_ = true;
}

bool EngineTables::built() const {
  const std::lock_guard lock(mutex_);
  return built_;
}

StateEntry EngineTables::entry_before_build(int table, int part, const std::string& name) {
  const TableConfig& config = *session_.tables().tables[table].own;
  const Shape whole = {config.vocabulary_size, config.dim};
  const Shape shape = part == 0 ? whole : slot_shape(slots_of(config)[part - 1], whole);
  const auto self = shared_from_this();
  return {.name = name,
          .spec = {.shape = shape},
          .kind = part == 0 ? StateEntry::Kind::kWeight : StateEntry::Kind::kSlot,
          .trainable = part == 0 && config.trainable,
          .get =
              [self, table, part, name] {
                if (self->built()) return self->session_.read(table, part);
                throw RuntimeError("TPUEmbedding: '", name,
                                   "' has no values yet; call enqueue or build first");
              },
          .set =
              [self, table, part, name, shape](const Tensor& value) {
                if (self->built()) return self->session_.write(table, part, value);
                if (value.shape() != shape || value.dtype() != DType::kFloat32) {
                  throw ValueError("TPUEmbedding: '", name, "' must be float32 ", shape,
                                   ", received ", value.dtype(), " ", value.shape());
                }
                const std::lock_guard lock(self->mutex_);
                self->restored_.insert_or_assign(name, value);
              }};
}

std::vector<StateEntry> EngineTables::state_entries() {
  if (built()) return session_.state_entries();
  std::vector<StateEntry> out;
  int table = 0;
  for (const TableSet::Entry& entry : session_.tables().tables) {
    if (entry.own->dynamic) {  // has no entries before it is built
      ++table;
      continue;
    }
    out.push_back(entry_before_build(table, 0, entry.own->name));
    int part = 1;
    for (const Slot& slot : slots_of(*entry.own)) {
      out.push_back(entry_before_build(table, part++, entry.own->name + "/" + slot.name));
    }
    ++table;
  }
  return out;
}

}  // namespace keel
