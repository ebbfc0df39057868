#include <keel/savedmodel/internal/c_tensors.h>

#include <absl/strings/str_cat.h>
#include <cstdint>
#include <cstring>
#include <span>

namespace keel::c_tensors {
namespace {

static_assert(KEEL_MAX_RANK == Shape::kMaxRank);
static_assert(KEEL_INT8 == static_cast<int>(DType::kInt8));
static_assert(KEEL_STRING == static_cast<int>(DType::kString));
static_assert(KEEL_UINT8 == static_cast<int>(DType::kUint8));
static_assert(KEEL_BOOL == static_cast<int>(DType::kBool));
static_assert(KEEL_INT64 == static_cast<int>(DType::kInt64));
static_assert(KEEL_INT32 == static_cast<int>(DType::kInt32));
static_assert(KEEL_FLOAT64 == static_cast<int>(DType::kFloat64));
static_assert(KEEL_FLOAT32 == static_cast<int>(DType::kFloat32));
static_assert(KEEL_DENSE == static_cast<int>(Layout::kDense));
static_assert(KEEL_RAGGED == static_cast<int>(Layout::kRagged));
static_assert(KEEL_SPARSE == static_cast<int>(Layout::kSparse));

// Returns the number of elements of an untrusted shape. Throws ValueError if it is invalid.
int64_t checked_size(const std::string& caller, const keel_tensor& given) {
  if (given.rank < 0 || given.rank > KEEL_MAX_RANK) {
    throw ValueError(caller, ": rank must be 0 to ", KEEL_MAX_RANK, ", received ", given.rank);
  }
  if (given.rank > 0) deref(given.dims, caller.c_str(), "dims");
  int64_t size = 1;
  for (int i = 0; i < given.rank; ++i) {
    if (given.dims[i] < 0)
      throw ValueError(caller, ": dims[", i, "] must not be negative, received ", given.dims[i]);
    if (__builtin_mul_overflow(size, given.dims[i], &size)) {
      throw ValueError(caller,
                       ": the number of elements of dims overflows 64 bits; pass smaller dims");
    }
  }
  return size;
}

Shape shape_of(const keel_tensor& given) {
  return given.rank == 0 ? Shape() : Shape(std::span(given.dims, static_cast<size_t>(given.rank)));
}

// Copies `count` numbers to a tensor of `shape`, which must have as many elements.
Tensor numbers(const std::string& caller, const int64_t* data, size_t count, const Shape& shape) {
  Tensor out = Tensor::uninitialized(shape, DType::kInt64);
  if (count > 0) {
    std::memcpy(out.mutable_raw().data(),
                &deref(data, caller.c_str(), "the pointer to int64 values"), count * sizeof *data);
  }
  return out;
}

void check_kind(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  constexpr const char* kLayouts[] = {"dense", "ragged", "sparse"};
  if (given.dtype < KEEL_FLOAT32 || given.dtype > KEEL_INT8) {
    throw TypeError(caller, ": unknown dtype ", given.dtype, "; use a value of keel_dtype");
  }
  if (given.dtype != static_cast<int>(spec.dtype)) {
    throw TypeError(caller, ": dtype must be ", spec.dtype, ", received ",
                    static_cast<DType>(given.dtype));
  }
  if (given.layout < KEEL_DENSE || given.layout > KEEL_SPARSE) {
    throw TypeError(caller, ": unknown layout ", given.layout, "; use a value of keel_layout");
  }
  if (given.layout != static_cast<int>(spec.layout)) {
    throw TypeError(caller, ": requires a ", kLayouts[static_cast<int>(spec.layout)],
                    " tensor, received a ", kLayouts[given.layout], " one");
  }
  if (given.layout != KEEL_RAGGED && (given.row_splits != nullptr || given.row_splits_count > 0)) {
    throw ValueError(
        caller,
        ": only ragged tensors have row_splits; set row_splits to NULL and row_splits_count to 0");
  }
  if (given.layout != KEEL_SPARSE && (given.indices != nullptr || given.indices_count > 0)) {
    throw ValueError(
        caller, ": only sparse tensors have indices; set indices to NULL and indices_count to 0");
  }
}

void check_shape(const std::string& caller, const Shape& needed, const Shape& given) {
  if (!compatible(needed, given)) {
    throw ValueError(caller, ": shape must be ", needed, ", received ", given);
  }
}

void check_count(const std::string& caller, size_t count) {
  if (count > PTRDIFF_MAX / sizeof(int64_t)) {
    throw ValueError(caller, ": the count exceeds the address space, received ", count,
                     "; pass the number of elements");
  }
}

// Makes a ragged tensor with values [n, ...] for a spec of shape [batch, ?, ...].
TensorLike ragged(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  check_count(absl::StrCat(caller, ", row_splits"), given.row_splits_count);
  const int64_t count = checked_size(caller, given);
  const Shape shape = shape_of(given);
  check_shape(absl::StrCat(caller, ", values"), spec.shape.without(1).with(0, kUnknown), shape);
  if (given.row_splits_count == 0) {
    throw ValueError(
        caller, ": a ragged tensor requires row_splits with one more element than it has rows");
  }
  const auto splits = static_cast<int64_t>(given.row_splits_count);
  RaggedTensor out{copied(caller, spec.dtype, given.data, given.data_size, count, shape),
                   numbers(absl::StrCat(caller, ", row_splits"), given.row_splits,
                           given.row_splits_count, {splits})};
  out.validate(caller);
  return out;
}

TensorLike sparse(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  check_count(absl::StrCat(caller, ", indices"), given.indices_count);
  checked_size(caller, given);
  const Shape shape = shape_of(given);
  check_shape(caller, spec.shape, shape);
  const int64_t rank = shape.rank();
  if (rank == 0 || given.indices_count % static_cast<size_t>(rank) != 0) {
    throw ValueError(caller, ": indices_count must be a multiple of the rank, ", rank,
                     ", received ", given.indices_count);
  }
  const int64_t count = static_cast<int64_t>(given.indices_count) / rank;
  SparseTensor out{
      numbers(absl::StrCat(caller, ", indices"), given.indices, given.indices_count, {count, rank}),
      copied(caller, spec.dtype, given.data, given.data_size, count, {count}), shape};
  out.validate(caller);
  return out;
}

TensorLike dense(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  const int64_t count = checked_size(caller, given);
  const Shape shape = shape_of(given);
  check_shape(caller, spec.shape, shape);
  return copied(caller, spec.dtype, given.data, given.data_size, count, shape);
}

}  // namespace

Tensor copied(const std::string& caller, DType dtype, const void* data, size_t bytes, int64_t count,
              const Shape& shape) {
  const size_t element = dtype == DType::kString ? sizeof(keel_string) : size_of(dtype);
  size_t needed = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), element, &needed) || needed != bytes) {
    throw ValueError(caller, ": ", shape, " of ", dtype, " requires ", count, " values of ",
                     element, " bytes, received ", bytes, " bytes");
  }
  if (bytes > 0) deref(static_cast<const char*>(data), caller.c_str(), "data");
  Tensor out = Tensor::uninitialized(shape, dtype);
  const char* from = static_cast<const char*>(data);
  if (dtype == DType::kString) {
    for (std::string& text : out.mutable_data<std::string>()) {
      keel_string given;
      std::memcpy(&given, from, sizeof given);
      from += sizeof given;
      if (given.size > 0) {
        text.assign(&deref(given.data, caller.c_str(), "the data of a string"), given.size);
      }
    }
  } else if (dtype == DType::kBool) {
    for (bool& value : out.mutable_data<bool>()) value = *from++ != 0;
  } else if (bytes > 0) {
    std::memcpy(out.mutable_raw().data(), data, bytes);
  }
  return out;
}

