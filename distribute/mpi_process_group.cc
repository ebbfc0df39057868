#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <keel/distribute/internal/messages.h>
#include <keel/distribute/mpi_process_group_internal.h>

namespace keel::distribute {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kHeadTag = 1, kBodyTag = 2, kNoticeTag = 3;
constexpr int64_t kHeadBytes = 3840;  // small enough to be sent eagerly, without a handshake
constexpr int64_t kMostBytes = int64_t{1} << 30;  // per message: MPI counts in int
// MPI sends a message of more than 64 KiB to another machine only after a handshake with the
// receiver, which takes a round trip. Messages of moderate size are therefore sent in pieces below
// that limit; larger ones would exceed the receiver's buffers.
constexpr int64_t kEagerBytes = int64_t{60} << 10;
constexpr int64_t kMostInPieces = int64_t{4} << 20;
constexpr auto kBusyWait = milliseconds(1);  // afterwards a waiting process sleeps
constexpr auto kSleep = std::chrono::microseconds(50);
// Limits of the waits for messages that a process sent before it ended, and for the error texts of
// other processes after a job has failed.
constexpr auto kGrace = milliseconds(200);
constexpr auto kErrorGrace = milliseconds(3000);
constexpr double kTimeout = 300;
constexpr int64_t kMostOpen = 64;  // transfers by which a process may be ahead of others
constexpr char kFailed = 'F', kEnded = 'E', kWorks = 'W';  // kinds of notices
// The longest interval between two notices of a process in a LongWork. Several notices are sent
// within one timeout.
constexpr double kLongestPulse = 10;

static_assert(sizeof(Header) < kHeadBytes);

int64_t head_size(int64_t bytes) { return std::min(bytes, kHeadBytes); }

// One wait for other processes.
class Wait {
 public:
  // Yields the processor. While data is being transferred, MPI must be called as often as possible.
  void pause(bool bytes_move = false) const {
    if (bytes_move || Clock::now() - begin_ < kBusyWait) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
  Clock::time_point begin() const { return begin_; }

 private:
  const Clock::time_point begin_ = Clock::now();
};

double timeout_of_environment() {
  const char* text = std::getenv("KEEL_PROCESS_TIMEOUT");
  if (text == nullptr) return kTimeout;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds >= 0)) {
    throw ValueError("KEEL_PROCESS_TIMEOUT: must be a number of seconds, 0 or more, received '",
                     text, "'");
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

// One exchange: the messages to and from each other process.
struct Transfer {
  struct Route {
    Buffer out, in;
    alignas(kAlignment) std::array<std::byte, kHeadBytes> head;
    MPI_Request head_request = MPI_REQUEST_NULL;
    std::vector<MPI_Request> requests;  // all except head_request
    enum { kAbsent, kMoves, kDone } state = kAbsent;
  };

  int64_t number = 0;
  std::string what;
  bool from_notify = false;   // created by notify(); never collected
  std::vector<Route> routes;  // by process

  bool any_is(int state) const {
    return std::ranges::any_of(routes, [=](const Route& route) { return route.state == state; });
  }
  bool is_done() const { return !any_is(Route::kAbsent) && !any_is(Route::kMoves); }
};

class MpiProcessGroup final : public ProcessGroup {
 public:
  MpiProcessGroup();
  ~MpiProcessGroup() override;
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::vector<Parts> exchange(std::string_view what, std::span<const Parts> send) override;
  int64_t post(std::string_view what, std::span<const Parts> send) override;
  std::vector<Parts> collect(int64_t posted) override;
  void notify(std::string_view what) override;
  void begin_long_work(std::string_view what) override;
  void end_long_work() noexcept override;
  void abort(const std::string& why) noexcept override;
  Traffic sent() const override { return sent_; }

 private:
  using Route = Transfer::Route;
  struct Peer {
    bool is_near = true;                 // on this machine
    bool ended = false;                  // it has left main and sends nothing any more
    Clock::time_point last_notice = {};  // last notice of its LongWork
  };
  struct Notice {
    std::string text;
    std::vector<MPI_Request> requests;
  };

  std::unique_lock<std::mutex> take_turn(std::string_view what);
  void wait_for(const Transfer& transfer);
  // Steps of an exchange; they require mutex_.
  Transfer& begin(std::string_view what, std::span<const Parts> send, bool from_notify);
  void send_to(int peer, Route& route, int64_t size);
  int64_t piece_size(int peer, int64_t size) const;
  void progress();
  void advance(int peer, Transfer& transfer);
  void accept_head(int peer, Transfer& transfer);
  void check_alive(const Transfer& transfer);
  void finish_transfers();
  template <class IsAwaited>
  std::string overdue(const Wait& wait, const IsAwaited& is_awaited) const;
  void find_near_peers();
  // Notices may arrive at any time; these functions require mutex_.
  void read_notices();
  void notify(char kind, const std::string& text);
  void throw_if_failed() const {
    if (failed_) throw Aborted(why_);
  }
  void fail(const std::string& why);
  bool all_ended() const;
  const Transfer* unfinished() const;  // the first open transfer that is not done, or null

  const double timeout_ = timeout_of_environment();
  bool owns_mpi_ = false;
  int rank_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex exchange_mutex_;  // held by the thread that makes an exchange
  std::mutex mutex_;           // guards calls of MPI and all members below
  std::vector<Peer> peers_;
  int64_t transfers_ = 0;  // number of transfers begun
  // open_ holds transfers that have begun and are not collected, collected_ those collected last,
  // whose results may still be read, and spare_ those whose memory is reused.
  std::deque<std::unique_ptr<Transfer>> open_, collected_, spare_;
  std::optional<Clock::time_point> missed_;  // since when a process that has ended is awaited
  bool failed_ = false;
  std::string why_;
  std::deque<Notice> notices_;  // sent, possibly still in transfer
  Traffic sent_;

  std::mutex work_mutex_;  // guards all members below
  int works_ = 0;
  std::jthread pulse_;
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
    throw RuntimeError(
        "processes: MPI must support MPI_THREAD_SERIALIZED; initialize it with MPI_Init_thread()");
  }
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int size = 0;
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size);
  peers_ = std::vector<Peer>(size);
  find_near_peers();
}

