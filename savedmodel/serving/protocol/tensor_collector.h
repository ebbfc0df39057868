// TensorCollector: assigns the named tensors of a request to the inputs of a signature. A ragged or
// sparse input consists of several tensors (tensor_parts.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <keel/savedmodel/serving/models/tensor_parts.h>
#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// One tensor of a request.
struct RequestTensor {
  std::string name = {};
  IntegerList shape = {};
  const PartInfo* part = nullptr;  // what find() has found
  bool is_row_ends = false;        // in place of row_splits
};

// Collects the tensors of one request. All members throw ServeError that names the tensor.
class TensorCollector {
 public:
  // All arguments must outlive the collector; `inputs` are those of the signature, reset.
  TensorCollector(const ServedSignature& signature, std::span<InputValues> inputs,
                  const RequestLimits& limits)
      : parts_(signature.input_parts), used_(parts_.size()), inputs_(inputs), limits_(limits) {}

  // Sets tensor.part. Throws if no input has the tensor, or if it was found before.
  void find(RequestTensor& tensor);
  // Finds a tensor, or returns false if no input has it.
  bool try_find(RequestTensor& tensor);
  // Returns the names of the tensors that were not found yet.
  std::vector<std::string> missing() const;

  // Throws unless `datatype` is the tensor's name of KServe v2.
  void check_datatype(const RequestTensor& tensor, std::string_view datatype) const;
  // Throws if the shape is invalid or has too many rows.
  void check_shape(const RequestTensor& tensor) const;

  // Where the values of a tensor go: into a list if they are row splits, indices or a shape, else
  // into the values of the input. `begin_integers` returns null in the second case.
  IntegerList* begin_integers(const RequestTensor& tensor);
  InputValues& values_of(const RequestTensor& tensor) { return inputs_[tensor.part->tensor]; }

  // Takes all values of a tensor as bytes: numbers little-endian and row-major, each string after
  // its length as 4 bytes. Aligned numbers are used where they are, so `bytes` must outlive the
  // request.
  void add_binary(const RequestTensor& tensor, std::string_view bytes);

  // Completes a tensor after its values: checks their number and stores the shape.
  void close(const RequestTensor& tensor);
  // Completes the inputs after the last tensor. Throws if one is missing or invalid.
  void finish();

 private:
  IntegerList* integers_of(const PartInfo& part);

  const std::vector<PartInfo>& parts_;
  std::vector<bool> used_;
  std::span<InputValues> inputs_;
  const RequestLimits& limits_;
};

}  // namespace keel::serving
