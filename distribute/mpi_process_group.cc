#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <thread>

#include "distribute/mpi_process_group_internal.h"

namespace keel::distribute {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kHeadTag = 1, kBodyTag = 2, kNoticeTag = 3;
constexpr int64_t kHeadBytes = 3840;  // small enough to travel without asking the receiver
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one message: MPI counts in int
constexpr int64_t kAlignment = 16;
constexpr int64_t kKeptBytes = int64_t{64} << 20;  // by which a buffer may be too large
constexpr auto kBusyWait = milliseconds(1);        // then a process that waits for others naps
constexpr auto kNap = std::chrono::microseconds(50);
// For what a process sent before it ended, and for the others' error texts when a job has failed.
constexpr auto kGrace = milliseconds(200);
constexpr auto kLastWords = milliseconds(3000);
constexpr double kTimeout = 300;
constexpr char kFailed = 'F', kEnded = 'E';  // kinds of notices

// Stands before what one process sends to another; the sizes of the parts follow.
struct Header {
  int64_t bytes = 0;  // of all, this header too
  int64_t parts = 0;
  uint64_t hash = 0;  // of the whole label
  std::array<char, 104> what = {};
};
static_assert(sizeof(Header) % kAlignment == 0 && sizeof(Header) < kHeadBytes);

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t head_size(int64_t bytes) { return std::min(bytes, kHeadBytes); }

// Bytes that are not cleared, kept for the next exchange unless they are many too many.
class Buffer {
 public:
  std::byte* resize(int64_t bytes) {
    if (bytes > capacity_ || capacity_ > 4 * bytes + kKeptBytes) {
      data_.reset();
      data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return data_.get();
  }
  std::byte* data() { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t capacity_ = 0;
};

int64_t pack(std::string_view what, const ProcessGroup::Parts& parts, Buffer& out) {
  Header header{.parts = static_cast<int64_t>(parts.size()),
                .hash = std::hash<std::string_view>()(what)};
  what.copy(header.what.data(), header.what.size() - 1);
  std::vector<int64_t> sizes;
  const int64_t begin = aligned(sizeof(Header) + parts.size() * sizeof(int64_t));
  header.bytes = begin;
  for (const Bytes& part : parts) {
    sizes.push_back(static_cast<int64_t>(part.size()));
    header.bytes += aligned(sizes.back());
  }
  std::byte* const bytes = out.resize(header.bytes);
  std::memcpy(bytes, &header, sizeof(Header));
  if (!sizes.empty()) {
    std::memcpy(bytes + sizeof(Header), sizes.data(), sizes.size() * sizeof(int64_t));
  }
  std::byte* at = bytes + begin;
  for (const Bytes& part : parts) {
    std::ranges::copy(part, at);
    at += aligned(static_cast<int64_t>(part.size()));
  }
  return header.bytes;
}

ProcessGroup::Parts unpack(const std::byte* bytes) {
  Header header;
  std::memcpy(&header, bytes, sizeof(Header));
  ProcessGroup::Parts parts;
  const std::byte* at = bytes + aligned(sizeof(Header) + header.parts * sizeof(int64_t));
  for (int64_t i = 0; i < header.parts; ++i) {
    int64_t size = 0;
    std::memcpy(&size, bytes + sizeof(Header) + i * sizeof(int64_t), sizeof(size));
    parts.emplace_back(at, size);
    at += aligned(size);
  }
  return parts;
}

// One wait for other processes.
class Wait {
 public:
  // Gives others the processor. While bytes move, MPI must be called as often as can be.
  void pause(bool bytes_move = false) const {
    if (bytes_move || passed() < kBusyWait) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
  Clock::duration passed() const { return Clock::now() - begin_; }
  bool is_over(double seconds) const {
    return seconds > 0 && std::chrono::duration<double>(passed()).count() > seconds;
  }

 private:
  const Clock::time_point begin_ = Clock::now();
};

double timeout_of_environment() {
  const char* text = std::getenv("KEEL_PROCESS_TIMEOUT");
  if (text == nullptr) return kTimeout;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds >= 0)) {
    throw ValueError("KEEL_PROCESS_TIMEOUT: must be seconds, 0 or more, received '", text, "'");
  }
  return seconds;
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw RuntimeError("MPI: ", call, " failed: ", text.data());
}

class MpiProcessGroup final : public ProcessGroup {
 public:
  MpiProcessGroup();
  ~MpiProcessGroup() override;
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::vector<Parts> exchange(std::string_view what, std::span<const Parts> send) override;
  void abort(const std::string& why) noexcept override;
  Traffic sent() const override { return sent_; }

 private:
  struct Peer {
    Buffer out;
    std::array<Buffer, 2> in;  // of this exchange and of the one before
    alignas(kAlignment) std::array<std::byte, kHeadBytes> head;
    MPI_Request head_request = MPI_REQUEST_NULL;
    std::vector<MPI_Request> requests;  // all other of this exchange
    enum { kAbsent, kTransfers, kDone } state = kAbsent;
    bool ended = false;  // it has left main: nothing comes any more
  };

