#include "distribute/thread_communicator.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "autodiff/replica_context.h"
#include "framework/profile.h"

namespace keel::distribute {
namespace {

constexpr int64_t kShareAlignment = 16;  // floats: two ranks never write to one cache line

// Calls fn(piece, at, n, offset) for the runs that the elements [begin, end) of all pieces
// together are cut into by the pieces and, within one, by `most`. Runs begin at element `at` of
// their piece and at `offset` from `begin`.
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

template <class Pieces>
int64_t total_size(const Pieces& pieces) {
  int64_t total = 0;
  for (const auto& piece : pieces) total += static_cast<int64_t>(piece.size());
  return total;
}

void count(Traffic& traffic, int64_t bytes) {
  traffic.bytes_sent += bytes;
  traffic.messages += bytes > 0 ? 1 : 0;
}

void expect(bool as_expected, const char* what, int process) {
  if (!as_expected) {
    throw RuntimeError(what, ": the arrays of rank ", process,
                       " have other sizes; all processes must pass arrays of the same sizes");
  }
}

}  // namespace

void WorkerPermits::acquire() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [this] { return free_ > 0; });
  --free_;
}

void WorkerPermits::release() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  freed_.notify_one();
}

struct ThreadCommunicator::Call {
  std::string_view kind, what;
  bool operator==(const Call&) const = default;
  std::string text() const { return kind == what ? str(kind) : str(kind, " '", what, "'"); }
};

// Where the local ranks of one collective find each other.
struct ThreadCommunicator::Meeting {
  std::mutex mutex;  // guards all up to `offers`
  std::condition_variable changed;
  Call call;  // of the ranks that are here now
  int here = 0;
  int left = 0;
  uint64_t generation = 0;
  bool aborted = false;
  std::string why;
  std::vector<const void*> offers;  // by local rank

  // Written by the last who comes or, sums, between two meetings, each rank its own part.
  std::vector<Parts> incoming;           // by process: of the last exchange
  std::vector<std::vector<float>> sums;  // by process: for the elements that it owns, one array
                                         // for each whole subtree of the replicas here
  std::vector<std::vector<ReplicaRange>> subtrees;  // by process; never changes
  TrafficByKind traffic;
  std::vector<TrafficByKind> rank_traffic;  // by local rank, each written by its rank
};

ThreadCommunicator::ThreadCommunicator(Placement placement, ProcessGroup& group,
                                       std::shared_ptr<WorkerPermits> permits)
    : placement_(std::move(placement)),
      group_(group),
      permits_(std::move(permits)),
      meeting_(std::make_unique<Meeting>()) {
  meeting_->offers.resize(placement_.local());
  meeting_->rank_traffic.resize(placement_.local());
  for (int p = 0; p < placement_.processes(); ++p) {
    meeting_->subtrees.push_back(
        whole_subtrees(size(), {placement_.first[p], placement_.first[p + 1]}));
  }
}

ThreadCommunicator::~ThreadCommunicator() = default;

int ThreadCommunicator::rank() const {
  const ReplicaContext* context = current_replica_context();
  if (context == nullptr) {
    if (size() == 1) return 0;
    throw RuntimeError("a collective over ", size(),
                       " replicas was called outside them; call it inside Strategy::run");
  }
  return context->replica;
}

void ThreadCommunicator::meet(const Call& call, const void* offer,
                              const std::function<void()>& then) {
  const int me = rank();
  Meeting& m = *meeting_;
  std::unique_lock lock(m.mutex);
  const auto fail = [&](const std::string& why) {
    m.aborted = true;
    m.why = why;
    m.changed.notify_all();
    group_.abort(why);
  };
  if (!m.aborted && m.left > 0) {
    fail(str("replica ", me, " is in ", call.text(), " but ", m.left, " of ", placement_.local(),
             " replicas have returned from the step"));
  } else if (!m.aborted && m.here > 0 && m.call != call) {
    fail(str("replica ", me, " is in ", call.text(), " while others are in ", m.call.text(),
             "; all replicas must make the same calls in the same order"));
  }
  if (m.aborted) throw Aborted(m.why);
  m.call = call;
  // The later meetings of a collective offer nothing: others may still be reading the offer of
  // the first.
  if (offer != nullptr) m.offers[me - placement_.first_local()] = offer;
  if (++m.here == placement_.local()) {
    if (then) {
      lock.unlock();
      try {
        then();
      } catch (const std::exception& error) {
        lock.lock();
        fail(error.what());
        throw;
      }
      lock.lock();
    }
    m.here = 0;
    ++m.generation;
    m.changed.notify_all();
    return;
  }
  const uint64_t mine = m.generation;
  const profile::Scope scope(profile::Phase::kWait, call.what);
  permits_->release();
  m.changed.wait(lock, [&] { return m.generation != mine || m.aborted; });
  const bool met = m.generation != mine;
  const std::string why = m.why;
  lock.unlock();
  permits_->acquire();
  if (!met) throw Aborted(why);
}

