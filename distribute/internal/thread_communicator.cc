#include <keel/distribute/internal/thread_communicator.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <exception>
#include <limits>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/internal/rendezvous.h>
#include <keel/framework/base/profile.h>

namespace keel::distribute {

ThreadCommunicator::ThreadCommunicator(Placement placement, ProcessGroup& group,
                                       ReplicaScheduler& scheduler)
    : placement_(std::move(placement)),
      group_(group),
      scheduler_(scheduler),
      rendezvous_(std::make_unique<Rendezvous>()) {
  rendezvous_->waiting.reserve(placement_.local());
  rendezvous_->arrived.reserve(placement_.local());
  rendezvous_->arrivals.resize(placement_.local());
  rendezvous_->offers.resize(placement_.local());
  rendezvous_->ranks.resize(placement_.local());
  for (int p = 0; p < placement_.processes(); ++p) {
    rendezvous_->subtrees.push_back(
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
  Rendezvous& m = *rendezvous_;
  ReplicaScheduler::Lock lock = scheduler_.lock();
  const auto fail = [&](const std::string& why) {
    m.abort(why, scheduler_);
    scheduler_.dispatch(lock);
    group_.abort(why);
    throw Aborted(why);
  };
  if (m.aborted) throw Aborted(m.why);
  if (m.left > 0) {
    fail(absl::StrCat(
        "replica ", rank(), " is in ", call.text(), " but ", m.left, " of ", placement_.local(),
        " replicas have returned from the step; all replicas must make the same calls"));
  }
  if (m.here > 0 && m.call != call) {
    fail(absl::StrCat("replica ", rank(), " is in ", call.text(), " while others are in ",
                      m.call.text(), "; all replicas must make the same calls in the same order"));
  }
  m.call = call;
  // Only the first rendezvous of a collective has an offer. Later ones must not overwrite it,
  // because other ranks may still be reading it.
  if (offer != nullptr) m.offers[me] = offer;
  if (++m.here < placement_.local()) {
    const uint64_t mine = m.generation;
    m.waiting.push_back(me);
    const profile::Scope scope(profile::Phase::kWait, call.what);
    scheduler_.wait(lock, me, true);
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
  Rendezvous::wake(m.waiting, scheduler_);
  scheduler_.dispatch(lock);
}

void ThreadCommunicator::exchange(const Call& call, std::span<const Parts> send, Traffic& traffic) {
  for (const Parts& parts : send) count_sent(traffic, total_size(parts));
  rendezvous_->incoming = group_.exchange(call.text(), send);
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
  Rendezvous& m = *rendezvous_;
  ReplicaScheduler::Lock lock = scheduler_.lock();
  const int64_t times = ++m.arrivals[local_rank()];
  if (m.arrived.empty() || !m.all_have_arrived(times)) return;
  Rendezvous::wake(m.arrived, scheduler_);
  scheduler_.dispatch(lock);
}

void ThreadCommunicator::wait_for_arrivals() {
  Rendezvous& m = *rendezvous_;
  const int me = local_rank();
  ReplicaScheduler::Lock lock = scheduler_.lock();
  const int64_t times = m.arrivals[me];
  const auto complete = [&] { return m.all_have_arrived(times); };
  while (!complete()) {
    if (m.aborted) throw Aborted(m.why);
    m.arrived.push_back(me);
    const profile::Scope scope(profile::Phase::kWait, "arrivals");
    scheduler_.wait(lock, me, true);
  }
}

// Returns the bytes of each rank: those of local ranks from their posts, those of other ranks from
// the parts of `incoming` that begin at `first_part`.
std::vector<Bytes> ThreadCommunicator::by_rank(std::span<const Parts> incoming, size_t first_part,
                                               size_t turn) const {
  std::vector<Bytes> all;
  for (int p = 0; p < placement_.processes(); ++p) {
    for (int l = 0; l < placement_.first[p + 1] - placement_.first[p]; ++l) {
      all.push_back(p == placement_.process ? Bytes(rendezvous_->ranks[l].posts[turn].kept)
                                            : incoming[p].at(first_part + l));
    }
  }
  return all;
}

std::vector<Bytes> ThreadCommunicator::all_gather(Bytes mine, std::string_view what,
                                                  const OnceWith& on_last_arrival) {
  const Call call{"all_gather", what};
  Rendezvous& m = *rendezvous_;
  Rendezvous::Rank& me = m.ranks[local_rank()];
  for (int r = 1; r < size(); ++r)
    count_sent(me.traffic.all_to_all, static_cast<int64_t>(mine.size()));
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
  Rendezvous& m = *rendezvous_;
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
  Rendezvous& m = *rendezvous_;
  Rendezvous::Rank& mine = m.ranks[local_rank()];
  for (int r = 0; r < size(); ++r) {
    if (placement_.process_of(r) == placement_.process) continue;
    count_sent(mine.traffic.all_to_all, static_cast<int64_t>(send[r].size()));
  }
  const size_t turn = m.generation % 2;
  mine.posts[turn].sent.assign(send.begin(), send.end());
  arrive_and_wait(call, nullptr, [&] {
    const std::vector<Parts> parts = messages_for_processes(turn);
    for (const Parts& of_process : parts) count_sent(m.traffic.all_to_all, total_size(of_process));
    m.posted = group_.post(call.text(), parts);
  });
  return m.posted;
}

std::vector<Bytes> ThreadCommunicator::collect_posted(int64_t posted, std::string_view what) {
  Rendezvous& m = *rendezvous_;
  arrive_and_wait({"collect_posted", what}, nullptr, [&] { m.collected = group_.collect(posted); });
  std::vector<Bytes> received(size());
  for (int r = 0; r < size(); ++r) {
    const int process = placement_.process_of(r);
    if (process == placement_.process) continue;
    const int64_t senders = placement_.first[process + 1] - placement_.first[process];
    check_size(std::ssize(m.collected[process]) == senders * placement_.local(), "collect_posted",
               process);
    const int64_t sender = r - placement_.first[process];
    received[r] = m.collected[process][sender * placement_.local() + local_rank()];
  }
  return received;
}

int64_t ThreadCommunicator::post_gather(std::span<const Bytes> mine, std::string_view what) {
  Rendezvous& m = *rendezvous_;
  Parts parts;
  std::vector<std::vector<std::byte>> own;
  for (const Bytes& bytes : mine) {
    parts.push_back(bytes);
    own.emplace_back(bytes.begin(), bytes.end());
  }
  std::vector<Parts> send(placement_.processes(), parts);
  send[placement_.process].clear();
  for (const Parts& of_process : send) count_sent(m.traffic.all_to_all, total_size(of_process));
  const int64_t posted = group_.post(Call{"post_gather", what}.text(), send);
  m.own_gathers.emplace(posted, std::move(own));
  return posted;
}

std::vector<std::vector<std::byte>> ThreadCommunicator::collect_gather(int64_t posted) {
  const std::vector<Parts> received = group_.collect(posted);
  const auto own = rendezvous_->own_gathers.extract(posted);
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
  Rendezvous& m = *rendezvous_;
  Rendezvous::Rank& mine = m.ranks[local_rank()];
  for (int64_t i = 0; i < std::ssize(send); ++i) {
    if (i / to_each != me)
      count_sent(mine.traffic.all_to_all, static_cast<int64_t>(send[i].size()));
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
    for (const Rendezvous::Rank& r : rendezvous_->ranks) {
      const std::vector<Bytes>& sent = r.posts[turn].sent;
      const auto to_each = std::ssize(sent) / size();
      send[p].insert(send[p].end(), sent.begin() + placement_.first[p] * to_each,
                     sent.begin() + placement_.first[p + 1] * to_each);
    }
  }
  return send;
}

void ThreadCommunicator::abort(const std::string& why) noexcept {
  {
    ReplicaScheduler::Lock lock = scheduler_.lock();
    if (!rendezvous_->aborted) rendezvous_->abort(why, scheduler_);
    scheduler_.dispatch(lock);
  }
  group_.abort(why);
}

void ThreadCommunicator::leave() noexcept {
  Rendezvous& m = *rendezvous_;
  ReplicaScheduler::Lock lock = scheduler_.lock();
  ++m.left;
  // A rank that has left must not block the arrivals of the others.
  m.arrivals[local_rank()] = std::numeric_limits<int64_t>::max();
  Rendezvous::wake(m.arrived, scheduler_);
  if (m.here > 0 && !m.aborted) {
    m.abort(str_or_empty("a replica has returned from the step while others wait in ", m.call.kind,
                         " '", m.call.what, "'"),
            scheduler_);
    group_.abort(m.why);
  }
  scheduler_.dispatch(lock);
}

void ThreadCommunicator::reset() {
  Rendezvous& m = *rendezvous_;
  const ReplicaScheduler::Lock lock = scheduler_.lock();
  m.here = 0;
  m.left = 0;
  m.aborted = false;
  m.why.clear();
  m.consume_failed = false;
  std::ranges::fill(m.arrivals, 0);
}

void ThreadCommunicator::finish() {
  if (!alone()) group_.notify("the end of Strategy::run");
}

TrafficByKind ThreadCommunicator::traffic() const { return rendezvous_->traffic; }

TrafficByKind ThreadCommunicator::traffic_of_rank(int rank) const {
  const int local = rank - placement_.first_local();
  if (local < 0 || local >= placement_.local()) {
    throw ValueError("Communicator::traffic_of_rank: rank ", rank,
                     " is not in this process; pass a rank of this process");
  }
  return rendezvous_->ranks[local].traffic;
}

void ThreadCommunicator::reset_traffic() {
  rendezvous_->traffic = {};
  for (Rendezvous::Rank& r : rendezvous_->ranks) r.traffic = {};
}

}  // namespace keel::distribute