  // The steps of an exchange; mutex_ is held.
  void post(std::string_view what, std::span<const Parts> send);
  void send_to(int peer, const std::byte* bytes, int64_t size);
  void advance(int peer, std::string_view what);
  bool any_peer_is(int state) const;
  void accept_head(int peer, std::string_view what);
  void check_alive(std::string_view what);
  // Notices may come at any time; mutex_ is held.
  void read_notices();
  void notify(char kind, const std::string& text);
  void throw_if_failed() const {
    if (failed_) throw Aborted(why_);
  }
  void fail(const std::string& why);
  bool all_ended() const;

  const double timeout_ = timeout_of_environment();
  bool owns_mpi_ = false;
  int rank_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex exchange_mutex_;  // held by the thread that is in an exchange
  std::mutex mutex_;           // guards calls of MPI and all below
  std::vector<Peer> peers_;
  int turn_ = 0;
  std::optional<Clock::time_point> missed_;  // since when somebody is waited for who has ended
  bool failed_ = false;
  std::string why_;
  std::deque<std::string> notices_;  // sent, perhaps still on their way
  std::vector<MPI_Request> notice_requests_;
  Traffic sent_;
};

MpiProcessGroup::MpiProcessGroup() {
  int initialized = 0;
  int level = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    owns_mpi_ = true;
  } else {
    MPI_Query_thread(&level);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw RuntimeError("processes: needs an MPI that several threads may call in turn");
  }
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int size = 0;
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size);
  peers_ = std::vector<Peer>(size);
}

