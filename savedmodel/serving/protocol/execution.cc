#include <keel/savedmodel/serving/protocol/execution.h>

#include <algorithm>
#include <chrono>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>
#include <keel/savedmodel/serving/models/batch_scheduler.h>

namespace keel::serving {

void RequestTrace::set_timeout(int64_t ns) {
  timeout_ns = ns;
  if (ns > 0 && deadline != nullptr && ns < INT64_MAX - received_ns) {
    deadline->lower(received_ns + ns);
  }
}

void RequestTrace::check_timeout() const {
  if (timeout_ns > 0 && steady_ns() - received_ns > timeout_ns) {
    throw ServeError(Code::kDeadlineExceeded, "the request has exceeded its parameter timeout");
  }
}

RequestMemory& request_memory() {
  thread_local RequestMemory memory;
  return memory;
}

void shrink_request_memory() {
  constexpr size_t kMostKeptFloats = 1 << 18;
  RequestMemory& memory = request_memory();
  for (InputValues& input : memory.inputs) input.shrink();
  memory.outputs.tensors.clear();
  if (memory.outputs.floats.capacity() > kMostKeptFloats) {
    std::vector<float>().swap(memory.outputs.floats);  // assigning {} would keep the memory
  }
}

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::span<InputValues> reset_inputs(RequestMemory& memory, const ServedSignature& signature) {
  const size_t count = signature.inputs.size();
  if (memory.inputs.size() < count) memory.inputs.resize(count);
  for (size_t i = 0; i < count; ++i) memory.inputs[i].reset(signature.inputs[i]);
  return {memory.inputs.data(), count};
}

void check_rows(int64_t rows, const RequestLimits& limits) {
  if (rows <= limits.rows) return;
  if (limits.rejected_rows != nullptr) limits.rejected_rows->add();
  throw ServeError(Code::kInvalidArgument, "a request may have at most ", limits.rows,
                   " rows, received ", rows);
}

int64_t rows_of(std::span<const InputValues> inputs) {
  int64_t rows = 0;
  for (const InputValues& input : inputs) rows = std::max(rows, input.rows());
  return rows;
}

namespace {

// Computes alone or with the rows of other requests, and sets the times.
void compute_request(RequestTrace& trace, const ServedSignature& signature,
                     std::span<const InputValues> inputs, RunOutputs& outputs) {
  const ModelVersion& version = *trace.version;
  const SerialSection serial;  // other threads compute other requests
  if (version.batching() == nullptr || !trace.counted) {
    trace.run_ns = steady_ns();
    version.run(signature, inputs, outputs);
    trace.computed_ns = steady_ns();
    if (trace.counted) version.metrics().executions.add();
    return;
  }
  int64_t deadline_ns = trace.deadline_ns;
  if (trace.timeout_ns > 0 && trace.timeout_ns < INT64_MAX - trace.received_ns) {
    deadline_ns = std::min(deadline_ns, trace.received_ns + trace.timeout_ns);
  }
  // The rows of other requests may be joined in this thread.
  const MemoryBudget::Scope unlimited(MemoryBudget::kUnlimited);
  const BatchTimes times =
      version.batching()->run(version, signature, inputs, deadline_ns, outputs);
  trace.waited_ns = times.waited_ns;
  trace.run_ns = times.begin_ns;
  trace.computed_ns = times.end_ns;
}

}  // namespace

void run_signature(RequestTrace& trace, const ServedSignature& signature,
                   std::span<const InputValues> inputs, RunOutputs& outputs) {
  const ModelVersion& version = *trace.version;
  outputs.tensors.clear();
  trace.rows = rows_of(inputs);
  try {
    compute_request(trace, signature, inputs, outputs);
  } catch (const InvalidIdError&) {
    if (trace.counted) version.model_metrics().ids_rejected.add();
    throw;
  } catch (const RuntimeError& error) {
    // Layers throw it for inputs that do not fit together, such as different numbers of rows.
    throw ServeError(Code::kInvalidArgument, error.what());
  }
  if (!trace.counted) return;
  version.metrics().rows.add(trace.rows);
  version.model_metrics().runtime[static_cast<size_t>(trace.api)].observe(
      static_cast<double>(trace.computed_ns - trace.run_ns) * 1e-3);
}

}  // namespace keel::serving
