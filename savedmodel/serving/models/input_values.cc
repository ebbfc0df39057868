#include <keel/savedmodel/serving/models/input_values.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <new>

namespace keel::serving {
namespace {

constexpr size_t kMostKeptBytes = 1 << 20;
constexpr size_t kMostKeptText = 1 << 12;

std::string shape_text(std::span<const int64_t> dims) {
  std::string out = "(";
  for (size_t i = 0; i < dims.size(); ++i) absl::StrAppend(&out, i > 0 ? ", " : "", dims[i]);
  return out + (dims.size() == 1 ? ",)" : ")");
}

bool fits(const Shape& needed, std::span<const int64_t> dims) {
  if (static_cast<size_t>(needed.rank()) != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = needed.dims()[i];
    if (dim != kUnknown && dim != dims[i]) return false;
  }
  return true;
}

}  // namespace

const char* v2_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "FP32";
    case DType::kFloat64:
      return "FP64";
    case DType::kInt32:
      return "INT32";
    case DType::kInt64:
      return "INT64";
    case DType::kBool:
      return "BOOL";
    case DType::kUint8:
      return "UINT8";
    case DType::kInt8:
      return "INT8";
    case DType::kString:
      return "BYTES";
  }
  return "";
}

const char* tensorflow_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "DT_FLOAT";
    case DType::kFloat64:
      return "DT_DOUBLE";
    case DType::kInt32:
      return "DT_INT32";
    case DType::kInt64:
      return "DT_INT64";
    case DType::kBool:
      return "DT_BOOL";
    case DType::kUint8:
      return "DT_UINT8";
    case DType::kInt8:
      return "DT_INT8";
    case DType::kString:
      return "DT_STRING";
  }
  return "";
}

void NumberBuffer::grow(size_t more) {
  // Large blocks grow by pages without being copied, so a small step suffices for them.
  constexpr size_t kMostStep = size_t{4} << 20;
  const size_t wanted =
      std::max({size_ + more, capacity_ + std::min(capacity_ / 2, kMostStep), size_t{256}});
  MemoryBudget::take(wanted - capacity_);
  void* const bytes = std::realloc(bytes_.get(), wanted);
  if (bytes == nullptr) {
    MemoryBudget::give(wanted - capacity_);
    throw std::bad_alloc();
  }
  static_cast<void>(bytes_.release());
  bytes_.reset(static_cast<std::byte*>(bytes));
  capacity_ = wanted;
}

void NumberBuffer::append(const void* data, size_t size) {
  if (size == 0) return;
  if (size_ + size > capacity_) grow(size);
  std::memcpy(bytes_.get() + size_, data, size);
  size_ += size;
}

void NumberBuffer::shrink() {
  if (capacity_ <= kMostKeptBytes) return;
  MemoryBudget::give(capacity_);
  bytes_.reset();
  capacity_ = size_ = 0;
}

void InputValues::reset(const TensorInfo& info) {
  info_ = &info;
  given = false;
  numbers.clear();
  splits.clear();
  indices.clear();
  sparse_shape.clear();
  dims.clear();
  nesting = -1;
  string_count_ = 0;
  borrowed_ = nullptr;
  borrowed_count_ = 0;
}

// Assigning {} would keep the memory.
void InputValues::shrink() {
  numbers.shrink();
  for (int64_t i = 0; i < string_count_; ++i) {
    std::string& text = strings_[static_cast<size_t>(i)];
    if (text.capacity() > kMostKeptText) std::string().swap(text);
  }
  if (strings_.capacity() * sizeof(std::string) > kMostKeptBytes) {
    decltype(strings_)().swap(strings_);
  }
  string_count_ = 0;
  for (IntegerList* list : {&splits, &indices}) {
    if (list->capacity() * sizeof(int64_t) > kMostKeptBytes) IntegerList().swap(*list);
  }
}

std::string& InputValues::add_string() {
  if (strings_.size() <= static_cast<size_t>(string_count_)) strings_.emplace_back();
  return strings_[static_cast<size_t>(string_count_++)];
}

int64_t InputValues::count() const {
  if (borrowed_ != nullptr) return borrowed_count_;
  if (dtype() == DType::kString) return string_count_;
  return static_cast<int64_t>(numbers.size() / size_of(dtype()));
}

void InputValues::borrow(const void* data, int64_t count) {
  borrowed_ = data;
  borrowed_count_ = count;
}