TensorLike tensor_of(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  check_kind(caller, given, spec);
  switch (spec.layout) {
    case Layout::kRagged:
      return ragged(caller, given, spec);
    case Layout::kSparse:
      return sparse(caller, given, spec);
    case Layout::kDense:
      break;
  }
  return dense(caller, given, spec);
}

keel_tensor view_of(const NamedTensor& named) {
  const TensorLike& value = named.value;
  const Tensor& values = value.values();
  const Shape& shape =
      value.layout() == Layout::kSparse ? value.sparse().dense_shape : values.shape();
  keel_tensor out = {};
  out.name = named.name.c_str();
  out.dtype = static_cast<int>(values.dtype());
  out.layout = static_cast<int>(value.layout());
  out.rank = shape.rank();
  out.dims = shape.dims().data();
  if (values.dtype() == DType::kString) {
    out.data = named.strings.data();
    out.data_size = named.strings.size() * sizeof(keel_string);
  } else {
    out.data = values.raw().data();
    out.data_size = values.raw().size();
  }
  if (value.layout() == Layout::kRagged) {
    const auto splits = value.ragged().row_splits.data<int64_t>();
    out.row_splits = splits.data();
    out.row_splits_count = splits.size();
  } else if (value.layout() == Layout::kSparse) {
    const auto indices = value.sparse().indices.data<int64_t>();
    out.indices = indices.data();
    out.indices_count = indices.size();
  }
  return out;
}

}  // namespace keel::c_tensors