void MpiProcessGroup::find_near_peers() {
  MPI_Comm near = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &near),
        "MPI_Comm_split_type");
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group here = MPI_GROUP_NULL;
  MPI_Comm_group(comm_, &all);
  MPI_Comm_group(near, &here);
  for (int p = 0; p < size(); ++p) {
    int rank_here = MPI_UNDEFINED;
    MPI_Group_translate_ranks(all, 1, &p, here, &rank_here);
    peers_[p].is_near = rank_here != MPI_UNDEFINED;
  }
  MPI_Group_free(&all);
  MPI_Group_free(&here);
  MPI_Comm_free(&near);
}

// Runs at exit. MPI_Finalize waits for all processes, which would hang after a failure. Therefore
// all processes first notify each other that they end. A failed job is aborted after the other
// processes have had time to print their errors.
MpiProcessGroup::~MpiProcessGroup() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!owns_mpi_ || finalized != 0) return;
  std::cout.flush();
  std::fflush(nullptr);
  try {
    const std::lock_guard lock(mutex_);
    bool is_known = failed_;  // the failure has already been printed
    notify(kEnded, "");
    std::optional<Clock::time_point> failed_at;
    for (const Wait wait; !all_ended() || unfinished() != nullptr; wait.pause()) {
      read_notices();
      if (!failed_) finish_transfers();
      if (!failed_) {
        const std::string late = overdue(wait, [&](int p) { return !peers_[p].ended; });
        if (!late.empty()) {
          throw RuntimeError("rank ", rank_, " has waited ", timeout_, " s for ", late,
                             " to end; set KEEL_PROCESS_TIMEOUT to wait longer");
        }
        continue;
      }
      if (!is_known) std::cerr << absl::StrCat("rank ", rank_, ": ", why_, "\n");
      is_known = true;
      if (!failed_at) failed_at = Clock::now();
      if (all_ended() || Clock::now() - *failed_at > kErrorGrace) break;
    }
    if (!failed_) {
      for (Notice& notice : notices_) {
        MPI_Waitall(static_cast<int>(notice.requests.size()), notice.requests.data(),
                    MPI_STATUSES_IGNORE);
      }
      MPI_Comm_free(&comm_);
      MPI_Finalize();
      return;
    }
  } catch (const std::exception& error) {
    std::cerr << absl::StrCat("rank ", rank_, ": ", error.what(), "\n");
  }
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

