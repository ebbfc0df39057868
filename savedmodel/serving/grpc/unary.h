// Makes an RpcMethod's function of a function of messages.
#pragma once

#include <google/protobuf/arena.h>

#include <keel/savedmodel/serving/base/memory_budget.h>
#include <keel/savedmodel/serving/grpc/message_bytes.h>
#include <keel/savedmodel/serving/grpc/rpc_method.h>

namespace keel::serving {

template <class Request, class Response, void (*kAnswer)(RpcRequest&, const Request&, Response&)>
void answer_unary(RpcRequest& call, grpc::ByteBuffer& in, grpc::ByteBuffer& out) {
  google::protobuf::Arena arena;
  auto* const request = google::protobuf::Arena::CreateMessage<Request>(&arena);
  auto* const response = google::protobuf::Arena::CreateMessage<Response>(&arena);
  parse_message(in, static_cast<size_t>(call.options.message_bytes), *request);
  const MemoryBudget::Scope budget(MemoryBudget::of_body(in.Length()));
  kAnswer(call, *request, *response);
  serialize_message(*response, out);
}

}  // namespace keel::serving
