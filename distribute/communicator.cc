#include <keel/distribute/communicator.h>

#include <algorithm>

#include <keel/distribute/internal/placement.h>

namespace keel::distribute {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const Placement& placement() const override { return placement_; }
  void barrier(std::string_view) override {}
  void local_barrier(std::string_view, const OnLastArrival& on_last_arrival) override {
    if (on_last_arrival) on_last_arrival();
  }
  void arrive() override {}
  void wait_for_arrivals() override {}
  std::vector<Bytes> all_gather(Bytes mine, std::string_view,
                                const OnceWith& on_last_arrival) override {
    if (on_last_arrival) on_last_arrival({&mine, 1});
    return {mine};
  }
  std::vector<Bytes> local_gather(Bytes mine, std::string_view what,
                                  const OnceWith& on_last_arrival) override {
    return all_gather(mine, what, on_last_arrival);
  }
  int64_t post_to_processes(std::span<const Bytes>, std::string_view) override { return 0; }
  std::vector<Bytes> collect_posted(int64_t, std::string_view) override {
    return std::vector<Bytes>(1);
  }
  int64_t post_gather(std::span<const Bytes> mine, std::string_view) override {
    gathered_.assign(mine[0].begin(), mine[0].end());
    return 0;
  }
  std::vector<std::vector<std::byte>> collect_gather(int64_t) override { return {gathered_}; }
  std::vector<Bytes> all_to_all(std::span<const Bytes> send, std::string_view) override {
    return {send.begin(), send.end()};
  }
  void reduce_scatter(std::span<const std::span<const float>> pieces, const Consume& consume,
                      const OnLastArrival& on_last_arrival) override {
    for (size_t i = 0; i < pieces.size(); ++i) consume(i, 0, pieces[i]);
    if (on_last_arrival) on_last_arrival();
  }
  bool reduce_scatter_if(std::span<const std::span<const float>> pieces,
                         const Attachment& attachment, const Consume& consume,
                         const OnLastArrival& on_last_arrival) override {
    if (!attachment.accept({&attachment.mine, 1})) return false;
    reduce_scatter(pieces, consume, on_last_arrival);
    return true;
  }
  std::pair<int64_t, int64_t> local_shard(int64_t total) const override { return {0, total}; }
  void all_gather_shards(std::span<const std::span<float>>) override {}
  void abort(const std::string&) noexcept override {}
  void leave() noexcept override {}
  TrafficByKind traffic() const override { return {}; }
  TrafficByKind traffic_of_rank(int) const override { return {}; }
  void reset_traffic() override {}

 private:
  const Placement placement_ = {};
  std::vector<std::byte> gathered_;
};

}  // namespace

std::shared_ptr<Communicator> make_self_communicator() {
  return std::make_shared<SelfCommunicator>();
}

void all_reduce_sum(Communicator& communicator, std::span<float> values) {
  if (communicator.size() == 1) return;
  // Each rank sends its values to all others and adds all of them itself. For the few numbers that
  // this function is meant for, one exchange is faster than two.
  const std::vector<Bytes> received =
      communicator.all_gather(as_bytes_of<float>(values), "all_reduce_sum");
  std::vector<std::vector<float>> level;
  for (const Bytes& bytes : received) {
    const auto part = as_elements<float>(bytes);
    level.emplace_back(part.begin(), part.end());
  }
  // Adds pairs at distance 1, 2, 4, ..., which is the balanced tree over the rank.
  for (size_t stride = 1; stride < level.size(); stride *= 2) {
    for (size_t i = 0; i + stride < level.size(); i += 2 * stride) {
      for (size_t k = 0; k < values.size(); ++k) level[i][k] += level[i + stride][k];
    }
  }
  std::ranges::copy(level[0], values.begin());
}

}  // namespace keel::distribute
