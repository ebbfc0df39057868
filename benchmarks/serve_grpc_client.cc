// serve_grpc_client ADDRESS METHOD FILE SECONDS: calls a unary method of a gRPC server again and
// again, one call at a time, with the bytes of a file as the request. Prints a line of JSON:
// latencies in microseconds, and the processor time of this program for a call.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <iostream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double processor_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Calls once and returns the microseconds. Exits if the call fails.
double call(grpc::GenericStub& stub, const std::string& method, const grpc::ByteBuffer& request) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer response;
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  const auto begin = Clock::now();
  const auto reader = stub.PrepareUnaryCall(&context, method, request, &queue);
  reader->StartCall();
  reader->Finish(&response, &status, nullptr);
  queue.Next(&tag, &ok);
  const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
  if (!status.ok()) {
    std::cerr << method << ": " << status.error_message() << '\n';
    std::exit(1);
  }
  return taken.count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: serve_grpc_client ADDRESS METHOD FILE SECONDS\n";
    return 2;
  }
  std::ifstream file(argv[3], std::ios::binary);
  const std::string body((std::istreambuf_iterator<char>(file)), {});
  const grpc::Slice slice(body);
  const grpc::ByteBuffer request(&slice, 1);
  const std::chrono::duration<double> span(std::stod(argv[4]));
  grpc::GenericStub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  constexpr int kWarmUp = 500;
  for (int i = 0; i < kWarmUp; ++i) call(stub, argv[2], request);
  std::vector<double> micros;
  const double before = processor_seconds();
  const auto begin = Clock::now();
  while (Clock::now() - begin < span) micros.push_back(call(stub, argv[2], request));
  const auto count = static_cast<double>(micros.size());
  const double used = (processor_seconds() - before) / count * 1e6;
  std::ranges::sort(micros);
  const auto at = [&](double part) { return micros[static_cast<size_t>(part * (count - 1))]; };
  std::printf(
      "{\"p50 us\": %.1f, \"p99 us\": %.1f, \"calls/s\": %.0f, \"client's processor us\": %.1f}\n",
      at(0.5), at(0.99), count / span.count(), used);
  return 0;
}
