#include <keel/savedmodel/serving/grpc/grpc_server.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <chrono>
#include <climits>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <keel/framework/base/parallel.h>
#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/protocol/request_count.h>

namespace keel::serving {
namespace {

constexpr size_t kMostMessage = 1024;
constexpr std::string_view kTruncated = "...TRUNCATED";

grpc::Status error_status(Code code, std::string message) {
  if (message.size() > kMostMessage) {
    // one_line() cuts between characters, and ends in dots of its own.
    message = one_line(message, kMostMessage - kTruncated.size() + 3);
    message.resize(message.size() - 3);
    message += kTruncated;
  }
  return {static_cast<grpc::StatusCode>(code), message};
}

// Describes the exception that is being handled.
grpc::Status current_status(Code& code) {
  constexpr size_t kMostRead = 1 << 16;
  code = current_error().code;
  std::string message;
  try {
    throw;
  } catch (const std::exception& error) {
    message = one_line(error.what(), kMostRead);
  } catch (...) {
    message = "unknown error";
  }
  if (code == Code::kInternal) log_error("internal error: ", message);
  return error_status(code, std::move(message));
}

// gRPC's own messages go to the log of the server.
void write_grpc_log(gpr_log_func_args* line) {
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    log_warning("gRPC: ", line->message);
  } else {
    log_debug("gRPC: ", line->message);
  }
}

// Returns the time of the steady clock at which a call must be answered.
int64_t deadline_of(const grpc::ServerContext& context, int64_t now, int64_t timeout_ms) {
  constexpr int64_t kNanos = 1000000;
  const auto left = context.deadline() - std::chrono::system_clock::now();
  const int64_t client_ms =
      context.deadline() == std::chrono::system_clock::time_point::max()
          ? INT64_MAX
          : std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  const int64_t least = std::min(client_ms, timeout_ms > 0 ? timeout_ms : INT64_MAX);
  return least >= (INT64_MAX - now) / kNanos ? INT64_MAX : now + least * kNanos;
}

std::string tcp_address(const std::string& address, int port) {
  const bool v6 = absl::StrContains(address, ':');
  return absl::StrCat(v6 ? "[" : "", address, v6 ? "]:" : ":", port);
}

}  // namespace

// One call of a unary method. Three parties use it: the thread that answers, the operation that
// sends the answer, and the notice of the end. The last one deletes it.
class GrpcServer::UnaryCall {
 public:
  UnaryCall(GrpcServer& server, RawService& service, int index, const RpcMethod& description)
      : server_(server), service_(service), index_(index), method(description) {
    context.AsyncNotifyWhenDone(ended_.tag());
    service.accept(index, context, request, writer_, *server.queue_, accepted_);
  }

  // Sends the answer, unless expire() has sent one.
  void finish(const grpc::ByteBuffer* response, const grpc::Status& status) {
    if (!deadline.claim()) return;
    if (status.ok()) {
      writer_.Finish(*response, status, finished_.tag());
    } else {
      writer_.FinishWithError(status, finished_.tag());
    }
  }
  // Sends the error of a call that is late, unless the call was answered. Returns whether it was
  // sent.
  bool expire(const grpc::Status& late) {
    if (!deadline.expire()) return false;
    writer_.FinishWithError(late, finished_.tag());
    return true;
  }
  void release() {
    if (users_.fetch_sub(1) > 1) return;
    --server_.calls_;
    delete this;
  }

 private:
  void accepted(bool ok) {
    if (!ok) {  // the server stops; `ended_` will not happen
      delete this;
      return;
    }
    ++server_.calls_;
    received_ns = steady_ns();
    deadline.begin(deadline_of(context, received_ns, server_.options_.timeout_ms));
    server_.accept(service_, index_, method);
    server_.handle(*this);
  }
  void finished(bool) { release(); }
  void ended(bool) {
    cancelled = context.IsCancelled();
    release();
  }

  GrpcServer& server_;
  RawService& service_;
  const int index_;

 public:
  const RpcMethod& method;
  grpc::ServerContext context;
  grpc::ByteBuffer request;
  int64_t received_ns = 0;
  RequestDeadline deadline;
  std::atomic<bool> cancelled = false;

