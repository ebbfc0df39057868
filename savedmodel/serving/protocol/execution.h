// What all protocols share: the memory of a request and running a signature with its metrics.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <keel/savedmodel/serving/base/request_deadline.h>
#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Limits of requests that do not depend on the transport.
struct RequestLimits {
  int64_t rows = 100000;
  int64_t timeout_ns = 0;            // of the whole request; 0: none
  Counter* rejected_rows = nullptr;  // counts requests with too many rows
};

// A request that is being answered, for metrics and the log.
struct RequestTrace {
  VersionHandle version = {};
  Api api = Api::kPredict;
  int64_t received_ns = 0;  // the last byte
  int64_t begin_ns = 0;     // when reading its values began
  int64_t run_ns = 0;       // when computing began
  int64_t computed_ns = 0;  // when it ended
  int64_t waited_ns = 0;    // for a batch, between begin_ns and run_ns
  int64_t rows = 0;
  int64_t deadline_ns = INT64_MAX;  // of the server, after which nothing is computed
  int64_t timeout_ns = 0;           // that the request has asked for; 0: none
  bool counted = true;              // in the metrics; false for warm-up
  // Shared with the thread that enforces time-outs; null: none does.
  RequestDeadline* deadline = nullptr;

  // Takes the time-out that the request asks for, which may only shorten the server's.
  void set_timeout(int64_t ns);
  // Throws ServeError kDeadlineExceeded if that time-out has passed.
  void check_timeout() const;
  // Returns true if this thread sends the response, false if the time-out was sent before.
  bool claim() { return deadline == nullptr || deadline->claim(); }
};

// Memory that the requests of a thread reuse.
struct RequestMemory {
  std::vector<InputValues> inputs;
  RunOutputs outputs;
  std::string text;
  VersionHandle logged;  // the version that the request has reached, if requests are logged
};
RequestMemory& request_memory();
// Frees what an unusual request has left in the memory of this thread.
void shrink_request_memory();

// Returns nanoseconds of the steady clock.
int64_t steady_ns();

// Prepares memory for the inputs of a signature.
std::span<InputValues> reset_inputs(RequestMemory& memory, const ServedSignature& signature);

// Throws ServeError if there are more rows than allowed.
void check_rows(int64_t rows, const RequestLimits& limits);
// Returns the number of rows of the inputs, which may differ, in which case it is the largest.
int64_t rows_of(std::span<const InputValues> inputs);

// Runs a signature on finished inputs and counts it.
void run_signature(RequestTrace& trace, const ServedSignature& signature,
                   std::span<const InputValues> inputs, RunOutputs& outputs);

}  // namespace keel::serving
