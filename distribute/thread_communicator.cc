#include <keel/distribute/thread_communicator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <map>

#include <keel/autodiff/replica_context.h>
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
                       " have different sizes; all processes must pass arrays of the same sizes");
  }
}

}  // namespace

struct ThreadCommunicator::Call {
  std::string_view kind, what;
  bool operator==(const Call&) const = default;
  std::string text() const { return kind == what ? str(kind) : str(kind, " '", what, "'"); }
};

// The state in which the local ranks of a collective synchronize. The members up to `offers` are
// guarded by the lock of turns_.
struct ThreadCommunicator::Rendezvous {
  // Data that a rank publishes for others. They may read it until all ranks have passed the next
  // rendezvous, so each rank alternates between two posts.
  struct Post {
    std::vector<Bytes> sent;
    std::vector<std::byte> kept;
  };
  struct Rank {
    std::array<Post, 2> posts;
    TrafficByKind traffic;
  };

  Call call;                 // the call of the ranks that are here now
  std::vector<int> waiting;  // local ranks that wait in arrive_and_wait()
  std::vector<int> arrived;  // local ranks that wait in wait_for_arrivals()
  int here = 0;
  int left = 0;
  uint64_t generation = 0;
  bool aborted = false;
  std::string why;
  std::vector<int64_t> arrivals;    // by local rank
  std::vector<const void*> offers;  // by local rank
  std::atomic<bool> consume_failed = false;

  // Written by the last rank to arrive. Only `sums` are written by all ranks, between two
  // rendezvous, each rank its own part.
  std::vector<Parts> incoming;   // by process: received in the last exchange
  std::vector<Parts> collected;  // by process: received in the last collect_posted()
  int64_t posted = 0;            // number of the last post_to_processes()
  std::map<int64_t, std::vector<std::vector<std::byte>>> own_gathers;  // by post_gather() number
  bool sums_are_wanted = true;
  std::vector<std::vector<float>> sums;  // by process: for the elements that it owns, one array
                                         // per whole subtree of the local replicas
  std::vector<std::vector<ReplicaRange>> subtrees;  // by process; constant
  TrafficByKind traffic;
  std::vector<Rank> ranks;  // by local rank

  bool all_have_arrived(int64_t times) const {
    return std::ranges::all_of(arrivals, [times](int64_t of) { return of >= times; });
  }
  void abort(const std::string& reason, ReplicaScheduler& turns) {
    aborted = true;
    why = str_or_empty(reason);
    wake(waiting, turns);
    wake(arrived, turns);
  }
  static void wake(std::vector<int>& sleepers, ReplicaScheduler& turns) {
    for (const int r : sleepers) turns.make_ready(r);
    sleepers.clear();
  }
};

ThreadCommunicator::ThreadCommunicator(Placement placement, ProcessGroup& group,
                                       ReplicaScheduler& turns)
    : placement_(std::move(placement)),
      group_(group),
      turns_(turns),
      meeting_(std::make_unique<Rendezvous>()) {
  meeting_->waiting.reserve(placement_.local());
  meeting_->arrived.reserve(placement_.local());
  meeting_->arrivals.resize(placement_.local());
  meeting_->offers.resize(placement_.local());
  meeting_->ranks.resize(placement_.local());
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
    throw RuntimeError("Communicator: a collective over ", size(),
                       " replicas was called outside of replicas; call it inside Strategy::run()");
  }
  return context->replica;
}

