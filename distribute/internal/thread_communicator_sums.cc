// The collectives of ThreadCommunicator that sum or copy arrays: reduce_scatter and
// all_gather_shards.
#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include <keel/distribute/internal/rendezvous.h>
#include <keel/distribute/internal/thread_communicator.h>
#include <keel/framework/base/profile.h>

namespace keel::distribute {
namespace {

constexpr int64_t kShareAlignment = 16;  // floats: no two ranks write to the same cache line

// Divides the elements [begin, end) of the concatenated pieces into runs that lie in one piece and
// have at most `most` elements. Calls fn(piece, at, n, offset) for each: the run has n elements
// from element `at` of its piece and begins `offset` elements after `begin`.
template <class Pieces, class Fn>
void for_each_run(const Pieces& pieces, int64_t begin, int64_t end, int64_t most, const Fn& fn) {
  int64_t first = 0;  // position of the piece among all elements
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t size = static_cast<int64_t>(pieces[i].size());
    const int64_t stop = std::min(size, end - first);
    for (int64_t at = std::max<int64_t>(0, begin - first); at < stop; at += most) {
      fn(i, at, std::min(most, stop - at), first + at - begin);
    }
    first += size;
  }
}
constexpr int64_t kWhole = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

// Returns the elements owned by the ranks [first_rank, end_rank). Shares are nearly even; their
// boundaries are multiples of kShareAlignment.
ThreadCommunicator::Elements ThreadCommunicator::owned_by(int first_rank, int end_rank,
                                                          int64_t total) const {
  const auto boundary = [&](int rank) {
    const int64_t at = total * rank / size();
    return rank == size() ? total : at / kShareAlignment * kShareAlignment;
  };
  return {boundary(first_rank), boundary(end_rank)};
}

ThreadCommunicator::Elements ThreadCommunicator::owned_by_process(int process,
                                                                  int64_t total) const {
  return owned_by(placement_.first[process], placement_.first[process + 1], total);
}

ThreadCommunicator::Elements ThreadCommunicator::local_part(Elements elements) const {
  const int64_t me = local_rank();
  const int64_t ranks = placement_.local();
  return {elements.begin + elements.size() * me / ranks,
          elements.begin + elements.size() * (me + 1) / ranks};
}

void ThreadCommunicator::reduce_scatter(std::span<const std::span<const float>> pieces,
                                        const Consume& consume,
                                        const OnLastArrival& on_last_arrival) {
  sum_and_consume(pieces, nullptr, consume, on_last_arrival);
}

bool ThreadCommunicator::reduce_scatter_if(std::span<const std::span<const float>> pieces,
                                           const Attachment& attachment, const Consume& consume,
                                           const OnLastArrival& on_last_arrival) {
  return sum_and_consume(pieces, &attachment, consume, on_last_arrival);
}

// Stores what this rank attaches to its pieces where the exchange of this turn reads it.
void ThreadCommunicator::post_attachment(const Attachment& attachment, size_t turn) {
  Rendezvous::Rank& rank = rendezvous_->ranks[local_rank()];
  for (int r = 1; r < size(); ++r) {
    count_sent(rank.traffic.all_to_all, std::ssize(attachment.mine));
  }
  rank.posts[turn].kept.assign(attachment.mine.begin(), attachment.mine.end());
}

bool ThreadCommunicator::sum_and_consume(std::span<const std::span<const float>> pieces,
                                         const Attachment* attachment, const Consume& consume,
                                         const OnLastArrival& on_last_arrival) {
  const Call call{"reduce_scatter", attachment == nullptr ? "reduce_scatter" : "with attachments"};
  const profile::Scope scope(profile::Phase::kReduce, "gradients");
  Rendezvous& m = *rendezvous_;
  const int me = rank();
  const int64_t total = total_size(pieces);
  const Elements mine = owned_by(me, me + 1, total);
  Rendezvous::Rank& my_rank = m.ranks[local_rank()];
  for (int r = 0; r < size(); ++r) {
    if (r != me) {
      count_sent(my_rank.traffic.reduce_scatter,
                 owned_by(r, r + 1, total).size() * int64_t{sizeof(float)});
    }
  }
  // Allocated before the first rendezvous: from then on other ranks read this rank's pieces, so
  // that nothing may throw.
  std::vector<Summand> summands(size());
  const size_t turn = m.generation % 2;
  if (attachment != nullptr) post_attachment(*attachment, turn);
  // In one process, a single rendezvous publishes the pieces. With several processes, the first one
  // publishes them, then each rank computes its part of the partial sums for the others, and the
  // last rank to arrive at the second one exchanges these sums.
  const auto exchange_with_others = [&] {
    m.sums_are_wanted = exchange_sums(call, total, attachment, turn);
  };
  if (alone()) {
    arrive_and_wait(call, pieces.data(), exchange_with_others);
  } else {
    arrive_and_wait(call, pieces.data(), [&] { make_room_for_sums(total); });
    sum_for_processes(pieces, total);
    arrive_and_wait(call, nullptr, exchange_with_others);
  }
  if (!m.sums_are_wanted) return false;
  // Other ranks read this rank's pieces until the last rendezvous, so an error is rethrown after
  // it.
  std::exception_ptr error;
  std::array<float, kSumBlock> sum;
  const int64_t before = mine.begin - owned_by_process(placement_.process, total).begin;
  for_each_run(pieces, mine.begin, mine.end, kSumBlock,
               [&](size_t i, int64_t at, int64_t n, int64_t offset) {
                 if (error != nullptr) return;
                 point_at_local(summands, i, at);
                 point_at_incoming(summands, before + offset, total);
                 sum_in_tree_order(summands, {0, size()}, n, sum.data());
                 try {
                   consume(i, at, {sum.data(), static_cast<size_t>(n)});
                 } catch (...) {
                   error = std::current_exception();
                 }
               });
  if (error != nullptr) m.consume_failed = true;
  arrive_and_wait(call, nullptr, [&] {
    if (on_last_arrival && !m.consume_failed) on_last_arrival();
  });
  if (error != nullptr) std::rethrow_exception(error);
  return true;
}

// Sets the summands of the local ranks to element `at` of their pieces.
void ThreadCommunicator::point_at_local(std::span<Summand> summands, size_t piece,
                                        int64_t at) const {
  for (int r = placement_.first_local(), l = 0; l < placement_.local(); ++r, ++l) {
    const auto* pieces = static_cast<const std::span<const float>*>(rendezvous_->offers[l]);
    summands[r] = {.end = r + 1, .data = pieces[piece].data() + at};
  }
}

// Sets the summands received from other processes, `offset` elements into those that this process
// owns.
void ThreadCommunicator::point_at_incoming(std::span<Summand> summands, int64_t offset,
                                           int64_t total) const {
  if (alone()) return;
  const int64_t size_of_each = owned_by_process(placement_.process, total).size();
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    const float* sums = as_elements<float>(rendezvous_->incoming[p].front()).data() + offset;
    for (const ReplicaRange& subtree : rendezvous_->subtrees[p]) {
      summands[subtree.begin] = {.end = subtree.end, .data = sums};
      sums += size_of_each;
    }
  }
}