// At exit. MPI_Finalize waits for all processes, which would be without end after a failure:
// everybody says goodbye first, and a failed job is ended when all have had time for last words.
MpiProcessGroup::~MpiProcessGroup() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!owns_mpi_ || finalized != 0) return;
  std::cout.flush();
  std::fflush(nullptr);
  try {
    const std::lock_guard lock(mutex_);
    notify(kEnded, "");
    std::optional<Clock::time_point> failed_at;
    for (const Wait wait; !all_ended(); wait.pause()) {
      read_notices();
      if (!failed_ && wait.is_over(timeout_)) {
        throw RuntimeError("rank ", rank_, " has waited ", timeout_,
                           " s for others to end (KEEL_PROCESS_TIMEOUT sets how long)");
      }
      if (!failed_) continue;
      if (!failed_at) failed_at = Clock::now();
      if (Clock::now() - *failed_at > kLastWords) break;
    }
    if (!failed_) {
      MPI_Waitall(static_cast<int>(notice_requests_.size()), notice_requests_.data(),
                  MPI_STATUSES_IGNORE);
      MPI_Comm_free(&comm_);
      MPI_Finalize();
      return;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

std::vector<ProcessGroup::Parts> MpiProcessGroup::exchange(std::string_view what,
                                                           std::span<const Parts> send) {
  if (send.size() != peers_.size()) {
    throw ValueError(what, ": ", send.size(), " messages for ", peers_.size(), " processes");
  }
  const std::unique_lock turn(exchange_mutex_, std::try_to_lock);
  if (!turn.owns_lock()) {
    throw RuntimeError(what, ": another thread of rank ", rank_,
                       " is in an exchange with other processes; one thread may be");
  }
  {
    const std::lock_guard lock(mutex_);
    read_notices();
    throw_if_failed();
    post(what, send);
  }
  bool bytes_move = false;
  for (const Wait wait;; wait.pause(bytes_move)) {
    const std::lock_guard lock(mutex_);
    for (int p = 0; p < size(); ++p) advance(p, what);
    bytes_move = any_peer_is(Peer::kTransfers);
    if (!bytes_move && !any_peer_is(Peer::kAbsent)) break;
    read_notices();
    throw_if_failed();
    check_alive(what);
    if (wait.is_over(timeout_)) {
      fail(str("rank ", rank_, " has waited ", timeout_, " s for others in ", what,
               " (KEEL_PROCESS_TIMEOUT sets how long)"));
    }
  }
  std::vector<Parts> received(peers_.size());
  for (int p = 0; p < size(); ++p) {
    if (p != rank_) received[p] = unpack(peers_[p].in[turn_].data());
  }
  return received;
}

void MpiProcessGroup::post(std::string_view what, std::span<const Parts> send) {
  turn_ = 1 - turn_;
  for (int p = 0; p < size(); ++p) {
    Peer& peer = peers_[p];
    peer.state = p == rank_ ? Peer::kDone : Peer::kAbsent;
    peer.requests.clear();
    if (p == rank_) continue;
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): advance() tests it
    check(MPI_Irecv(peer.head.data(), kHeadBytes, MPI_BYTE, p, kHeadTag, comm_, &peer.head_request),
          "MPI_Irecv");
  }
  for (int step = 1; step < size(); ++step) {  // everybody begins with another receiver
    const int p = (rank_ + step) % size();
    const int64_t bytes = pack(what, send[p], peers_[p].out);
    send_to(p, peers_[p].out.data(), bytes);
  }
}

void MpiProcessGroup::send_to(int peer, const std::byte* bytes, int64_t size) {
  const auto isend = [&](int64_t begin, int64_t count, int tag) {
    check(MPI_Isend(bytes + begin, static_cast<int>(count), MPI_BYTE, peer, tag, comm_,
                    &peers_[peer].requests.emplace_back()),
          "MPI_Isend");
    ++sent_.messages;
  };
  isend(0, head_size(size), kHeadTag);
  for (int64_t at = kHeadBytes; at < size; at += kMostBytes) {
    isend(at, std::min(kMostBytes, size - at), kBodyTag);
  }
  sent_.bytes_sent += size;
}

void MpiProcessGroup::advance(int p, std::string_view what) {
  Peer& peer = peers_[p];
  int done = 0;
  if (peer.state == Peer::kAbsent) {
    check(MPI_Test(&peer.head_request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) accept_head(p, what);
  }
  if (peer.state == Peer::kTransfers) {
    check(MPI_Testall(static_cast<int>(peer.requests.size()), peer.requests.data(), &done,
                      MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (done != 0) peer.state = Peer::kDone;
  }
}

bool MpiProcessGroup::any_peer_is(int state) const {
  return std::ranges::any_of(peers_, [&](const Peer& peer) { return peer.state == state; });
}

void MpiProcessGroup::accept_head(int p, std::string_view what) {
  Peer& peer = peers_[p];
  peer.state = Peer::kTransfers;
  Header header;
  std::memcpy(&header, peer.head.data(), sizeof(Header));
  if (header.hash != std::hash<std::string_view>()(what)) {
    fail(str("rank ", rank_, " is in ", what, " while rank ", p, " is in ", header.what.data(),
             "; all processes must make the same calls in the same order"));
  }
  std::byte* const bytes = peer.in[turn_].resize(header.bytes);
  std::memcpy(bytes, peer.head.data(), head_size(header.bytes));
  for (int64_t at = kHeadBytes; at < header.bytes; at += kMostBytes) {
    check(MPI_Irecv(bytes + at, static_cast<int>(std::min(kMostBytes, header.bytes - at)), MPI_BYTE,
                    p, kBodyTag, comm_, &peer.requests.emplace_back()),
          "MPI_Irecv");
  }
}

void MpiProcessGroup::check_alive(std::string_view what) {
  // One that this exchange needs no more may have ended while the others still are in it.
  const auto lost =
      std::ranges::find_if(peers_, [](const Peer& p) { return p.ended && p.state != Peer::kDone; });
  if (lost == peers_.end()) return;
  if (!missed_) missed_ = Clock::now();
  if (Clock::now() - *missed_ > kGrace) {
    fail(str("rank ", lost - peers_.begin(), " has ended while rank ", rank_, " is in ", what));
  }
}

void MpiProcessGroup::read_notices() {
  while (true) {
    int came = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, comm_, &came, &status), "MPI_Iprobe");
    if (came == 0) return;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string text(bytes, '\0');
    check(MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kNoticeTag, comm_,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    if (text[0] == kEnded) {
      peers_[status.MPI_SOURCE].ended = true;
    } else if (!failed_) {
      failed_ = true;
      why_ = str("rank ", status.MPI_SOURCE, " failed: ", text.substr(1));
    }
  }
}

void MpiProcessGroup::notify(char kind, const std::string& text) {
  notices_.push_back(kind + text.substr(0, kHeadBytes - 1));
  const std::string& notice = notices_.back();
  for (int p = 0; p < size(); ++p) {
    if (p == rank_) continue;
    MPI_Isend(notice.data(), static_cast<int>(notice.size()), MPI_BYTE, p, kNoticeTag, comm_,
              &notice_requests_.emplace_back());
  }
}

void MpiProcessGroup::fail(const std::string& why) {
  if (!failed_) {
    failed_ = true;
    why_ = why;
    notify(kFailed, why);
  }
  throw RuntimeError(why);
}

void MpiProcessGroup::abort(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  failed_ = true;
  why_ = why;
  try {
    notify(kFailed, why);
  } catch (const std::exception&) {  // the others will miss this process when it ends
  }
}

bool MpiProcessGroup::all_ended() const {
  for (int p = 0; p < static_cast<int>(peers_.size()); ++p) {
    if (p != rank_ && !peers_[p].ended) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<ProcessGroup> make_mpi_process_group() {
  return std::make_unique<MpiProcessGroup>();
}

}  // namespace keel::distribute
