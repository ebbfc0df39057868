#include <keel/framework/tensor.h>

#include <atomic>
#include <concepts>
#include <cstring>
#include <limits>
#include <new>
#include <ostream>
#include <string>

#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/base/parallel.h>

namespace keel {
namespace {

// Returns the bytes of `count` elements. Throws std::bad_alloc if their number overflows.
size_t bytes_of(size_t count, DType dtype) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_of(dtype), &bytes)) throw std::bad_alloc();
  return bytes;
}

// The elements of one tensor, or of several tensors that share them.
class Buffer {
 public:
  Buffer(size_t count, DType dtype)
      : count_(count), dtype_(dtype), bytes_(bytes_of(count, dtype)), data_(allocate(bytes_)) {
    if (dtype == DType::kString) {
      std::uninitialized_value_construct_n(static_cast<std::string*>(data_), count);
    }
  }
  // Elements in memory that `owner` keeps alive. They are never written.
  Buffer(const void* data, size_t count, DType dtype, std::shared_ptr<const void> owner)
      : count_(count),
        dtype_(dtype),
        bytes_(bytes_of(count, dtype)),
        data_(const_cast<void*>(data)),
        owner_(std::move(owner)) {}
  ~Buffer() {
    if (owner_ != nullptr) return;
    if (dtype_ == DType::kString) std::destroy_n(static_cast<std::string*>(data_), count_);
    deallocate(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool writable() const { return owner_ == nullptr; }
  Device device() const { return device_; }

 private:
  const Device device_ = current_device();
  const size_t count_;
  const DType dtype_;
  const size_t bytes_;
  void* const data_;
  const std::shared_ptr<const void> owner_;  // null if the buffer has allocated data_
};

// Returns a new id. Each thread reserves 4096 ids at a time, so that threads do not contend for a
// shared counter with every tensor.
uint64_t next_id() {
  constexpr uint64_t kRun = 4096;
  static std::atomic<uint64_t> runs = 1;
  thread_local uint64_t next = 0;
  if (next % kRun == 0) next = runs.fetch_add(1, std::memory_order_relaxed) * kRun;
  return next++;
}

}  // namespace

struct Tensor::Impl {
  Impl(const TensorSpec& s, std::shared_ptr<Buffer> b) : spec(s), buffer(std::move(b)) {}