void ThreadCommunicator::make_room_for_sums(int64_t total) {
  Rendezvous& m = *rendezvous_;
  const size_t arrays = m.subtrees[placement_.process].size();
  m.sums.resize(placement_.processes());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p != placement_.process) m.sums[p].resize(arrays * owned_by_process(p, total).size());
  }
}

// Sums the elements that other processes own over the whole subtrees of local ranks. Only these
// partial sums are sent, and they have the bits of the full tree. Each rank sums its share of them.
void ThreadCommunicator::sum_for_processes(std::span<const std::span<const float>> pieces,
                                           int64_t total) {
  Rendezvous& m = *rendezvous_;
  std::vector<Summand> summands(size());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    const Elements owned = owned_by_process(p, total);
    const Elements share = local_part(owned);
    for_each_run(pieces, share.begin, share.end, kSumBlock,
                 [&](size_t i, int64_t at, int64_t n, int64_t offset) {
                   point_at_local(summands, i, at);
                   float* out = m.sums[p].data() + share.begin - owned.begin + offset;
                   for (const ReplicaRange& subtree : m.subtrees[placement_.process]) {
                     sum_in_tree_order(summands, subtree, n, out);
                     out += owned.size();
                   }
                 });
  }
}

// Exchanges the sums and attachments with other processes. Returns whether the sums are wanted.
bool ThreadCommunicator::exchange_sums(const Call& call, int64_t total,
                                       const Attachment* attachment, size_t turn) {
  Rendezvous& m = *rendezvous_;
  if (!alone()) {
    std::vector<Parts> send(placement_.processes());
    for (int p = 0; p < placement_.processes(); ++p) {
      if (p == placement_.process) continue;
      send[p] = {as_bytes_of<float>(m.sums[p])};
      count_sent(m.traffic.reduce_scatter, total_size(send[p]));
      if (attachment == nullptr) continue;
      for (const Rendezvous::Rank& r : m.ranks) {
        send[p].push_back(r.posts[turn].kept);
        count_sent(m.traffic.all_to_all, std::ssize(r.posts[turn].kept));
      }
    }
    m.incoming = group_.exchange(call.text(), send);
  }
  // Sizes are checked only if the sums are wanted: ranks that reject them pass no pieces.
  if (attachment != nullptr && !attachment->accept(by_rank(m.incoming, 1, turn))) return false;
  const size_t owned = owned_by_process(placement_.process, total).size();
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    const size_t parts =
        attachment == nullptr ? 1 : 1 + placement_.first[p + 1] - placement_.first[p];
    check_size(m.incoming[p].size() == parts &&
                   m.incoming[p][0].size() == m.subtrees[p].size() * owned * sizeof(float),
               "reduce_scatter", p);
  }
  return true;
}