// Completes the transfers of notify() that this process began before it left main. Sets failed_ if
// other processes do not take part in them.
void MpiProcessGroup::finish_transfers() {
  try {
    progress();
    if (const Transfer* transfer = unfinished()) check_alive(*transfer);
  } catch (const RuntimeError&) {
    if (!failed_) throw;
  }
}

// Does not wait for the lock: with two threads the order of exchanges would be undefined, and the
// processes could exchange the wrong messages.
std::unique_lock<std::mutex> MpiProcessGroup::take_turn(std::string_view what) {
  std::unique_lock turn(exchange_mutex_, std::try_to_lock);
  if (!turn.owns_lock()) {
    throw RuntimeError(
        what, ": another thread of rank ", rank_,
        " is already exchanging messages with other processes; do so from one thread at a time");
  }
  return turn;
}

std::vector<ProcessGroup::Parts> MpiProcessGroup::exchange(std::string_view what,
                                                           std::span<const Parts> send) {
  return collect(post(what, send));
}

int64_t MpiProcessGroup::post(std::string_view what, std::span<const Parts> send) {
  if (send.size() != peers_.size()) {
    throw ValueError(what, ": received ", send.size(), " messages for ", peers_.size(),
                     " processes; pass one for each process");
  }
  const auto turn = take_turn(what);
  const std::lock_guard lock(mutex_);
  read_notices();
  throw_if_failed();
  return begin(what, send, false).number;
}

void MpiProcessGroup::notify(std::string_view what) {
  const std::vector<Parts> nothing(peers_.size());
  const auto turn = take_turn(what);
  const Transfer* oldest = nullptr;
  {
    const std::lock_guard lock(mutex_);
    read_notices();
    throw_if_failed();
    begin(what, nothing, true);
    progress();
    // Limits the number of open transfers; otherwise the memory of a process that only calls
    // notify() would grow without bound.
    if (std::ssize(open_) > kMostOpen) oldest = unfinished();
  }
  if (oldest != nullptr) wait_for(*oldest);
}

std::vector<ProcessGroup::Parts> MpiProcessGroup::collect(int64_t posted) {
  const auto turn = take_turn("ProcessGroup::collect");
  const auto is_posted = [=](const std::unique_ptr<Transfer>& t) { return t->number == posted; };
  Transfer* found = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find_if(open_, is_posted);
    if (at == open_.end())
      throw ValueError(
          "ProcessGroup::collect: ", posted,
          " was not posted or is already collected; collect the result of each post() once");
    found = at->get();
  }
  wait_for(*found);
  const std::lock_guard lock(mutex_);
  // The results of the previous collection stay valid until the next one is collected.
  if (collected_.size() == 2) {
    spare_.push_back(std::move(collected_.front()));
    collected_.pop_front();
  }
  const auto at = std::ranges::find_if(open_, is_posted);
  collected_.push_back(std::move(*at));
  open_.erase(at);
  std::vector<Parts> received(peers_.size());
  for (int p = 0; p < size(); ++p) {
    if (p != rank_) received[p] = unpack(collected_.back()->routes[p].in.data());
  }
  return received;
}

void MpiProcessGroup::wait_for(const Transfer& transfer) {
  bool bytes_move = false;
  for (const Wait wait;; wait.pause(bytes_move)) {
    const std::lock_guard lock(mutex_);
    progress();
    if (transfer.is_done()) return;
    bytes_move = transfer.any_is(Route::kMoves);
    read_notices();
    throw_if_failed();
    check_alive(transfer);
    const std::string late =
        overdue(wait, [&](int p) { return transfer.routes[p].state != Route::kDone; });
    if (!late.empty()) {
      fail(absl::StrCat("rank ", rank_, " has waited ", timeout_, " s for ", late, " in ",
                        transfer.what, "; set KEEL_PROCESS_TIMEOUT to wait longer"));
    }
  }
}