 private:
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context};
  MemberEvent<UnaryCall> accepted_{*this, &UnaryCall::accepted},
      finished_{*this, &UnaryCall::finished}, ended_{*this, &UnaryCall::ended};
  std::atomic<int> users_ = 3;
};

GrpcServer::GrpcServer(const RpcServerOptions& options, const RpcBackend& backend)
    : options_(options), backend_(backend), descriptions_(tfs_services()), watches_(backend_) {
  gpr_set_log_function(write_grpc_log);
  // Requests that are no messages are the clients' errors, and are no lines of the log.
  google::protobuf::SetLogHandler(nullptr);
  descriptions_.push_back(kserve_service());
  if (options.health) descriptions_.push_back(health_service());
  grpc::ServerBuilder builder;
  const std::string tcp = tcp_address(options.address, std::max(options.port, 0));
  const std::string path = "unix:" + options.socket_path;
  int socket_port = 1;
  if (options.port != 0) {
    builder.AddListeningPort(tcp, grpc::InsecureServerCredentials(), &port_);
  }
  if (!options.socket_path.empty()) {
    builder.AddListeningPort(path, grpc::InsecureServerCredentials(), &socket_port);
  }
  // Otherwise a second server would share the port of the first.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<int64_t>(options.message_bytes, INT_MAX)));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // message_bytes.h
  for (const RpcService& description : descriptions_) {
    RawService& service = *services_.emplace_back(std::make_unique<RawService>());
    for (const RpcMethod& method : description.methods) service.add(method.path, false);
    if (std::string_view(description.name).ends_with(".Health")) {
      service.add("/grpc.health.v1.Health/Watch", true);
    }
    builder.RegisterService(&service);
  }
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || (options.port != 0 && port_ == 0) || socket_port == 0) {
    throw IoError("cannot listen for gRPC on ", options.port != 0 && port_ == 0 ? tcp : path,
                  "; another process may use it");
  }
}

GrpcServer::~GrpcServer() {
  watches_.stop();
  if (shutdown_.joinable()) {
    shutdown_.join();
  } else if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now());
  }
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // Without threads, nothing else takes the last events.
  run();
}

void GrpcServer::start() {
  for (size_t i = 0; i < services_.size(); ++i) {
    const std::vector<RpcMethod>& methods = descriptions_[i].methods;
    for (size_t m = 0; m < methods.size(); ++m) {
      // Two calls of each method are awaited: while one is received, the next may come.
      accept(*services_[i], static_cast<int>(m), methods[m]);
      if (methods[m].api) accept(*services_[i], static_cast<int>(m), methods[m]);
    }
    if (std::string_view(descriptions_[i].name).ends_with(".Health")) {
      watches_.accept(*services_[i], static_cast<int>(methods.size()), *queue_);
    }
  }
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < std::min(options_.threads, num_workers() + 1); ++i) {
    threads_.emplace_back([this] { run(); });
  }
}

void GrpcServer::run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) RpcEvent::of(tag).happen(ok);
}

void GrpcServer::accept(RawService& service, int method, const RpcMethod& description) {
  new UnaryCall(*this, service, method, description);
}

// Returns true if this thread may compute a call; queues the call otherwise.
bool GrpcServer::begin(UnaryCall& call) {
  const std::lock_guard lock(mutex_);
  const auto most = static_cast<size_t>(options_.threads);
  if (computing_.size() + 1 >= threads_.size() && threads_.size() < most) {
    threads_.emplace_back([this] { run(); });
  }
  // A server of one thread computes too.
  if (computing_.size() >= std::max<size_t>(threads_.size() - 1, 1)) {
    waiting_.push_back(&call);
    return false;
  }
  computing_.insert(&call);
  return true;
}