void ThreadCommunicator::exchange(const Call& call, std::span<const Parts> send, Traffic& traffic) {
  for (const Parts& parts : send) count(traffic, total_size(parts));
  meeting_->incoming = group_.exchange(call.text(), send);
}

void ThreadCommunicator::barrier(std::string_view what) {
  const Call call{"barrier", what};
  if (alone()) return meet(call, nullptr);
  Traffic nothing;
  meet(call, nullptr, [&] { exchange(call, std::vector<Parts>(placement_.processes()), nothing); });
}

std::vector<Bytes> ThreadCommunicator::all_to_all(std::span<const Bytes> send,
                                                  std::string_view what) {
  if (static_cast<int>(send.size()) != size()) {
    throw ValueError("all_to_all: ", send.size(), " messages for ", size(), " replicas");
  }
  const Call call{"all_to_all", what};
  const int me = rank();
  Meeting& m = *meeting_;
  Traffic& sent = m.rank_traffic[local_rank()].all_to_all;
  for (int r = 0; r < size(); ++r) {
    if (r != me) count(sent, static_cast<int64_t>(send[r].size()));
  }
  if (alone()) {
    meet(call, send.data());
  } else {
    meet(call, send.data(), [&] { exchange_messages(call); });
  }
  std::vector<Bytes> received;
  for (int r = 0; r < size(); ++r) {
    const int process = placement_.process_of(r);
    const int sender = r - placement_.first[process];
    received.push_back(process == placement_.process
                           ? static_cast<const Bytes*>(m.offers[sender])[me]
                           : m.incoming[process][sender * placement_.local() + local_rank()]);
  }
  // `send` itself may go when the call returns, so nobody may still be reading it.
  meet(call, nullptr);
  return received;
}

// To each process, from each replica here, a part for each replica there.
void ThreadCommunicator::exchange_messages(const Call& call) {
  Meeting& m = *meeting_;
  std::vector<Parts> send(placement_.processes());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    for (const void* offer : m.offers) {
      const Bytes* messages = static_cast<const Bytes*>(offer);
      send[p].insert(send[p].end(), messages + placement_.first[p],
                     messages + placement_.first[p + 1]);
    }
  }
  exchange(call, send, m.traffic.all_to_all);
}

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

ThreadCommunicator::Elements ThreadCommunicator::my_share_of(Elements elements) const {
  const int64_t me = local_rank();
  const int64_t ranks = placement_.local();
  return {elements.begin + elements.size() * me / ranks,
          elements.begin + elements.size() * (me + 1) / ranks};
}

void ThreadCommunicator::reduce_scatter(std::span<const std::span<const float>> pieces,
                                        const Consume& consume) {
  const Call call{"reduce_scatter", "reduce_scatter"};
  const profile::Scope scope(profile::Phase::kReduce, "gradients");
  Meeting& m = *meeting_;
  const int me = rank();
  const int64_t total = total_size(pieces);
  const Elements mine = owned_by(me, me + 1, total);
  Traffic& sent = m.rank_traffic[local_rank()].reduce_scatter;
  for (int r = 0; r < size(); ++r) {
    if (r != me) count(sent, owned_by(r, r + 1, total).size() * int64_t{sizeof(float)});
  }
  if (alone()) {
    meet(call, pieces.data());
  } else {
    meet(call, pieces.data(), [&] { make_room_for_sums(total); });
    sum_for_processes(pieces, total);
    meet(call, nullptr, [&] { exchange_sums(call, total); });
  }
  // Others read this rank's pieces until the closing meeting, so an error has to wait for it.
  std::exception_ptr error;
  std::vector<Summand> summands(size());
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
  meet(call, nullptr);
  if (error != nullptr) std::rethrow_exception(error);
}

// Summands of the ranks here: element `at` of their pieces.
void ThreadCommunicator::point_at_local(std::span<Summand> summands, size_t piece,
                                        int64_t at) const {
  for (int r = placement_.first_local(), l = 0; l < placement_.local(); ++r, ++l) {
    const auto* pieces = static_cast<const std::span<const float>*>(meeting_->offers[l]);
    summands[r] = {.end = r + 1, .data = pieces[piece].data() + at};
  }
}

// Summands that others have sent: `offset` elements into those that this process owns.
void ThreadCommunicator::point_at_incoming(std::span<Summand> summands, int64_t offset,
                                           int64_t total) const {
  if (alone()) return;
  const int64_t size_of_each = owned_by_process(placement_.process, total).size();
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    const float* sums = as_elements<float>(meeting_->incoming[p].front()).data() + offset;
    for (const ReplicaRange& subtree : meeting_->subtrees[p]) {
      summands[subtree.begin] = {.end = subtree.end, .data = sums};
      sums += size_of_each;
    }
  }
}

