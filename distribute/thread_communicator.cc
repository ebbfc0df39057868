#include "distribute/thread_communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <string_view>

#include "autodiff/replica_context.h"

namespace keel::distribute {
namespace {

constexpr int64_t kBlock = 1024;         // floats summed at a time, small enough for the L1 cache
constexpr int64_t kShareAlignment = 16;  // floats: two ranks never write to one cache line

// out = sum of the ranks [begin, end) of `sources`, as a balanced tree whose left half is the
// largest power of two.
void tree_sum(std::span<const float* const> sources, int64_t offset, int64_t n, float* out) {
  if (sources.size() == 1) {
    std::copy_n(sources[0] + offset, n, out);
    return;
  }
  if (sources.size() == 2) {
    const float* a = sources[0] + offset;
    const float* b = sources[1] + offset;
    for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
    return;
  }
  const size_t half = std::bit_floor(sources.size() - 1);
  std::array<float, kBlock> right;
  tree_sum(sources.first(half), offset, n, out);
  tree_sum(sources.subspan(half), offset, n, right.data());
  for (int64_t i = 0; i < n; ++i) out[i] += right[i];
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

// Where the ranks of one collective find each other.
struct ThreadCommunicator::Meeting {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::string_view what;  // the collective that the ranks now here have called
  int here = 0;
  int left = 0;
  uint64_t generation = 0;
  bool aborted = false;
  std::string why;
  std::vector<const void*> offers;
};

ThreadCommunicator::ThreadCommunicator(int replicas, std::shared_ptr<WorkerPermits> permits)
    : replicas_(replicas), permits_(std::move(permits)), meeting_(std::make_unique<Meeting>()) {
  meeting_->offers.resize(replicas);
}

ThreadCommunicator::~ThreadCommunicator() = default;

int ThreadCommunicator::rank() const {
  const ReplicaContext* context = current_replica_context();
  if (context == nullptr) {
    if (replicas_ == 1) return 0;
    throw RuntimeError("a collective over ", replicas_,
                       " replicas was called outside them; call it inside Strategy::run");
  }
  return context->replica;
}

int ThreadCommunicator::size() const { return replicas_; }

void ThreadCommunicator::meet(const char* what, const void* offer) {
  const int me = rank();
  Meeting& m = *meeting_;
  std::unique_lock lock(m.mutex);
  const auto fail = [&](const std::string& why) {
    m.aborted = true;
    m.why = why;
    m.changed.notify_all();
  };
  if (!m.aborted && m.left > 0) {
    fail(str("replica ", me, " is in ", what, " but ", m.left, " of ", replicas_,
             " replicas have returned from the step"));
  } else if (!m.aborted && m.here > 0 && m.what != what) {
    fail(str("replica ", me, " is in ", what, " while others are in ", m.what,
             "; all replicas must make the same calls in the same order"));
  }
  if (m.aborted) throw Aborted(m.why);
  m.what = what;
  // The second meeting of a collective offers nothing: others may still be reading the offer of
  // the first.
  if (offer != nullptr) m.offers[me] = offer;
  if (++m.here == replicas_) {
    m.here = 0;
    ++m.generation;
    m.changed.notify_all();
    return;
  }
  const uint64_t mine = m.generation;
  permits_->release();
  m.changed.wait(lock, [&] { return m.generation != mine || m.aborted; });
  const bool met = m.generation != mine;
  const std::string why = m.why;
  lock.unlock();
  permits_->acquire();
  if (!met) throw Aborted(why);
}

void ThreadCommunicator::barrier() { meet("barrier", nullptr); }

std::vector<Bytes> ThreadCommunicator::all_to_all(std::span<const Bytes> send) {
  if (static_cast<int>(send.size()) != replicas_) {
    throw ValueError("all_to_all: ", send.size(), " messages for ", replicas_, " replicas");
  }
  meet("all_to_all", send.data());
  const int me = rank();
  std::vector<Bytes> received;
  for (const void* offer : meeting_->offers) {
    received.push_back(static_cast<const Bytes*>(offer)[me]);
  }
  // `send` itself may go when the call returns, so nobody may still be reading it.
  meet("all_to_all", nullptr);
  return received;
}

void ThreadCommunicator::reduce_scatter(std::span<const std::span<const float>> pieces,
                                        const Consume& consume) {
  std::vector<const float*> sources(replicas_);
  meet("reduce_scatter", pieces.data());
  // Others read this rank's pieces until the closing meeting, so an error has to wait for it.
  std::exception_ptr error;
  int64_t total = 0;
  for (const auto& piece : pieces) total += static_cast<int64_t>(piece.size());
  const auto boundary = [&](int rank_) {
    const int64_t at = total * rank_ / replicas_;
    return rank_ == replicas_ ? total : at / kShareAlignment * kShareAlignment;
  };
  const int me = rank();
  const int64_t begin = boundary(me);
  const int64_t end = boundary(me + 1);
  std::array<float, kBlock> sum;
  int64_t first = 0;  // position of the piece among all elements
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t size = static_cast<int64_t>(pieces[i].size());
    for (int r = 0; r < replicas_; ++r) {
      sources[r] = static_cast<const std::span<const float>*>(meeting_->offers[r])[i].data();
    }
    const int64_t stop = std::min(size, end - first);
    for (int64_t at = std::max<int64_t>(0, begin - first); at < stop; at += kBlock) {
      const int64_t n = std::min(kBlock, stop - at);
      tree_sum(sources, at, n, sum.data());
      try {
        if (error == nullptr) consume(i, at, {sum.data(), static_cast<size_t>(n)});
      } catch (...) {
        error = std::current_exception();
      }
    }
    first += size;
  }
  meet("reduce_scatter", nullptr);
  if (error != nullptr) std::rethrow_exception(error);
}

void ThreadCommunicator::share(std::span<const std::span<float>>) { meet("share", nullptr); }

void ThreadCommunicator::abort(const std::string& why) noexcept {
  const std::lock_guard lock(meeting_->mutex);
  if (!meeting_->aborted) meeting_->why = why;
  meeting_->aborted = true;
  meeting_->changed.notify_all();
}

void ThreadCommunicator::leave() noexcept {
  Meeting& m = *meeting_;
  const std::lock_guard lock(m.mutex);
  ++m.left;
  if (m.here > 0 && !m.aborted) {
    m.aborted = true;
    m.why = str("a replica has returned from the step while others wait in ", m.what);
    m.changed.notify_all();
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

}  // namespace keel::distribute