void ThreadCommunicator::arrive_and_wait(const Call& call, const void* offer,
                                         const OnLastArrival& on_last_arrival) {
  const int me = local_rank();
  Rendezvous& m = *meeting_;
  ReplicaScheduler::Lock lock = turns_.lock();
  const auto fail = [&](const std::string& why) {
    m.abort(why, turns_);
    turns_.dispatch(lock);
    group_.abort(why);
    throw Aborted(why);
  };
  if (m.aborted) throw Aborted(m.why);
  if (m.left > 0) {
    fail(str("replica ", rank(), " is in ", call.text(), " but ", m.left, " of ",
             placement_.local(),
             " replicas have returned from the step; all replicas must make the same calls"));
  }
  if (m.here > 0 && m.call != call) {
    fail(str("replica ", rank(), " is in ", call.text(), " while others are in ", m.call.text(),
             "; all replicas must make the same calls in the same order"));
  }
  m.call = call;
  // Only the first rendezvous of a collective has an offer. Later ones must not overwrite it,
  // because other ranks may still be reading it.
  if (offer != nullptr) m.offers[me] = offer;
  if (++m.here < placement_.local()) {
    const uint64_t mine = m.generation;
    m.waiting.push_back(me);
    const profile::Scope scope(profile::Phase::kWait, call.what);
    turns_.wait(lock, me, true);
    // Only a complete rendezvous starts a new generation; otherwise the rank was woken by abort().
    if (m.generation == mine) throw Aborted(m.why);
    return;
  }
  if (on_last_arrival) {
    lock.unlock();
    try {
      on_last_arrival();
    } catch (const std::exception& error) {
      abort(error.what());
      throw;
    } catch (...) {
      abort(str_or_empty("a replica failed in ", call.kind, " '", call.what, "'"));
      throw;
    }
    lock.lock();
  }
  m.here = 0;
  ++m.generation;
  Rendezvous::wake(m.waiting, turns_);
  turns_.dispatch(lock);
}

void ThreadCommunicator::exchange(const Call& call, std::span<const Parts> send, Traffic& traffic) {
  for (const Parts& parts : send) count(traffic, total_size(parts));
  meeting_->incoming = group_.exchange(call.text(), send);
}

void ThreadCommunicator::barrier(std::string_view what) {
  const Call call{"barrier", what};
  if (alone()) return arrive_and_wait(call, nullptr);
  Traffic nothing;
  arrive_and_wait(call, nullptr,
                  [&] { exchange(call, std::vector<Parts>(placement_.processes()), nothing); });
}

void ThreadCommunicator::local_barrier(std::string_view what,
                                       const OnLastArrival& on_last_arrival) {
  arrive_and_wait({"local_barrier", what}, nullptr, on_last_arrival);
}

void ThreadCommunicator::arrive() {
  Rendezvous& m = *meeting_;
  ReplicaScheduler::Lock lock = turns_.lock();
  const int64_t times = ++m.arrivals[local_rank()];
  if (m.arrived.empty() || !m.all_have_arrived(times)) return;
  Rendezvous::wake(m.arrived, turns_);
  turns_.dispatch(lock);
}

void ThreadCommunicator::wait_for_arrivals() {
  Rendezvous& m = *meeting_;
  const int me = local_rank();
  ReplicaScheduler::Lock lock = turns_.lock();
  const int64_t times = m.arrivals[me];
  const auto complete = [&] { return m.all_have_arrived(times); };
  while (!complete()) {
    if (m.aborted) throw Aborted(m.why);
    m.arrived.push_back(me);
    const profile::Scope scope(profile::Phase::kWait, "arrivals");
    turns_.wait(lock, me, true);
  }
}

// Returns the bytes of each rank: those of local ranks from their posts, those of other ranks from
// the parts of `incoming` that begin at `first_part`.
std::vector<Bytes> ThreadCommunicator::by_rank(std::span<const Parts> incoming, size_t first_part,
                                               size_t turn) const {
  std::vector<Bytes> all;
  for (int p = 0; p < placement_.processes(); ++p) {
    for (int l = 0; l < placement_.first[p + 1] - placement_.first[p]; ++l) {
      all.push_back(p == placement_.process ? Bytes(meeting_->ranks[l].posts[turn].kept)
                                            : incoming[p].at(first_part + l));
    }
  }
  return all;
}

