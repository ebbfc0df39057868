// The order of ids in checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/internal/key_directory.h>

namespace keel::distribute {

// Returns the positions of all keys in ascending order of (key shard, key). The keys of a process
// are therefore adjacent in the order of all processes.
template <class Key>
std::vector<uint32_t> shard_order(const KeyDirectory<Key>& of);

extern template std::vector<uint32_t> shard_order(const KeyDirectory<int64_t>&);
extern template std::vector<uint32_t> shard_order(const KeyDirectory<std::string>&);

}  // namespace keel::distribute