  TensorSpec spec;
  std::shared_ptr<Buffer> buffer;  // null if symbolic
  // The position of the first row and the distance between rows of a view; row_bytes is negative
  // for other tensors.
  int64_t first_byte = 0, row_bytes = -1;
  uint64_t id = next_id();
  std::shared_ptr<const GraphNode> producer = nullptr;
  int output = 0;
};

Tensor::~Tensor() = default;
Tensor::Tensor(const Tensor& other) = default;
Tensor& Tensor::operator=(const Tensor& other) = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;

Tensor Tensor::uninitialized(const Shape& shape, DType dtype) {
  auto buffer = std::make_shared<Buffer>(static_cast<size_t>(shape.size()), dtype);
  return Tensor(
      std::make_shared<Impl>(TensorSpec{.shape = shape, .dtype = dtype}, std::move(buffer)));
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor out = uninitialized(shape, dtype);
  if (dtype != DType::kString)
    std::memset(out.impl_->buffer->data(), 0, out.impl_->buffer->bytes());
  return out;
}

Tensor Tensor::from_blob(const void* data, const Shape& shape, DType dtype,
                         std::shared_ptr<const void> owner) {
  if (dtype == DType::kString) {
    throw TypeError("Tensor.from_blob: strings have no raw bytes; use Tensor::from");
  }
  if (data == nullptr || owner == nullptr ||
      reinterpret_cast<uintptr_t>(data) % size_of(dtype) != 0) {
    throw ValueError("Tensor.from_blob: requires an owner and the address of ", dtype,
                     " elements, aligned to ", size_of(dtype), " bytes");
  }
  auto buffer =
      std::make_shared<Buffer>(data, static_cast<size_t>(shape.size()), dtype, std::move(owner));
  return Tensor(
      std::make_shared<Impl>(TensorSpec{.shape = shape, .dtype = dtype}, std::move(buffer)));
}

Tensor Tensor::symbolic(TensorSpec spec, std::shared_ptr<const GraphNode> producer, int output) {
  auto impl = std::make_shared<Impl>(spec, nullptr);
  impl->producer = std::move(producer);
  impl->output = output;
  return Tensor(std::move(impl));
}

bool Tensor::is_symbolic() const { return impl_ != nullptr && impl_->buffer == nullptr; }

const TensorSpec& Tensor::spec() const {
  if (impl_ == nullptr)
    throw RuntimeError("Tensor: the handle is empty; assign a tensor to it first");
  return impl_->spec;
}

int64_t Tensor::row_bytes() const { return impl_->row_bytes; }

const void* Tensor::first_element(DType expected) const {
  if (dtype() != expected) {
    throw TypeError("Tensor.data: requested ", expected, ", but the tensor is ", dtype());
  }
  if (is_symbolic()) {
    throw RuntimeError("Tensor.data: a symbolic tensor has no values; call the model on data");
  }
  return static_cast<const std::byte*>(impl_->buffer->data()) + impl_->first_byte;
}

const void* Tensor::elements(DType expected) const {
  const void* first = first_element(expected);
  if (is_view()) {
    throw RuntimeError("Tensor.data: the rows of this view, ", dtype(), shape(),
                       ", are not contiguous; call contiguous(), or read() for a variable");
  }
  return first;
}

void* Tensor::mutable_elements(DType expected) {
  const void* data = elements(expected);
  if (!unique())
    throw RuntimeError(
        "Tensor.mutable_data: the buffer is shared with other tensors; call clone() and modify the "
        "copy");
  return const_cast<void*>(data);
}

bool Tensor::unique() const {
  return impl_.use_count() == 1 && owners() == 1 && !is_view() && impl_->buffer->writable();
}

bool Tensor::held_once() const { return impl_.use_count() == 1; }

int Tensor::owners() const {
  spec();
  return static_cast<int>(impl_->buffer.use_count());
}

std::span<const std::byte> Tensor::raw() const {
  if (dtype() == DType::kString) {
    throw TypeError("Tensor.raw: strings have no raw bytes; use data<std::string>()");
  }
  return {static_cast<const std::byte*>(elements(dtype())), impl_->buffer->bytes()};
}

std::span<std::byte> Tensor::mutable_raw() {
  if (dtype() == DType::kString) {
    throw TypeError("Tensor.raw: strings have no raw bytes; use data<std::string>()");
  }
  return {static_cast<std::byte*>(mutable_elements(dtype())), impl_->buffer->bytes()};
}

Tensor Tensor::reshaped(const Shape& shape) const {
  elements(dtype());
  if (shape.size() != size()) {
    throw ValueError("Tensor.reshaped: cannot reshape ", this->shape(), " to ", shape,
                     "; the sizes must be equal");
  }
  return Tensor(
      std::make_shared<Impl>(TensorSpec{.shape = shape, .dtype = dtype()}, impl_->buffer));
}

Tensor Tensor::aliased() const {
  if (is_symbolic()) return symbolic(spec(), producer(), producer_output());
  if (is_view()) return view(shape(), impl_->first_byte, impl_->row_bytes);
  return reshaped(shape());
}

Tensor Tensor::view(const Shape& shape, int64_t first_byte, int64_t row_bytes) const {
  auto impl = std::make_shared<Impl>(TensorSpec{.shape = shape, .dtype = dtype()}, impl_->buffer);
  impl->first_byte = first_byte;
  impl->row_bytes = row_bytes;
  return Tensor(std::move(impl));
}

Tensor Tensor::columns(int64_t begin, const Shape& shape) const {
  raw();
  const auto row_size = [](const Shape& of) { return of.slice(1, of.rank()).size(); };
  if (rank() == 0 || shape.rank() == 0 || !shape.fully_defined() || shape[0] != dim(0) ||
      begin < 0 || begin + row_size(shape) > row_size(this->shape())) {
    throw ValueError("Tensor.columns: shape ", shape, " from element ", begin,
                     " of each row is out of bounds for ", this->shape(),
                     "; pass columns of the tensor");
  }
  const auto bytes = static_cast<int64_t>(size_of(dtype()));
  return view(shape, begin * bytes, row_size(this->shape()) * bytes);
}

Tensor Tensor::repeated(int64_t rows) const {
  raw();
  if (rows < 0) throw ValueError("Tensor.repeated: rows must not be negative, received ", rows);
  return view(Shape{rows} + shape(), 0, 0);
}

Tensor Tensor::with_mask(const Tensor& mask) const {
  if (mask && (mask.dtype() != DType::kBool || mask.rank() > rank() ||
               !compatible(mask.shape(), shape().slice(0, mask.rank())))) {
    throw ValueError("Tensor.with_mask: the mask must be bool with a shape that is a prefix of ",
                     shape(), ", received ", mask.dtype(), mask.shape());
  }
  Tensor out = *this;
  out.mask_ = mask ? std::make_shared<const Tensor>(mask) : nullptr;
  return out;
}

Tensor Tensor::clone() const {
  Tensor out = uninitialized(shape(), dtype());
  if (dtype() == DType::kString) {
    std::ranges::copy(data<std::string>(), out.mutable_data<std::string>().begin());
  } else if (is_view()) {
    const auto* from = static_cast<const std::byte*>(first_element(dtype()));
    std::byte* const to = out.mutable_raw().data();
    const int64_t rows = dim(0), step = row_bytes();
    const int64_t n = rows == 0 ? 0 : std::ssize(out.raw()) / rows;
    constexpr int64_t kBytesAtOnce = 1 << 16;
    parallel_for(rows, kBytesAtOnce / std::max<int64_t>(1, n) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) std::copy_n(from + r * step, n, to + r * n);
    });
  } else {
    std::ranges::copy(raw(), out.mutable_raw().begin());
  }
  return out;
}

