#include <keel/savedmodel/serving/protocol/tensor_collector.h>

#include <algorithm>
#include <cstring>

namespace keel::serving {
namespace {

template <class... Args>
[[noreturn]] void fail_tensor(const RequestTensor& tensor, const Args&... args) {
  throw ServeError(Code::kInvalidArgument, "input '", tensor.name, "'", args...);
}

int64_t size_of_shape(const RequestTensor& tensor) {
  try {
    return checked_size(tensor.shape);
  } catch (const ValueFault& fault) {
    fail_tensor(tensor, ": ", fault.what());
  }
}

// Reads `count` strings, each after its length.
void read_strings(const RequestTensor& tensor, std::string_view bytes, int64_t count,
                  InputValues& to) {
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (bytes.size() - at < sizeof length) {
      fail_tensor(tensor, ": the binary data end before string ", i);
    }
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    if (length > bytes.size() - at) {
      fail_tensor(tensor, ": string ", i, " has ", length, " bytes, but only ", bytes.size() - at,
                  " are left");
    }
    to.add_string().assign(bytes.substr(at, length));
    at += length;
  }
  if (at != bytes.size()) {
    fail_tensor(tensor, ": ", bytes.size() - at, " bytes follow the last string");
  }
}

}  // namespace

IntegerList* TensorCollector::integers_of(const PartInfo& part) {
  InputValues& input = inputs_[part.tensor];
  switch (part.part) {
    case TensorPart::kRowSplits:
      return &input.splits;
    case TensorPart::kIndices:
      return &input.indices;
    case TensorPart::kDenseShape:
      return &input.sparse_shape;
    case TensorPart::kDense:
    case TensorPart::kValues:
      break;
  }
  return nullptr;
}

IntegerList* TensorCollector::begin_integers(const RequestTensor& tensor) {
  IntegerList* const out = integers_of(*tensor.part);
  if (out != nullptr && tensor.is_row_ends) out->push_back(0);
  return out;
}

bool TensorCollector::try_find(RequestTensor& tensor) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].name != tensor.name) continue;
    if (used_[i]) fail_tensor(tensor, " stands twice");
    used_[i] = true;
    tensor.part = &parts_[i];
    return true;
  }
  // An alternative of row_splits, which metadata does not list.
  constexpr std::string_view kEnds = ".row_ends";
  if (!tensor.name.ends_with(kEnds)) return false;
  const std::string splits =
      tensor.name.substr(0, tensor.name.size() - kEnds.size()) + ".row_splits";
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].name != splits || parts_[i].part == TensorPart::kDense) continue;
    if (used_[i]) fail_tensor(tensor, " gives '", splits, "' a second time");
    used_[i] = true;
    tensor.part = &parts_[i];
    tensor.is_row_ends = true;
    return true;
  }
  return false;
}

void TensorCollector::find(RequestTensor& tensor) {
  if (try_find(tensor)) return;
  std::string names;
  for (const PartInfo& part : parts_) names += (names.empty() ? "'" : ", '") + part.name + "'";
  throw ServeError(Code::kInvalidArgument, "unknown input '", tensor.name, "'; the inputs are ",
                   names);
}

std::vector<std::string> TensorCollector::missing() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!used_[i]) out.push_back(parts_[i].name);
  }
  return out;
}

void TensorCollector::check_datatype(const RequestTensor& tensor, std::string_view datatype) const {
  const char* const needed = v2_name(tensor.part->dtype);
  if (datatype != needed) {
    fail_tensor(tensor, " needs datatype ", needed, ", received ", datatype);
  }
}

void TensorCollector::check_shape(const RequestTensor& tensor) const {
  size_of_shape(tensor);
  if (!tensor.shape.empty() && tensor.part->part == TensorPart::kDense) {
    check_rows(tensor.shape[0], limits_);
  }
}

void TensorCollector::add_binary(const RequestTensor& tensor, std::string_view bytes) {
  const PartInfo& part = *tensor.part;
  const int64_t count = size_of_shape(tensor);
  InputValues& input = values_of(tensor);
  if (part.dtype == DType::kString) return read_strings(tensor, bytes, count, input);
  const auto element = static_cast<int64_t>(size_of(part.dtype));
  int64_t needed = 0;
  if (__builtin_mul_overflow(count, element, &needed) ||
      static_cast<uint64_t>(needed) != bytes.size()) {
    fail_tensor(tensor, " has ", bytes.size(), " bytes of binary data, but the shape needs ", count,
                " values of ", element, " bytes");
  }
  if (IntegerList* const integers = begin_integers(tensor)) {
    const size_t before = integers->size();
    integers->resize(before + static_cast<size_t>(count));
    if (count > 0) std::memcpy(integers->data() + before, bytes.data(), bytes.size());
  } else if (part.dtype == DType::kBool) {
    for (char byte : bytes) input.numbers.push(byte != 0);
  } else if (reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(element) == 0) {
    input.borrow(bytes.data(), count);
  } else {
    input.numbers.append(bytes.data(), bytes.size());
  }
}

void TensorCollector::close(const RequestTensor& tensor) {
  const PartInfo& part = *tensor.part;
  InputValues& input = values_of(tensor);
  const IntegerList* const integers = integers_of(part);
  const int64_t count =
      integers == nullptr ? input.count() : std::ssize(*integers) - (tensor.is_row_ends ? 1 : 0);
  if (const int64_t needed = size_of_shape(tensor); needed != count) {
    fail_tensor(tensor, " has ", count, " values, but its shape needs ", needed);
  }
  if (part.part == TensorPart::kDense ||
      (part.part == TensorPart::kValues && input.info().spec.layout == Layout::kRagged)) {
    input.dims.assign(tensor.shape.begin(), tensor.shape.end());
    return;
  }
  const bool fits = std::ranges::equal(part.shape, tensor.shape, [](int64_t needed, int64_t dim) {
    return needed < 0 || needed == dim;
  });
  if (!fits) {
    fail_tensor(tensor, " must have ", part.shape.size(),
                " dimensions, as the metadata say, and one shape with its other tensors");
  }
}

void TensorCollector::finish() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (used_[i]) continue;
    throw ServeError(Code::kInvalidArgument, "input '", parts_[i].name, "' is missing");
  }
  for (InputValues& input : inputs_) {
    try {
      input.finish();
    } catch (const ValueFault& fault) {
      throw ServeError(Code::kInvalidArgument, "input '", input.info().name, "' ", fault.what());
    }
    check_rows(input.rows(), limits_);
  }
}

}  // namespace keel::serving
