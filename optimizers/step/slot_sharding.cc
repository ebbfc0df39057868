#include <keel/optimizers/step/slot_sharding.h>

#include <algorithm>

#include <keel/autodiff/internal/variable_storage.h>

namespace keel {
namespace {

using distribute::ProcessGroup;

// Calls fn(run) for the contiguous runs of float elements that make up elements [first, end) of
// slot `s` in the concatenation of all variables.
template <class Fn>
void for_each_run(const SlotSharding& shard, size_t s, int64_t first, int64_t end, const Fn& fn) {
  int64_t position = 0;
  for (size_t v = 0; v < shard.variables.size(); ++v) {
    const int64_t size = shard.variables[v].shape().size();
    const int64_t begin = std::max<int64_t>(0, first - position);
    const int64_t stop = std::min(size, end - position);
    if (begin < stop) {
      fn(VariableStorage(shard.slots[v][s]).elements<float>().subspan(begin, stop - begin));
    }
    position += size;
  }
}

size_t slots_of_each(const SlotSharding& shard) {
  return shard.slots.empty() ? 0 : shard.slots[0].size();
}

// Returns the message of this process: for each shard its range of elements, then the runs of each
// slot.
ProcessGroup::Parts parts_of(std::span<const SlotSharding> shards) {
  ProcessGroup::Parts out;
  for (const SlotSharding& shard : shards) {
    out.push_back(std::as_bytes(std::span(&shard.first, 1)));
    out.push_back(std::as_bytes(std::span(&shard.end, 1)));
    for (size_t s = 0; s < slots_of_each(shard); ++s) {
      for_each_run(shard, s, shard.first, shard.end,
                   [&](std::span<float> run) { out.push_back(std::as_bytes(run)); });
    }
  }
  return out;
}

void write(const ProcessGroup::Parts& parts, std::span<const SlotSharding> shards) {
  size_t next = 0;
  const auto number = [&] { return *reinterpret_cast<const int64_t*>(parts.at(next++).data()); };
  for (const SlotSharding& shard : shards) {
    const int64_t first = number();
    const int64_t end = number();
    for (size_t s = 0; s < slots_of_each(shard); ++s) {
      for_each_run(shard, s, first, end, [&](std::span<float> run) {
        const distribute::Bytes bytes = parts.at(next++);
        std::ranges::copy(bytes, std::as_writable_bytes(run).begin());
      });
    }
  }
}

}  // namespace

bool SlotSharding::has_any(const std::vector<Variable>& others) const {
  return std::ranges::any_of(others, [&](const Variable& v) {
    return std::ranges::find(variables, v) != variables.end();
  });
}

void all_gather_slots(ProcessGroup& group, std::span<const SlotSharding> shards) {
  for (const SlotSharding& shard : shards) {
    // The shards of other processes are written in place, so no other tensor may share the memory.
    for (const auto& of_variable : shard.slots) {
      for (const Variable& slot : of_variable) VariableStorage(slot).make_unique();
    }
  }
  const auto received = all_gather(group, "slots of an optimizer", parts_of(shards));
  for (int p = 0; p < group.size(); ++p) {
    if (p != group.rank()) write(received[p], shards);
  }
}

}  // namespace keel