// Answers a call that was received, or queues it.
void GrpcServer::handle(UnaryCall& call) {
  if (!call.method.api) {
    grpc::ByteBuffer response;
    const grpc::Status status = answer(call, response);
    call.finish(&response, status);
    return call.release();
  }
  ServerMetrics& metrics = backend_.metrics;
  if (metrics.pending.fetch_add(1, std::memory_order_relaxed) >= options_.max_pending) {
    metrics.pending.fetch_sub(1, std::memory_order_relaxed);
    metrics.rejected_pending.add();
    metrics.unknown_models.count(Code::kResourceExhausted);  // the message is not parsed
    call.finish(nullptr, error_status(Code::kResourceExhausted, "too many requests are pending"));
    return call.release();
  }
  if (!begin(call)) return;
  UnaryCall* next = &call;
  while (next != nullptr) {
    UnaryCall& current = *next;
    compute(current);
    {
      const std::lock_guard lock(mutex_);
      computing_.erase(&current);
      next = waiting_.empty() ? nullptr : waiting_.front();
      if (next != nullptr) {
        waiting_.pop_front();
        computing_.insert(next);
      }
    }
    current.release();
  }
}

void GrpcServer::compute(UnaryCall& call) {
  grpc::ByteBuffer response;
  grpc::Status status;
  if (call.cancelled) {
    status = {grpc::StatusCode::CANCELLED, "the client has cancelled the call"};
  } else if (steady_ns() > call.deadline.at_ns()) {
    if (call.deadline.claim()) backend_.metrics.rejected_timeout.add();
    backend_.metrics.unknown_models.count(Code::kDeadlineExceeded);
    status = error_status(Code::kDeadlineExceeded, "the request timed out while it was queued");
  } else {
    status = answer(call, response);
  }
  backend_.metrics.pending.fetch_sub(1, std::memory_order_relaxed);
  call.finish(&response, status);
}

grpc::Status GrpcServer::answer(UnaryCall& call, grpc::ByteBuffer& response) {
  const size_t received = options_.log_requests ? call.request.Length() : 0;
  RpcRequest request = {.options = options_, .backend = backend_};
  request.trace.received_ns = call.received_ns;
  request.trace.begin_ns = steady_ns();
  request.trace.deadline_ns = call.deadline.at_ns();
  request.trace.deadline = &call.deadline;
  if (call.method.api) request.trace.api = *call.method.api;
  Code code = Code::kOk;
  grpc::Status status;
  try {
    call.method.answer(request, call.request, response);
  } catch (...) {
    status = current_status(code);
  }
  if (call.method.api) {
    shrink_request_memory();
    if (!call.deadline.claim()) code = Code::kDeadlineExceeded;  // expire() has answered
    count_request(request.trace, code, request.model, backend_.repository, backend_.metrics);
  }
  if (options_.log_requests) {
    const ModelVersion* const version = request.trace.version.get();
    log_info("gRPC ", call.method.path, " ", name_of(code), " ", received, " bytes ",
             (steady_ns() - call.received_ns) / 1000, " us ",
             version == nullptr ? "" : version->model(), " ",
             version == nullptr ? "" : version->number_text());
  }
  return status;
}

// Answers calls whose time is over; those that compute go on computing.
void GrpcServer::expire(int64_t now) {
  const grpc::Status late =
      error_status(Code::kDeadlineExceeded, "the request has exceeded the time-out");
  const std::lock_guard lock(mutex_);
  for (UnaryCall* call : computing_) {
    if (call->deadline.at_ns() < now && call->expire(late)) {
      backend_.metrics.rejected_timeout.add();
    }
  }
  std::erase_if(waiting_, [&](UnaryCall* call) {
    if (call->deadline.at_ns() >= now) return false;
    backend_.metrics.rejected_timeout.add();
    backend_.metrics.unknown_models.count(Code::kDeadlineExceeded);
    backend_.metrics.pending.fetch_sub(1, std::memory_order_relaxed);
    call->finish(nullptr, late);
    call->release();
    return true;
  });
}

void GrpcServer::tick() {
  expire(steady_ns());
  watches_.publish();
}

void GrpcServer::stop_accepting() {
  watches_.stop();
  shutdown_ = std::thread([this] {
    server_->Shutdown();
    is_down_ = true;
  });
}

int64_t GrpcServer::open_calls() const { return is_down_ ? 0 : std::max<int64_t>(calls_, 1); }

}  // namespace keel::serving
