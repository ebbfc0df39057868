// KeyedPeers: the processes that share the keys of a table for unbounded ids.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/distribute/internal/message_stream.h>
#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Each process owns the key shards of its hosts.
class KeyedPeers {
 public:
  // One process, which owns all keys.
  KeyedPeers() = default;
  // The processes of a job. `group` must exist as long as this object.
  KeyedPeers(ProcessGroup& group, int hosts);

  bool alone() const { return group_ == nullptr; }
  int size() const { return group_ == nullptr ? 1 : group_->size(); }
  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int hosts() const { return hosts_; }
  // Returns the process that owns a key shard, or the key with this hash.
  int owner_of_shard(int shard) const { return alone() ? 0 : owners_[shard]; }
  int owner(uint64_t hash) const { return owner_of_shard(key_shard(hash)); }
  bool owns(uint64_t hash) const { return alone() || owner(hash) == rank(); }

  // Returns the key shards [first, end) that this process owns.
  std::pair<int, int> owned_shards() const;

  // Return the messages of all processes by rank, including this one. In all_gather() each process
  // sends the same message to all; in exchange() message p goes to process p. Collective.
  using Messages = std::vector<std::vector<std::byte>>;
  Messages all_gather(std::string_view what, const MessageWriter& mine) const;
  Messages exchange(std::string_view what, std::span<const MessageWriter> messages) const;

 private:
  ProcessGroup* group_ = nullptr;  // null: one process
  int hosts_ = 1;
  std::vector<int> owners_;  // by key shard, ascending
};

// Returns readers of messages.
std::vector<MessageReader> readers_of(const KeyedPeers::Messages& messages);

}  // namespace keel::distribute