Transfer& MpiProcessGroup::begin(std::string_view what, std::span<const Parts> send,
                                 bool from_notify) {
  std::unique_ptr<Transfer> next;
  if (spare_.empty()) {
    next = std::make_unique<Transfer>();
    next->routes = std::vector<Route>(peers_.size());
  } else {
    next = std::move(spare_.front());
    spare_.pop_front();
  }
  Transfer& transfer = *open_.emplace_back(std::move(next));
  transfer.number = ++transfers_;
  transfer.what = what;
  transfer.from_notify = from_notify;
  for (int p = 0; p < size(); ++p) {
    Route& route = transfer.routes[p];
    route.state = p == rank_ ? Route::kDone : Route::kAbsent;
    route.requests.clear();
    if (p == rank_) continue;
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): advance() tests the request
    check(
        MPI_Irecv(route.head.data(), kHeadBytes, MPI_BYTE, p, kHeadTag, comm_, &route.head_request),
        "MPI_Irecv");
  }
  for (int step = 1; step < size(); ++step) {  // each process begins with a different receiver
    const int p = (rank_ + step) % size();
    Route& route = transfer.routes[p];
    send_to(p, route, pack(what, send[p], route.out));
  }
  return transfer;
}

int64_t MpiProcessGroup::piece_size(int peer, int64_t size) const {
  return peers_[peer].is_near || size > kMostInPieces ? kMostBytes : kEagerBytes;
}

void MpiProcessGroup::send_to(int peer, Route& route, int64_t size) {
  const auto isend = [&](int64_t begin, int64_t count, int tag) {
    check(MPI_Isend(route.out.data() + begin, static_cast<int>(count), MPI_BYTE, peer, tag, comm_,
                    &route.requests.emplace_back()),
          "MPI_Isend");
    ++sent_.messages;
  };
  isend(0, head_size(size), kHeadTag);
  const int64_t piece = piece_size(peer, size);
  for (int64_t at = kHeadBytes; at < size; at += piece) {
    isend(at, std::min(piece, size - at), kBodyTag);
  }
  sent_.bytes_sent += size;
}

// MPI delivers the messages of one process in the order in which they were sent. The messages of a
// transfer are therefore not tested before the heads of all earlier transfers have arrived.
void MpiProcessGroup::progress() {
  for (int p = 0; p < size(); ++p) {
    if (p == rank_) continue;
    for (const std::unique_ptr<Transfer>& transfer : open_) {
      advance(p, *transfer);
      if (transfer->routes[p].state == Route::kAbsent) break;
    }
  }
  while (!open_.empty() && open_.front()->from_notify && open_.front()->is_done()) {
    spare_.push_back(std::move(open_.front()));
    open_.pop_front();
  }
}