std::vector<Bytes> ThreadCommunicator::all_gather(Bytes mine, std::string_view what,
                                                  const OnceWith& on_last_arrival) {
  const Call call{"all_gather", what};
  Rendezvous& m = *meeting_;
  Rendezvous::Rank& me = m.ranks[local_rank()];
  for (int r = 1; r < size(); ++r) count(me.traffic.all_to_all, static_cast<int64_t>(mine.size()));
  const size_t turn = m.generation % 2;
  me.posts[turn].kept.assign(mine.begin(), mine.end());
  arrive_and_wait(call, nullptr, [&] {
    if (!alone()) {
      Parts parts;
      for (const Rendezvous::Rank& r : m.ranks) parts.push_back(r.posts[turn].kept);
      std::vector<Parts> send(placement_.processes(), parts);
      send[placement_.process].clear();
      exchange(call, send, m.traffic.all_to_all);
    }
    if (on_last_arrival) on_last_arrival(by_rank(m.incoming, 0, turn));
  });
  return by_rank(m.incoming, 0, turn);
}

std::vector<Bytes> ThreadCommunicator::local_gather(Bytes mine, std::string_view what,
                                                    const OnceWith& on_last_arrival) {
  Rendezvous& m = *meeting_;
  const size_t turn = m.generation % 2;
  m.ranks[local_rank()].posts[turn].kept.assign(mine.begin(), mine.end());
  const auto gathered = [&] {
    std::vector<Bytes> all;
    for (const Rendezvous::Rank& r : m.ranks) all.push_back(r.posts[turn].kept);
    return all;
  };
  arrive_and_wait({"local_gather", what}, nullptr, [&] {
    if (on_last_arrival) on_last_arrival(gathered());
  });
  return gathered();
}

int64_t ThreadCommunicator::post_to_processes(std::span<const Bytes> send, std::string_view what) {
  if (std::ssize(send) != size()) {
    throw ValueError("post_to_processes: received ", send.size(), " messages for ", size(),
                     " replicas; pass one for each replica");
  }
  const Call call{"post_to_processes", what};
  Rendezvous& m = *meeting_;
  Rendezvous::Rank& mine = m.ranks[local_rank()];
  for (int r = 0; r < size(); ++r) {
    if (placement_.process_of(r) == placement_.process) continue;
    count(mine.traffic.all_to_all, static_cast<int64_t>(send[r].size()));
  }
  const size_t turn = m.generation % 2;
  mine.posts[turn].sent.assign(send.begin(), send.end());
  arrive_and_wait(call, nullptr, [&] {
    const std::vector<Parts> parts = messages_for_processes(turn);
    for (const Parts& of_process : parts) count(m.traffic.all_to_all, total_size(of_process));
    m.posted = group_.post(call.text(), parts);
  });
  return m.posted;
}

std::vector<Bytes> ThreadCommunicator::collect_posted(int64_t posted, std::string_view what) {
  Rendezvous& m = *meeting_;
  arrive_and_wait({"collect_posted", what}, nullptr, [&] { m.collected = group_.collect(posted); });
  std::vector<Bytes> received(size());
  for (int r = 0; r < size(); ++r) {
    const int process = placement_.process_of(r);
    if (process == placement_.process) continue;
    const int64_t senders = placement_.first[process + 1] - placement_.first[process];
    expect(std::ssize(m.collected[process]) == senders * placement_.local(), "collect_posted",
           process);
    const int64_t sender = r - placement_.first[process];
    received[r] = m.collected[process][sender * placement_.local() + local_rank()];
  }
  return received;
}

int64_t ThreadCommunicator::post_gather(std::span<const Bytes> mine, std::string_view what) {
  Rendezvous& m = *meeting_;
  Parts parts;
  std::vector<std::vector<std::byte>> own;
  for (const Bytes& bytes : mine) {
    parts.push_back(bytes);
    own.emplace_back(bytes.begin(), bytes.end());
  }
  std::vector<Parts> send(placement_.processes(), parts);
  send[placement_.process].clear();
  for (const Parts& of_process : send) count(m.traffic.all_to_all, total_size(of_process));
  const int64_t posted = group_.post(Call{"post_gather", what}.text(), send);
  m.own_gathers.emplace(posted, std::move(own));
  return posted;
}

std::vector<std::vector<std::byte>> ThreadCommunicator::collect_gather(int64_t posted) {
  const std::vector<Parts> received = group_.collect(posted);
  const auto own = meeting_->own_gathers.extract(posted);
  std::vector<std::vector<std::byte>> out;
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) {
      out.insert(out.end(), own.mapped().begin(), own.mapped().end());
      continue;
    }
    for (const Bytes& bytes : received[p]) out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

