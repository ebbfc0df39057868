#include <keel/savedmodel/serving/models/batch_rows.h>

#include <algorithm>

namespace keel::serving {
namespace {

// Appends values [begin, end) of a view, each of `width` elements.
void append_values(const TensorView& from, int64_t begin, int64_t end, int64_t width,
                   InputValues& to) {
  if (from.dtype == DType::kString) {
    const auto* const strings = static_cast<const std::string*>(from.data);
    for (int64_t i = begin * width; i < end * width; ++i) to.add_string() = strings[i];
    return;
  }
  const auto size = static_cast<int64_t>(size_of(from.dtype)) * width;
  to.numbers.append(static_cast<const std::byte*>(from.data) + begin * size,
                    static_cast<size_t>((end - begin) * size));
}

// Adds `rows` to the first dimension of `dims`, whose others are those of `shape`.
template <class Dims>
void add_rows(const Shape& shape, int64_t rows, Dims& dims) {
  if (dims.empty()) {
    dims.assign(shape.dims().begin(), shape.dims().end());
    dims[0] = 0;
  }
  dims[0] += rows;
}

void append_ragged(const TensorView& from, int64_t begin, int64_t end, InputValues& to) {
  if (to.splits.empty()) to.splits.push_back(0);
  const int64_t first = from.row_splits[begin], last = from.row_splits[end];
  const int64_t offset = to.splits.back() - first;
  for (int64_t row = begin; row < end; ++row) {
    to.splits.push_back(from.row_splits[row + 1] + offset);
  }
  append_values(from, first, last, from.shape.without(0).size(), to);
  add_rows(from.shape, last - first, to.dims);
}

void append_sparse(const TensorView& from, int64_t begin, int64_t end, InputValues& to) {
  const auto rank = static_cast<size_t>(from.shape.rank());
  const int64_t rows_before = to.sparse_shape.empty() ? 0 : to.sparse_shape[0];
  int64_t first = 0;
  while (first < from.values && from.indices[static_cast<size_t>(first) * rank] < begin) ++first;
  int64_t last = first;
  for (; last < from.values; ++last) {
    const int64_t* const index = from.indices + static_cast<size_t>(last) * rank;
    if (index[0] >= end) break;
    to.indices.push_back(index[0] - begin + rows_before);
    to.indices.insert(to.indices.end(), index + 1, index + rank);
  }
  append_values(from, first, last, 1, to);
  add_rows(from.shape, end - begin, to.sparse_shape);
}

}  // namespace

bool joins(std::span<const InputValues> a, std::span<const InputValues> b) {
  return std::ranges::equal(a, b, [](const InputValues& x, const InputValues& y) {
    const std::span<const int64_t> left = x.view().shape.dims(), right = y.view().shape.dims();
    return left.size() == right.size() &&
           std::equal(left.begin() + 1, left.end(), right.begin() + 1);
  });
}

void append_rows(const TensorView& from, int64_t begin, int64_t end, InputValues& to) {
  switch (from.layout) {
    case Layout::kDense:
      append_values(from, begin, end, from.shape.without(0).size(), to);
      return add_rows(from.shape, end - begin, to.dims);
    case Layout::kRagged:
      return append_ragged(from, begin, end, to);
    case Layout::kSparse:
      return append_sparse(from, begin, end, to);
  }
}

void allocate_rows(const ServedSignature& signature, int64_t rows, RunOutputs& to) {
  int64_t total = 0;
  for (const TensorInfo& output : signature.outputs) {
    total += output.spec.shape.with(0, rows).size();
  }
  to.tensors.clear();
  to.outputs.clear();
  to.floats.resize(static_cast<size_t>(total));
  const float* at = to.floats.data();
  for (const TensorInfo& output : signature.outputs) {
    const Shape shape = output.spec.shape.with(0, rows);
    to.outputs.push_back(
        {.info = &output,
         .view = {.shape = shape, .data = at, .values = shape.size(), .rows = rows}});
    at += shape.size();
  }
}

void copy_rows(const RunOutputs& from, int64_t begin, int64_t rows, RunOutputs& to, int64_t at) {
  float* start = to.floats.data();
  for (size_t i = 0; i < to.outputs.size(); ++i) {
    const TensorView& view = to.outputs[i].view;
    const int64_t width = view.shape.without(0).size();
    const auto* const values = static_cast<const float*>(from.outputs[i].view.data);
    std::copy_n(values + begin * width, rows * width, start + at * width);
    start += view.values;
  }
}

void JoinMemory::reset(const ServedSignature& signature) {
  const size_t count = signature.inputs.size();
  if (inputs.size() < count) inputs.resize(count);
  for (size_t i = 0; i < count; ++i) inputs[i].reset(signature.inputs[i]);
}

void JoinMemory::shrink() {
  constexpr size_t kMostKeptFloats = 1 << 18;
  for (InputValues& input : inputs) input.shrink();
  outputs.tensors.clear();
  if (outputs.floats.capacity() > kMostKeptFloats) outputs.floats = {};
}

}  // namespace keel::serving