void MpiProcessGroup::advance(int p, Transfer& transfer) {
  Route& route = transfer.routes[p];
  int done = 0;
  if (route.state == Route::kAbsent) {
    check(MPI_Test(&route.head_request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) accept_head(p, transfer);
  }
  if (route.state == Route::kMoves) {
    check(MPI_Testall(static_cast<int>(route.requests.size()), route.requests.data(), &done,
                      MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (done != 0) route.state = Route::kDone;
  }
}

void MpiProcessGroup::accept_head(int p, Transfer& transfer) {
  Route& route = transfer.routes[p];
  route.state = Route::kMoves;
  Header header;
  std::memcpy(&header, route.head.data(), sizeof(Header));
  if (header.hash != std::hash<std::string_view>()(transfer.what)) {
    fail(absl::StrCat("rank ", rank_, " is in ", transfer.what, " while rank ", p, " is in ",
                      header.what.data(),
                      "; all processes must make the same calls in the same order"));
  }
  std::byte* const bytes = route.in.resize(header.bytes);
  std::memcpy(bytes, route.head.data(), head_size(header.bytes));
  const int64_t piece = piece_size(p, header.bytes);
  for (int64_t at = kHeadBytes; at < header.bytes; at += piece) {
    check(MPI_Irecv(bytes + at, static_cast<int>(std::min(piece, header.bytes - at)), MPI_BYTE, p,
                    kBodyTag, comm_, &route.requests.emplace_back()),
          "MPI_Irecv");
  }
}

void MpiProcessGroup::check_alive(const Transfer& transfer) {
  // A process that has completed its part of this exchange may have ended while others continue.
  int lost = 0;
  while (lost < size() && !(peers_[lost].ended && transfer.routes[lost].state != Route::kDone)) {
    ++lost;
  }
  if (lost == size()) return;
  if (!missed_) missed_ = Clock::now();
  if (Clock::now() - *missed_ > kGrace) {
    fail(absl::StrCat("rank ", lost, " has ended while rank ", rank_, " is in ", transfer.what));
  }
}

// Returns "rank 2" or "ranks 1, 2": the awaited processes whose timeout has expired; empty if there
// is none.
template <class IsAwaited>
std::string MpiProcessGroup::overdue(const Wait& wait, const IsAwaited& is_awaited) const {
  if (timeout_ <= 0) return {};
  const Clock::time_point now = Clock::now();
  const auto seconds_since = [&](Clock::time_point since) {
    return std::chrono::duration<double>(now - std::max(wait.begin(), since)).count();
  };
  std::string ranks;
  int count = 0;
  for (int p = 0; p < size(); ++p) {
    if (p == rank_ || !is_awaited(p) || seconds_since(peers_[p].last_notice) <= timeout_) continue;
    absl::StrAppend(&ranks, count++ == 0 ? "" : ", ", p);
  }
  return count == 0 ? "" : absl::StrCat(count == 1 ? "rank " : "ranks ", ranks);
}

void MpiProcessGroup::begin_long_work(std::string_view what) {
  const std::lock_guard lock(work_mutex_);
  if (++works_ > 1 || timeout_ <= 0) return;
  const std::chrono::duration<double> pulse(std::min(timeout_ / 4, kLongestPulse));
  try {
    pulse_ = std::jthread([this, pulse, text = std::string(what)](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock wait(mutex);
      while (!stopped.wait_for(wait, stop, pulse, [&] { return stop.stop_requested(); })) {
        const std::lock_guard mpi(mutex_);
        if (failed_) return;
        notify(kWorks, text);
      }
    });
  } catch (...) {
    --works_;
    throw;
  }
}

void MpiProcessGroup::end_long_work() noexcept {
  const std::lock_guard lock(work_mutex_);
  if (--works_ == 0) pulse_ = {};  // stops and joins
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
    } else if (text[0] == kWorks) {
      peers_[status.MPI_SOURCE].last_notice = Clock::now();
    } else if (!failed_) {
      failed_ = true;
      why_ = absl::StrCat("rank ", status.MPI_SOURCE, " failed: ", text.substr(1));
    }
  }
}

void MpiProcessGroup::notify(char kind, const std::string& text) {
  while (!notices_.empty()) {
    Notice& oldest = notices_.front();
    int done = 0;
    MPI_Testall(static_cast<int>(oldest.requests.size()), oldest.requests.data(), &done,
                MPI_STATUSES_IGNORE);
    if (done == 0) break;
    notices_.pop_front();
  }
  Notice& notice = notices_.emplace_back();
  notice.text = kind + text.substr(0, kHeadBytes - 1);
  for (int p = 0; p < size(); ++p) {
    if (p == rank_) continue;
    MPI_Isend(notice.text.data(), static_cast<int>(notice.text.size()), MPI_BYTE, p, kNoticeTag,
              comm_, &notice.requests.emplace_back());
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
  why_ = str_or_empty(why);
  try {
    notify(kFailed, why);
  } catch (const std::exception&) {  // the others detect the failure when this process ends
  }
}

const Transfer* MpiProcessGroup::unfinished() const {
  const auto found = std::ranges::find_if(open_, [](const auto& t) { return !t->is_done(); });
  return found == open_.end() ? nullptr : found->get();
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
