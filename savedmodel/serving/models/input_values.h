// InputValues: the values of one input of a request, in memory that the next request reuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <keel/layers/serving/steps/plan_step.h>
#include <keel/savedmodel/serving/base/memory_budget.h>
#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {

// A named input or output of a signature.
struct TensorInfo {
  std::string name = {};
  TensorSpec spec = {};
};

// Returns "FP32", "BYTES", ...: the name of a dtype in KServe v2.
const char* v2_name(DType dtype);
// Returns "DT_FLOAT", "DT_STRING", ...: the name of a dtype in TensorFlow.
const char* tensorflow_name(DType dtype);

// A growing array of numbers of any type, which counts against the MemoryBudget.
class NumberBuffer {
 public:
  NumberBuffer() = default;
  NumberBuffer(NumberBuffer&& other) noexcept { *this = std::move(other); }
  NumberBuffer& operator=(NumberBuffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~NumberBuffer() { MemoryBudget::give(capacity_); }
  template <class T>
  void push(T value) {
    if (size_ + sizeof(T) > capacity_) grow(sizeof(T));
    std::memcpy(bytes_.get() + size_, &value, sizeof(T));
    size_ += sizeof(T);
  }
  void append(const void* data, size_t size);
  void clear() { size_ = 0; }
  // Frees memory that an unusual request has left.
  void shrink();
  const void* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  void grow(size_t more);
  std::unique_ptr<std::byte[], Free> bytes_;  // of malloc, because realloc moves no large blocks
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// The values of one input.
class InputValues {
 public:
  // Starts a request for an input, which must outlive the values.
  void reset(const TensorInfo& info);
  // Frees memory that an unusual request has left. The values are lost.
  void shrink();

  const TensorInfo& info() const { return *info_; }
  DType dtype() const { return info_->spec.dtype; }
  bool given = false;  // the request has named the input

  NumberBuffer numbers;  // all values but strings; bool as one byte
  IntegerList splits;    // ragged: 0 and the end of each row
  IntegerList indices;   // sparse: rank numbers for each value
  IntegerList sparse_shape;
  // The dimensions of a dense tensor, or of the values of a ragged one.
  std::vector<int64_t> dims;
  int nesting = -1;  // of lists, while they are read; -1 until the first value

  std::string& add_string();
  int64_t count() const;  // of values
  // Uses numbers in place of own ones; they must outlive the request.
  void borrow(const void* data, int64_t count);

  // Checks the collected values against the spec and makes the view. Dense values may have one
  // dimension of size 1 more or less than the spec at the end. Throws ValueFault that names the
  // input.
  void finish();
  // The values as a view that is valid until reset(). Only after finish().
  const TensorView& view() const { return view_; }
  int64_t rows() const { return view_.rows; }  // only after finish()

 private:
  void finish_dense();
  void finish_ragged();
  void finish_sparse();
  [[noreturn]] void fail_shape(std::span<const int64_t> received) const;

  const TensorInfo* info_ = nullptr;
  BudgetVector<std::string> strings_;
  int64_t string_count_ = 0;
  const void* borrowed_ = nullptr;
  int64_t borrowed_count_ = 0;
  TensorView view_;
};

// Returns the number of elements of untrusted dimensions. Throws ValueFault if one is negative or
// if the product overflows.
int64_t checked_size(std::span<const int64_t> dims);

}  // namespace keel::serving