std::vector<Bytes> ThreadCommunicator::all_to_all(std::span<const Bytes> send,
                                                  std::string_view what) {
  const int64_t to_each = std::ssize(send) / size();
  if (to_each == 0 || std::ssize(send) != to_each * size()) {
    throw ValueError("all_to_all: received ", send.size(), " messages for ", size(),
                     " replicas; pass one for each replica");
  }
  const Call call{"all_to_all", what};
  const int me = rank();
  Rendezvous& m = *meeting_;
  Rendezvous::Rank& mine = m.ranks[local_rank()];
  for (int64_t i = 0; i < std::ssize(send); ++i) {
    if (i / to_each != me) count(mine.traffic.all_to_all, static_cast<int64_t>(send[i].size()));
  }
  // Copies the list of messages: other ranks read it longer than this call lasts.
  const size_t turn = m.generation % 2;
  mine.posts[turn].sent.assign(send.begin(), send.end());
  arrive_and_wait(call, nullptr, [&] {
    if (!alone()) exchange(call, messages_for_processes(turn), m.traffic.all_to_all);
  });
  std::vector<Bytes> received;
  for (int r = 0; r < size(); ++r) {
    const int process = placement_.process_of(r);
    const int sender = r - placement_.first[process];
    const bool here = process == placement_.process;
    const Parts& sent = here ? m.ranks[sender].posts[turn].sent : m.incoming[process];
    const int64_t receivers = here ? size() : placement_.local();
    const int64_t senders = here ? 1 : placement_.first[process + 1] - placement_.first[process];
    if (std::ssize(sent) != senders * receivers * to_each) {
      throw RuntimeError("all_to_all: replica ", r, " did not send ", to_each,
                         " messages to each replica, as replica ", me,
                         " did; all replicas must send the same number");
    }
    const int64_t at = here ? me : sender * receivers + local_rank();
    received.insert(received.end(), sent.begin() + at * to_each, sent.begin() + (at + 1) * to_each);
  }
  return received;
}

// Returns the messages to each process: from each replica here, the parts for each replica there.
std::vector<ProcessGroup::Parts> ThreadCommunicator::messages_for_processes(size_t turn) const {
  std::vector<Parts> send(placement_.processes());
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p == placement_.process) continue;
    for (const Rendezvous::Rank& r : meeting_->ranks) {
      const std::vector<Bytes>& sent = r.posts[turn].sent;
      const auto to_each = std::ssize(sent) / size();
      send[p].insert(send[p].end(), sent.begin() + placement_.first[p] * to_each,
                     sent.begin() + placement_.first[p + 1] * to_each);
    }
  }
  return send;
}

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

ThreadCommunicator::Elements ThreadCommunicator::my_share_of(Elements elements) const {
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

bool ThreadCommunicator::sum_and_consume(std::span<const std::span<const float>> pieces,
                                         const Attachment* attachment, const Consume& consume,
                                         const OnLastArrival& on_last_arrival) {
  const Call call{"reduce_scatter", attachment == nullptr ? "reduce_scatter" : "with attachments"};
  const profile::Scope scope(profile::Phase::kReduce, "gradients");
  Rendezvous& m = *meeting_;
  const int me = rank();
  const int64_t total = total_size(pieces);
  const Elements mine = owned_by(me, me + 1, total);
  Rendezvous::Rank& my_rank = m.ranks[local_rank()];
  for (int r = 0; r < size(); ++r) {
    if (r != me) {
      count(my_rank.traffic.reduce_scatter,
            owned_by(r, r + 1, total).size() * int64_t{sizeof(float)});
    }
  }
  const size_t turn = m.generation % 2;
  if (attachment != nullptr) {
    for (int r = 1; r < size(); ++r)
      count(my_rank.traffic.all_to_all, std::ssize(attachment->mine));
    my_rank.posts[turn].kept.assign(attachment->mine.begin(), attachment->mine.end());
  }
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
    const auto* pieces = static_cast<const std::span<const float>*>(meeting_->offers[l]);
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
    const float* sums = as_elements<float>(meeting_->incoming[p].front()).data() + offset;
    for (const ReplicaRange& subtree : meeting_->subtrees[p]) {
      summands[subtree.begin] = {.end = subtree.end, .data = sums};
      sums += size_of_each;
    }
  }
}