Tensor Tensor::contiguous() const {
  if (!is_view()) return *this;
  Tensor out = clone();
  out.impl_->id = impl_->id;
  return out;
}

namespace {

// Converts one element. Fractions are truncated. A value that the integer type cannot hold becomes
// the nearest one that it can, and NaN becomes 0: C++ leaves these cases undefined, and XLA defines
// them this way.
template <class To, class From>
To converted(From x) {
  if constexpr (std::floating_point<From> && std::integral<To> && !std::same_as<To, bool>) {
    // The largest integer may not be representable as a From, but the power of two above it is.
    constexpr From kAbove =
        From{2} * static_cast<From>(To{1} << (std::numeric_limits<To>::digits - 1));
    if (x != x) return To{0};
    if (x >= kAbove) return std::numeric_limits<To>::max();
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
  }
  return static_cast<To>(x);
}

}  // namespace

Tensor Tensor::cast(DType dtype) const {
  const DType from = this->dtype();
  if (dtype == from) return *this;
  if (is_view()) return clone().cast(dtype);
  if (dtype == DType::kString || from == DType::kString) {
    throw TypeError("Tensor.cast: cannot convert ", from, " to ", dtype,
                    "; strings cannot be cast");
  }
  Tensor out = uninitialized(shape(), dtype);
  visit_any(from, [&]<class From>(const From&) {
    visit_any(dtype, [&]<class To>(const To&) {
      if constexpr (!std::same_as<From, std::string> && !std::same_as<To, std::string>) {
        std::ranges::transform(data<From>(), out.mutable_data<To>().begin(),
                               [](From x) { return converted<To>(x); });
      }
    });
  });
  return out;
}

Device Tensor::device() const {
  spec();
  return impl_->buffer == nullptr ? Device{} : impl_->buffer->device();
}

uint64_t Tensor::id() const {
  spec();
  return impl_->id;
}

const std::shared_ptr<const GraphNode>& Tensor::producer() const {
  spec();
  return impl_->producer;
}

int Tensor::producer_output() const {
  spec();
  return impl_->output;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor) return out << "Tensor()";
  out << "Tensor(shape=" << tensor.shape() << ", dtype=" << tensor.dtype();
  if (tensor.is_symbolic()) return out << ", symbolic)";
  if (tensor.is_view()) return out << ", view)";
  out << ", [";
  visit_any(tensor.dtype(), [&]<class T>(const T&) {
    constexpr size_t kShown = 16;
    const auto values = tensor.data<T>();
    for (size_t i = 0; i < std::min(values.size(), kShown); ++i) {
      if (i > 0) out << ", ";
      if constexpr (std::same_as<T, uint8_t> || std::same_as<T, int8_t>) {
        out << static_cast<int>(values[i]);
      } else {
        out << values[i];
      }
    }
    if (values.size() > kShown) out << ", ...";
  });
  return out << "])";
}

template <Element T>
Tensor Tensor::full(const Shape& shape, const T& value) {
  Tensor out = uninitialized(shape, DTypeOf<T>::kValue);
  std::ranges::fill(out.mutable_data<T>(), value);
  return out;
}
template <Element T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  if (static_cast<int64_t>(values.size()) != shape.size()) {
    throw ValueError("Tensor.from: values must fill shape ", shape, ", received ", values.size());
  }
  Tensor out = uninitialized(shape, DTypeOf<T>::kValue);
  std::ranges::copy(values, out.mutable_data<T>().begin());
  return out;
}
template <Element T>
Tensor Tensor::from(std::initializer_list<T> values, const Shape& shape) {
  return from(std::span<const T>(values.begin(), values.size()), shape);
}
template <Element T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape) {
  if constexpr (std::same_as<T, bool>) {  // vector<bool> does not convert to a span
    return from(std::vector<uint8_t>(values.begin(), values.end()), shape).cast(DType::kBool);
  } else {
    return from(std::span<const T>(values), shape);
  }
}
template <Element T>
T Tensor::item() const {
  if (size() != 1) throw ValueError("Tensor.item: size must be 1, received shape ", shape());
  return data<T>()[0];
}
template <Element T>
std::vector<T> Tensor::to_vector() const {
  const auto values = data<T>();
  return {values.begin(), values.end()};
}

#define KEEL_INSTANTIATE(T)                                                          \
  template Tensor Tensor::full(const Shape& shape, const T& value);                  \
  template Tensor Tensor::from(std::span<const T> values, const Shape& shape);       \
  template Tensor Tensor::from(std::initializer_list<T> values, const Shape& shape); \
  template Tensor Tensor::from(const std::vector<T>& values, const Shape& shape);    \
  template T Tensor::item() const;                                                   \
  template std::vector<T> Tensor::to_vector() const;
KEEL_INSTANTIATE(float)
KEEL_INSTANTIATE(double)
KEEL_INSTANTIATE(int32_t)
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(bool)
KEEL_INSTANTIATE(uint8_t)
KEEL_INSTANTIATE(int8_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel
