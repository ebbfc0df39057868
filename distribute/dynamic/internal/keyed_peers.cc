#include <keel/distribute/dynamic/internal/keyed_peers.h>

#include <algorithm>

#include <keel/distribute/internal/placement.h>

namespace keel::distribute {

KeyedPeers::KeyedPeers(ProcessGroup& group, int hosts)
    : group_(group.size() == 1 ? nullptr : &group), hosts_(hosts) {
  if (alone()) return;
  const Placement placement = place_hosts(hosts, 1, group);
  for (int shard = 0; shard < kKeyShards; ++shard) {
    owners_.push_back(placement.process_of(owner_of_key_shard(shard, hosts)));
  }
}

std::pair<int, int> KeyedPeers::owned_shards() const {
  if (alone()) return {0, kKeyShards};
  const auto owned = std::ranges::equal_range(owners_, rank());
  return {static_cast<int>(owned.begin() - owners_.begin()),
          static_cast<int>(owned.end() - owners_.begin())};
}

KeyedPeers::Messages KeyedPeers::all_gather(std::string_view what,
                                            const MessageWriter& mine) const {
  return exchange(what, std::vector<MessageWriter>(size(), mine));
}

KeyedPeers::Messages KeyedPeers::exchange(std::string_view what,
                                          std::span<const MessageWriter> messages) const {
  const auto copy = [](Bytes bytes) { return std::vector<std::byte>(bytes.begin(), bytes.end()); };
  if (alone()) return {copy(messages[0].bytes())};
  std::vector<ProcessGroup::Parts> send;
  for (const MessageWriter& message : messages) send.push_back({message.bytes()});
  send[rank()].clear();
  const std::vector<ProcessGroup::Parts> received = group_->exchange(what, send);
  Messages out;
  for (int p = 0; p < size(); ++p) {
    out.push_back(copy(p == rank() ? messages[p].bytes() : received[p].at(0)));
  }
  return out;
}

std::vector<MessageReader> readers_of(const KeyedPeers::Messages& messages) {
  std::vector<MessageReader> out;
  for (const std::vector<std::byte>& message : messages) out.emplace_back(Bytes(message));
  return out;
}

}  // namespace keel::distribute