void ThreadCommunicator::make_room_for_sums(int64_t total) {
  Rendezvous& m = *meeting_;
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
  Rendezvous& m = *meeting_;
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

// Exchanges the sums and attachments with other processes. Returns whether the sums are wanted.
bool ThreadCommunicator::exchange_sums(const Call& call, int64_t total,
                                       const Attachment* attachment, size_t turn) {
  Rendezvous& m = *meeting_;
  if (!alone()) {
    std::vector<Parts> send(placement_.processes());
    for (int p = 0; p < placement_.processes(); ++p) {
      if (p == placement_.process) continue;
      send[p] = {as_bytes_of<float>(m.sums[p])};
      count(m.traffic.reduce_scatter, total_size(send[p]));
      if (attachment == nullptr) continue;
      for (const Rendezvous::Rank& r : m.ranks) {
        send[p].push_back(r.posts[turn].kept);
        count(m.traffic.all_to_all, std::ssize(r.posts[turn].kept));
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
    expect(m.incoming[p].size() == parts &&
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
    count(meeting_->ranks[local_rank()].traffic.all_gather_shards, bytes);
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
    exchange(call, send, meeting_->traffic.all_gather_shards);
  });
  for (int p = 0; p < placement_.processes(); ++p) {
    if (p != placement_.process) write_from_process(p, pieces, total);
  }
  arrive_and_wait(call, nullptr);
}

// Copies this rank's share of the elements received from a process.
void ThreadCommunicator::write_from_process(int process, std::span<const std::span<float>> pieces,
                                            int64_t total) {
  const Parts& parts = meeting_->incoming[process];
  const Elements owned = owned_by_process(process, total);
  const Elements share = my_share_of(owned);
  size_t next = 0;
  for_each_run(pieces, owned.begin, owned.end, kWhole,
               [&](size_t i, int64_t at, int64_t n, int64_t offset) {
                 const size_t part = next++;
                 expect(part < parts.size() && parts[part].size() == n * sizeof(float),
                        "all_gather_shards", process);
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
    ReplicaScheduler::Lock lock = turns_.lock();
    if (!meeting_->aborted) meeting_->abort(why, turns_);
    turns_.dispatch(lock);
  }
  group_.abort(why);
}

void ThreadCommunicator::leave() noexcept {
  Rendezvous& m = *meeting_;
  ReplicaScheduler::Lock lock = turns_.lock();
  ++m.left;
  // A rank that has left must not block the arrivals of the others.
  m.arrivals[local_rank()] = std::numeric_limits<int64_t>::max();
  Rendezvous::wake(m.arrived, turns_);
  if (m.here > 0 && !m.aborted) {
    m.abort(str_or_empty("a replica has returned from the step while others wait in ", m.call.kind,
                         " '", m.call.what, "'"),
            turns_);
    group_.abort(m.why);
  }
  turns_.dispatch(lock);
}

void ThreadCommunicator::reset() {
  Rendezvous& m = *meeting_;
  const ReplicaScheduler::Lock lock = turns_.lock();
  m.here = 0;
  m.left = 0;
  m.aborted = false;
  m.why.clear();
  m.consume_failed = false;
  std::ranges::fill(m.arrivals, 0);
}

void ThreadCommunicator::finish() {
  if (!alone()) group_.announce("the end of Strategy::run");
}

TrafficByKind ThreadCommunicator::traffic() const { return meeting_->traffic; }

TrafficByKind ThreadCommunicator::traffic_of_rank(int rank) const {
  const int local = rank - placement_.first_local();
  if (local < 0 || local >= placement_.local()) {
    throw ValueError("Communicator::traffic_of_rank: rank ", rank, " is not in this process");
  }
  return meeting_->ranks[local].traffic;
}

void ThreadCommunicator::reset_traffic() {
  meeting_->traffic = {};
  for (Rendezvous::Rank& r : meeting_->ranks) r.traffic = {};
}

}  // namespace keel::distribute
