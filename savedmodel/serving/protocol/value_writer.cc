#include <keel/savedmodel/serving/protocol/value_writer.h>

#include <algorithm>
#include <ranges>

#include <keel/framework/base/dtype.h>
#include <keel/savedmodel/serving/base/base64.h>
#include <keel/savedmodel/serving/base/json_text.h>
#include <keel/savedmodel/serving/base/serve_error.h>
#include <keel/savedmodel/serving/base/utf8.h>

namespace keel::serving {
namespace {

void append_string(std::string& out, const std::string& text, bool is_bytes, bool base64) {
  if (base64 && (is_bytes || !is_utf8(text))) {
    out += "{\"b64\": \"";
    append_base64(out, text);
    out += "\"}";
    return;
  }
  if (!base64 && !is_utf8(text)) {
    throw ValueFault("has strings that are not UTF-8; request binary data with the parameter ",
                     "binary_data");
  }
  append_json_string(out, text);
}

template <class T>
void append_numbers(std::string& out, const void* data, int64_t begin, int64_t end) {
  const T* const values = static_cast<const T*>(data);
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) out += ", ";
    append_json_number(out, values[i]);
  }
}

bool is_bytes(const RunOutputs::Output& output) { return output.info->name.ends_with("_bytes"); }

// Appends nested lists of the dimensions [axis, rank), whose first element is `at`.
void append_nested(std::string& out, const RunOutputs::Output& output,
                   std::span<const int64_t> dims, int64_t at) {
  if (dims.empty()) return append_elements(out, output.view, at, at + 1, is_bytes(output), true);
  out.push_back('[');
  if (dims.size() == 1) {
    append_elements(out, output.view, at, at + dims[0], is_bytes(output), true);
  } else {
    int64_t step = 1;
    for (int64_t dim : dims.subspan(1)) step *= dim;
    for (int64_t i = 0; i < dims[0]; ++i) {
      if (i > 0) out += ", ";
      append_nested(out, output, dims.subspan(1), at + i * step);
    }
  }
  out.push_back(']');
}

int64_t size_of_row(std::span<const int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims.subspan(1)) size *= dim;
  return size;
}

void append_integers(std::string& out, const int64_t* values, int64_t count) {
  out.push_back('[');
  append_numbers<int64_t>(out, values, 0, count);
  out.push_back(']');
}

}  // namespace

void append_elements(std::string& out, const TensorView& view, int64_t begin, int64_t end,
                     bool is_bytes, bool base64) {
  switch (view.dtype) {
    case DType::kFloat32:
      return append_numbers<float>(out, view.data, begin, end);
    case DType::kFloat64:
      return append_numbers<double>(out, view.data, begin, end);
    case DType::kInt32:
      return append_numbers<int32_t>(out, view.data, begin, end);
    case DType::kInt64:
      return append_numbers<int64_t>(out, view.data, begin, end);
    case DType::kUint8:
      return append_numbers<uint8_t>(out, view.data, begin, end);
    case DType::kInt8:
      return append_numbers<int8_t>(out, view.data, begin, end);
    case DType::kBool:
      for (int64_t i = begin; i < end; ++i) {
        if (i > begin) out += ", ";
        out += static_cast<const bool*>(view.data)[i] ? "true" : "false";
      }
      return;
    case DType::kString:
      for (int64_t i = begin; i < end; ++i) {
        if (i > begin) out += ", ";
        append_string(out, static_cast<const std::string*>(view.data)[i], is_bytes, base64);
      }
      return;
  }
}

void append_row(std::string& out, const RunOutputs::Output& output, int64_t row) {
  const TensorView& view = output.view;
  const std::span<const int64_t> dims = view.shape.dims();
  switch (view.layout) {
    case Layout::kDense:
      return append_nested(out, output, dims.subspan(1), row * size_of_row(dims));
    case Layout::kRagged: {
      const int64_t begin = view.row_splits[row], end = view.row_splits[row + 1];
      const int64_t step = size_of_row(dims);
      out.push_back('[');
      for (int64_t i = begin; i < end; ++i) {
        if (i > begin) out += ", ";
        append_nested(out, output, dims.subspan(1), i * step);
      }
      out.push_back(']');
      return;
    }
    case Layout::kSparse: {
      const auto rank = static_cast<int64_t>(dims.size());
      const auto places = std::views::iota(int64_t{0}, view.values);
      const auto row_of = [&](int64_t place) { return view.indices[place * rank]; };
      const int64_t begin = std::ranges::lower_bound(places, row, {}, row_of) - places.begin();
      int64_t end = begin;
      out += "{\"indices\": [";
      for (; end < view.values && view.indices[end * rank] == row; ++end) {
        if (end > begin) out += ", ";
        const int64_t* const index = view.indices + end * rank + 1;
        if (rank == 2) {
          append_json_number(out, *index);
        } else {
          append_integers(out, index, rank - 1);
        }
      }
      out += "], \"values\": [";
      append_elements(out, view, begin, end, is_bytes(output), true);
      out += "]}";
      return;
    }
  }
}

void append_column(std::string& out, const RunOutputs::Output& output) {
  const TensorView& view = output.view;
  const std::span<const int64_t> dims = view.shape.dims();
  switch (view.layout) {
    case Layout::kDense:
      return append_nested(out, output, dims, 0);
    case Layout::kRagged:
      out += "{\"values\": ";
      append_nested(out, output, dims, 0);
      out += ", \"row_splits\": ";
      append_integers(out, view.row_splits, view.rows + 1);
      out.push_back('}');
      return;
    case Layout::kSparse: {
      const auto rank = static_cast<int64_t>(dims.size());
      out += "{\"indices\": [";
      for (int64_t i = 0; i < view.values; ++i) {
        if (i > 0) out += ", ";
        append_integers(out, view.indices + i * rank, rank);
      }
      out += "], \"values\": [";
      append_elements(out, view, 0, view.values, is_bytes(output), true);
      out += "], \"dense_shape\": ";
      append_integers(out, dims.data(), rank);
      out.push_back('}');
      return;
    }
  }
}

}  // namespace keel::serving
