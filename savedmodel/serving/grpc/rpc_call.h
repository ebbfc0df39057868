// The events of a completion queue, and services whose messages are bytes.
#pragma once

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

namespace keel::serving {

// What waits for an event of the queue.
class RpcEvent {
 public:
  virtual ~RpcEvent() = default;
  // `ok` is false if the operation was not done.
  virtual void happen(bool ok) = 0;

  // How operations and the queue name the event.
  void* tag() { return this; }
  static RpcEvent& of(void* tag) { return *static_cast<RpcEvent*>(tag); }
};

// An event that calls a member function of its owner.
template <class Owner>
class MemberEvent : public RpcEvent {
 public:
  MemberEvent(Owner& owner, void (Owner::*member)(bool)) : owner_(owner), member_(member) {}
  void happen(bool ok) override { (owner_.*member_)(ok); }

 private:
  Owner& owner_;
  void (Owner::*member_)(bool);
};

// A service of methods that are given at run time. It receives and sends messages as bytes, so it
// needs no generated code.
class RawService : public grpc::Service {
 public:
  // Adds a method; `path` must outlive the service. Returns its position.
  int add(const char* path, bool streams_responses) {
    using grpc::internal::RpcMethod;
    const auto type = streams_responses ? RpcMethod::SERVER_STREAMING : RpcMethod::NORMAL_RPC;
    AddMethod(new grpc::internal::RpcServiceMethod(path, type, nullptr));
    MarkMethodRaw(count_);
    return count_++;
  }

  // Waits for the next call of a method; `event` happens when it has come.
  void accept(int method, grpc::ServerContext& context, grpc::ByteBuffer& request,
              grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>& writer,
              grpc::ServerCompletionQueue& queue, RpcEvent& event) {
    RequestAsyncUnary(method, &context, &request, &writer, &queue, &queue, event.tag());
  }
  void accept(int method, grpc::ServerContext& context, grpc::ByteBuffer& request,
              grpc::ServerAsyncWriter<grpc::ByteBuffer>& writer, grpc::ServerCompletionQueue& queue,
              RpcEvent& event) {
    RequestAsyncServerStreaming(method, &context, &request, &writer, &queue, &queue, event.tag());
  }

 private:
  int count_ = 0;
};

}  // namespace keel::serving