void ThreadCommunicator::all_gather_shards(std::span<const std::span<float>> pieces) {
  const Call call{"all_gather_shards", "all_gather_shards"};
  const int me = rank();
  const int64_t total = total_size(pieces);
  const int64_t bytes = owned_by(me, me + 1, total).size() * int64_t{sizeof(float)};
  for (int r = 1; r < size(); ++r)
    count_sent(rendezvous_->ranks[local_rank()].traffic.all_gather_shards, bytes);
  if (alone()) return;
  arrive_and_wait(call, nullptr, [&] {
    const Elements owned = owned_by_process(placement_.process, total);
    Parts parts;
    for_each_run(pieces, owned.begin, owned.end, kWhole,
                 [&](size_t i, int64_t at, int64_t n, int64_t) {
                   parts.push_back(as_bytes_of<float>(pieces[i].subspan(at, n)));
                 });
    std::vector<Parts> send(placement_.processes(), parts);
    send[placement_.process].clear();
    exchange(call, send, rendezvous_->traffic.all_gather_shards);
  });
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p != placement_.process) write_from_process(p, pieces, total);
  }
  arrive_and_wait(call, nullptr);
}

// Copies this rank's share of the elements received from a process.
void ThreadCommunicator::write_from_process(int process, std::span<const std::span<float>> pieces,
                                            int64_t total) {
  const Parts& parts = rendezvous_->incoming[process];
  const Elements owned = owned_by_process(process, total);
  const Elements share = local_part(owned);
  size_t next = 0;
  for_each_run(pieces, owned.begin, owned.end, kWhole,
               [&](size_t i, int64_t at, int64_t n, int64_t offset) {
                 const size_t part = next++;
                 check_size(part < parts.size() && parts[part].size() == n * sizeof(float),
                            "all_gather_shards", process);
                 const int64_t here = owned.begin + offset;
                 const int64_t begin = std::max(share.begin, here);
                 const int64_t end = std::min(share.end, here + n);
                 if (begin >= end) return;
                 std::copy_n(as_elements<float>(parts[part]).data() + begin - here, end - begin,
                             pieces[i].data() + at + begin - here);
               });
}

}  // namespace keel::distribute