void ThreadCommunicator::make_room_for_sums(int64_t total) {
  Meeting& m = *meeting_;
  const size_t arrays = m.subtrees[placement_.process].size();
  m.sums.resize(placement_.processes());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p != placement_.process) m.sums[p].resize(arrays * owned_by_process(p, total).size());
  }
}

// The elements that other processes own, summed over the whole subtrees of ranks here. Each rank
// sums its share of them.
void ThreadCommunicator::sum_for_processes(std::span<const std::span<const float>> pieces,
                                           int64_t total) {
  Meeting& m = *meeting_;
  std::vector<Summand> summands(size());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    const Elements owned = owned_by_process(p, total);
    const Elements share = my_share_of(owned);
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

void ThreadCommunicator::exchange_sums(const Call& call, int64_t total) {
  Meeting& m = *meeting_;
  std::vector<Parts> send(placement_.processes());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p != placement_.process) send[p] = {as_bytes_of<float>(m.sums[p])};
  }
  exchange(call, send, m.traffic.reduce_scatter);
  const size_t owned = owned_by_process(placement_.process, total).size();
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    expect(m.incoming[p].size() == 1 &&
               m.incoming[p][0].size() == m.subtrees[p].size() * owned * sizeof(float),
           "reduce_scatter", p);
  }
}

void ThreadCommunicator::share(std::span<const std::span<float>> pieces) {
  const Call call{"share", "share"};
  const int me = rank();
  const int64_t total = total_size(pieces);
  const int64_t bytes = owned_by(me, me + 1, total).size() * int64_t{sizeof(float)};
  for (int r = 1; r < size(); ++r) count(meeting_->rank_traffic[local_rank()].share, bytes);
  if (alone()) return;
  meet(call, nullptr, [&] {
    const Elements owned = owned_by_process(placement_.process, total);
    Parts parts;
    for_each_run(pieces, owned.begin, owned.end, kWhole,
                 [&](size_t i, int64_t at, int64_t n, int64_t) {
                   parts.push_back(as_bytes_of<float>(pieces[i].subspan(at, n)));
                 });
    std::vector<Parts> send(placement_.processes(), parts);
    send[placement_.process].clear();
    exchange(call, send, meeting_->traffic.share);
  });
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p != placement_.process) write_from_process(p, pieces, total);
  }
  meet(call, nullptr);
}

// This rank's share of what a process has sent.
void ThreadCommunicator::write_from_process(int process, std::span<const std::span<float>> pieces,
                                            int64_t total) {
  const Parts& parts = meeting_->incoming[process];
  const Elements owned = owned_by_process(process, total);
  const Elements share = my_share_of(owned);
  size_t next = 0;
  for_each_run(
      pieces, owned.begin, owned.end, kWhole, [&](size_t i, int64_t at, int64_t n, int64_t offset) {
        const size_t part = next++;
        expect(part < parts.size() && parts[part].size() == n * sizeof(float), "share", process);
        const int64_t here = owned.begin + offset;
        const int64_t begin = std::max(share.begin, here);
        const int64_t end = std::min(share.end, here + n);
        if (begin >= end) return;
        std::copy_n(as_elements<float>(parts[part]).data() + begin - here, end - begin,
                    pieces[i].data() + at + begin - here);
      });
}

void ThreadCommunicator::abort(const std::string& why) noexcept {
  {
    const std::lock_guard lock(meeting_->mutex);
    if (!meeting_->aborted) meeting_->why = why;
    meeting_->aborted = true;
    meeting_->changed.notify_all();
  }
  group_.abort(why);
}

void ThreadCommunicator::leave() noexcept {
  Meeting& m = *meeting_;
  const std::lock_guard lock(m.mutex);
  ++m.left;
  if (m.here > 0 && !m.aborted) {
    m.aborted = true;
    m.why = str("a replica has returned from the step while others wait in ", m.call.text());
    m.changed.notify_all();
    group_.abort(m.why);
  }
}

void ThreadCommunicator::reset() {
  Meeting& m = *meeting_;
  const std::lock_guard lock(m.mutex);
  m.here = 0;
  m.left = 0;
  m.aborted = false;
  m.why.clear();
}

void ThreadCommunicator::finish() {
  if (!alone()) group_.exchange("the end of Strategy::run", std::vector<Parts>(group_.size()));
}

TrafficByKind ThreadCommunicator::traffic() const { return meeting_->traffic; }

TrafficByKind ThreadCommunicator::traffic_of_rank(int rank) const {
  const int local = rank - placement_.first_local();
  if (local < 0 || local >= placement_.local()) {
    throw ValueError("Communicator::traffic_of_rank: needs a rank of this process, received ",
                     rank);
  }
  return meeting_->rank_traffic[local];
}

void ThreadCommunicator::reset_traffic() {
  meeting_->traffic = {};
  std::ranges::fill(meeting_->rank_traffic, TrafficByKind());
}

}  // namespace keel::distribute
