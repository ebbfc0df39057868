#include <keel/framework/data/csv/internal/csv_column.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include <keel/framework/data/csv/internal/csv_number.h>
#include <keel/framework/data/csv/internal/utf8.h>

namespace keel::data {
namespace {

// Calls fn(T{}) with the type of a dtype that a column can have.
template <class Fn>
auto visit_column(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    case DType::kInt32:
      return fn(int32_t{});
    case DType::kInt64:
      return fn(int64_t{});
    default:
      return fn(std::string{});
  }
}

template <class T>
bool holds(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<T>::max();
  } else {
    // The limits as doubles: min() is exact, and max() + 1 = -min() is a power of two.
    return value == std::trunc(value) &&
           value >= static_cast<double>(std::numeric_limits<T>::min()) &&
           value < -static_cast<double>(std::numeric_limits<T>::min());
  }
}

void check(const CsvColumn& column, const std::string& caller) {
  const bool is_text = column.dtype == DType::kString;
  if (!is_text && size_of(column.dtype) == 1) {
    throw TypeError(caller, ": column '", column.name,
                    "': dtype must be float32, float64, int32, int64 or string, received ",
                    column.dtype);
  }
  if (!column.default_value) return;
  if (is_text) {
    throw ValueError(caller, ": string column '", column.name,
                     "' does not support a default value; leave default_value unset");
  }
  visit_column(column.dtype, [&]<class T>(const T&) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (holds<T>(*column.default_value)) return;
      throw ValueError(caller, ": column '", column.name,
                       "': the default value must be representable as ", column.dtype,
                       ", received ", *column.default_value);
    }
  });
}

// Sets `out`, which must be empty, to the `size` bytes at p. May read 15 bytes even if `size` is
// smaller.
void assign_text(const char* p, uint32_t size, std::string& out) {
  constexpr uint32_t kInside = 15;  // capacity of the inline buffer of libstdc++'s string
  if (size > kInside) {
    out.assign(p, size);
    return;
  }
  // A copy of fixed length costs a third of a copy of variable length.
  std::destroy_at(&out);
  std::construct_at(&out, p, kInside)->resize(size);
}

}  // namespace

CsvColumnReader::CsvColumnReader(const CsvColumn& column, size_t field, const std::string& caller)
    : column_(column), field_(field) {
  check(column, caller);
}

void CsvColumnReader::reserve(int64_t rows) {
  if (rows <= room_) return;
  Tensor larger = Tensor::uninitialized({rows}, column_.dtype);
  visit_column(column_.dtype, [&]<class T>(const T&) {
    T* const out = larger.mutable_data<T>().data();
    if (elements_ != nullptr)
      std::move(static_cast<T*>(elements_), static_cast<T*>(elements_) + room_, out);
    elements_ = out;
  });
  values_ = std::move(larger);
  room_ = rows;
}

template <class T>
bool CsvColumnReader::read_number(std::string_view text, T& out) const {
  if (const std::optional<T> value = parse_csv_number<T>(text)) {
    out = *value;
  } else if (column_.default_value && trimmed(text).empty()) {
    out = static_cast<T>(*column_.default_value);
  } else {
    return false;
  }
  return true;
}

template <class T>
int64_t CsvColumnReader::read_numbers(const CsvSplitter& split, int64_t records, T* out) const {
  const uint32_t* begins = split.begins() + field_;
  const uint32_t* ends = split.ends() + field_;
  const char* const base = split.base();
  const size_t stride = split.stride();
  const bool has_missing = column_.default_value.has_value();
  const T missing = has_missing ? static_cast<T>(*column_.default_value) : T{};
  for (int64_t r = 0; r < records; ++r, begins += stride, ends += stride) {
    const uint32_t size = *ends - *begins;
    T value = {};
    const bool plain = parse_plain(base + *begins, size, value);
    out[r] = size == 0 ? missing : value;
    const bool done = size == 0 ? has_missing : plain;
    if (!done && !read_number(split.field(r, field_).text(), out[r])) return r;
  }
  return records;
}

int64_t CsvColumnReader::read_texts(const CsvSplitter& split, int64_t records,
                                    std::string* out) const {
  const uint32_t* begins = split.begins() + field_;
  const uint32_t* ends = split.ends() + field_;
  const char* const base = split.base();
  const size_t stride = split.stride();
  for (int64_t r = 0; r < records; ++r, begins += stride, ends += stride) {
    const uint32_t size = (*ends & ~CsvSplitter::kDoubled) - *begins;
    static_assert(kCsvPadding >= kUtf8Padding);
    if (!is_padded_ascii(base + *begins, size) && utf8_prefix({base + *begins, size}) < size) {
      return r;
    }
    if ((*ends & CsvSplitter::kDoubled) == 0) {
      assign_text(base + *begins, size, out[r]);
    } else {
      out[r] = split.field(r, field_).unescaped();
    }
  }
  return records;
}

int64_t CsvColumnReader::read(const CsvSplitter& split, int64_t records, int64_t row) const {
  return visit_column(column_.dtype, [&]<class T>(const T&) {
    T* const out = static_cast<T*>(elements_) + row;
    if constexpr (std::is_arithmetic_v<T>) {
      return read_numbers(split, records, out);
    } else {
      return read_texts(split, records, out);
    }
  });
}

void CsvColumnReader::fail(const std::string& place, const CsvSplitter& split,
                           int64_t record) const {
  constexpr size_t kShown = 40;
  std::string text = split.field(record, field_).unescaped();
  if (column_.dtype == DType::kString) {
    const size_t valid = utf8_prefix(text);
    // All bytes before `valid` are valid UTF-8, so only the first character shown can be
    // incomplete.
    size_t from = valid - std::min(valid, kShown);
    while (from < valid && (text[from] & 0xC0) == 0x80) ++from;
    throw ValueError(place, ", column '", column_.name, "': must be UTF-8, received byte ",
                     static_cast<int>(static_cast<unsigned char>(text[valid])), " after '",
                     std::string_view(text).substr(from, valid - from),
                     "'; convert the file, for example with iconv -f latin1 -t utf-8");
  }
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  throw ValueError(place, ", column '", column_.name, "': must be ",
                   is_floating(column_.dtype) ? "a finite " : "an ", column_.dtype, ", received '",
                   text, "'");
}

Tensor CsvColumnReader::finish(int64_t rows) {
  Tensor out = std::move(values_);
  values_ = {};
  if (rows != room_ || !out) {
    Tensor exact = Tensor::uninitialized({rows}, column_.dtype);
    visit_column(column_.dtype, [&]<class T>(const T&) {
      T* const from = static_cast<T*>(elements_);
      std::move(from, from + rows, exact.mutable_data<T>().begin());
    });
    out = std::move(exact);
  }
  elements_ = nullptr;
  room_ = 0;
  return out;
}

}  // namespace keel::data