int64_t checked_size(std::span<const int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims) {
    if (dim < 0) throw ValueFault("a dimension of the shape is negative: ", dim);
    if (__builtin_mul_overflow(size, dim, &size)) throw ValueFault("the shape is too large");
  }
  return size;
}

void InputValues::fail_shape(std::span<const int64_t> received) const {
  throw ValueFault("must have shape ", info_->spec.shape, ", received ", shape_text(received));
}

void InputValues::finish() {
  view_ = {};
  view_.layout = info_->spec.layout;
  view_.dtype = dtype();
  view_.data = borrowed_ != nullptr        ? borrowed_
               : dtype() == DType::kString ? static_cast<const void*>(strings_.data())
                                           : numbers.data();
  switch (info_->spec.layout) {
    case Layout::kDense:
      return finish_dense();
    case Layout::kRagged:
      return finish_ragged();
    case Layout::kSparse:
      return finish_sparse();
  }
}

void InputValues::finish_dense() {
  const Shape& needed = info_->spec.shape;
  if (const int64_t size = checked_size(dims); size != count()) {
    throw ValueFault("has ", count(), " values, but shape ", shape_text(dims), " has ", size);
  }
  const auto rank = static_cast<size_t>(needed.rank());
  if (!fits(needed, dims)) {
    std::vector<int64_t> other = dims;
    if (dims.size() + 1 == rank && rank > 0 && needed[-1] == 1) {
      other.push_back(1);
    } else if (dims.size() == rank + 1 && dims.back() == 1) {
      other.pop_back();
    }
    if (!fits(needed, other)) fail_shape(dims);
    dims = other;
  }
  view_.shape = Shape(dims);
  view_.values = count();
  view_.rows = dims.empty() ? 0 : dims[0];
  // An empty tensor needs a pointer too.
  if (view_.data == nullptr) view_.data = this;
}

void InputValues::finish_ragged() {
  if (splits.empty() || splits[0] != 0) throw ValueFault("row_splits must begin with 0");
  if (dims.empty()) dims.push_back(count());
  const Shape inner = info_->spec.shape.without(1).with(0, kUnknown);
  if (const int64_t size = checked_size(dims); size != count() || !fits(inner, dims)) {
    throw ValueFault("must have values of shape ", inner, ", received ", shape_text(dims));
  }
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) {
      throw ValueFault("row_splits must not descend, received ", splits[i], " after ",
                       splits[i - 1]);
    }
  }
  if (splits.back() != dims[0]) {
    throw ValueFault("row_splits must end with the number of values, ", dims[0], ", received ",
                     splits.back());
  }
  view_.shape = Shape(dims);
  view_.values = dims[0];
  view_.row_splits = splits.data();
  view_.rows = static_cast<int64_t>(splits.size()) - 1;
  if (view_.data == nullptr) view_.data = this;
}

void InputValues::finish_sparse() {
  const Shape& needed = info_->spec.shape;
  const auto rank = static_cast<size_t>(needed.rank());
  for (int64_t dim : sparse_shape) {
    if (dim < 0) throw ValueFault("dense_shape has the negative dimension ", dim);
  }
  if (!fits(needed, sparse_shape)) fail_shape(sparse_shape);
  if (indices.size() != rank * static_cast<size_t>(count())) {
    throw ValueFault("has ", count(), " values and indices for ", indices.size() / rank);
  }
  for (size_t i = 0; i < indices.size(); i += rank) {
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t index = indices[i + axis];
      if (index < 0 || index >= sparse_shape[axis]) {
        throw ValueFault("index ", index, " of value ", i / rank, " is outside of shape ",
                         shape_text(sparse_shape));
      }
    }
    const auto at = indices.begin() + static_cast<std::ptrdiff_t>(i);
    const auto width = static_cast<std::ptrdiff_t>(rank);
    if (i > 0 && !std::lexicographical_compare(at - width, at, at, at + width)) {
      throw ValueFault("indices must ascend without repeats, but those of value ", i / rank,
                       " do not");
    }
  }
  view_.shape = Shape(std::span<const int64_t>(sparse_shape));
  view_.values = count();
  view_.indices = indices.data();
  view_.rows = sparse_shape[0];
  if (view_.data == nullptr) view_.data = this;
  if (view_.indices == nullptr) view_.indices = &view_.values;  // never read
}

}  // namespace keel::serving
