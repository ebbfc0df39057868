#include <keel/framework/tensor_like.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace keel {
namespace {

// Returns the number of elements of one row, the product of all dimensions but the first.
int64_t row_width(const Tensor& t) { return t.shape().without(0).size(); }

int64_t rows_of(const TensorLike& t) {
  const Shape shape = t.spec().shape;
  if (shape.rank() == 0) {
    throw ValueError("row_count: a scalar has no rows; pass a tensor of rank 1 or more");
  }
  return shape[0];
}

// Copies rows [begin, begin + count) of `from` to the rows of `to` that start at `at`.
void copy_rows(const Tensor& from, int64_t begin, int64_t count, Tensor& to, int64_t at) {
  const int64_t width = row_width(from);
  visit_any(from.dtype(), [&]<class T>(const T&) {
    std::copy_n(from.data<T>().data() + begin * width, count * width,
                to.mutable_data<T>().data() + at * width);
  });
}

Tensor slice_dense(const Tensor& t, int64_t begin, int64_t end) {
  Tensor out = Tensor::uninitialized(t.shape().with(0, end - begin), t.dtype());
  copy_rows(t, begin, end - begin, out, 0);
  return out;
}

Tensor take_dense(const Tensor& t, std::span<const int64_t> rows) {
  const int64_t width = row_width(t);
  Tensor out = Tensor::uninitialized(t.shape().with(0, std::ssize(rows)), t.dtype());
  visit_any(t.dtype(), [&]<class T>(const T&) {
    const T* from = t.data<T>().data();
    T* to = out.mutable_data<T>().data();
    if (width == 1) {
      for (const int64_t row : rows) *to++ = from[row];
    } else {
      for (const int64_t row : rows) to = std::copy_n(from + row * width, width, to);
    }
  });
  return out;
}

RaggedTensor slice_ragged(const RaggedTensor& t, int64_t begin, int64_t end) {
  const auto splits = t.row_splits.data<int64_t>();
  Tensor out = Tensor::uninitialized({end - begin + 1}, DType::kInt64);
  std::transform(splits.begin() + begin, splits.begin() + end + 1,
                 out.mutable_data<int64_t>().begin(),
                 [base = splits[begin]](int64_t split) { return split - base; });
  return {slice_dense(t.values, splits[begin], splits[end]), out};
}

RaggedTensor take_ragged(const RaggedTensor& t, std::span<const int64_t> rows) {
  const auto splits = t.row_splits.data<int64_t>();
  const int64_t width = row_width(t.values);
  Tensor out_splits = Tensor::uninitialized({std::ssize(rows) + 1}, DType::kInt64);
  int64_t total = 0;
  int64_t* split = out_splits.mutable_data<int64_t>().data();
  *split++ = 0;
  for (const int64_t row : rows) *split++ = total += splits[row + 1] - splits[row];
  Tensor values = Tensor::uninitialized(t.values.shape().with(0, total), t.values.dtype());
  visit_any(values.dtype(), [&]<class T>(const T&) {
    const T* from = t.values.data<T>().data();
    T* to = values.mutable_data<T>().data();
    for (const int64_t row : rows) {
      to = std::copy(from + splits[row] * width, from + splits[row + 1] * width, to);
    }
  });
  return {values, out_splits};
}

// Returns the first entry of a sparse tensor whose row is `row` or greater.
int64_t first_entry(const SparseTensor& t, int64_t row) {
  const int64_t* indices = t.indices.data<int64_t>().data();
  const int64_t rank = t.indices.dim(1);
  int64_t low = 0;
  int64_t high = t.indices.dim(0);
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (indices[middle * rank] < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Copies the entries [begin, end), with `shift` added to their rows, to entry `at` of the result.
void copy_entries(const SparseTensor& from, int64_t begin, int64_t end, int64_t shift,
                  SparseTensor& to, int64_t at) {
  const int64_t rank = from.indices.dim(1);
  copy_rows(from.indices, begin, end - begin, to.indices, at);
  copy_rows(from.values, begin, end - begin, to.values, at);
  int64_t* indices = to.indices.mutable_data<int64_t>().data();
  for (int64_t i = at; i < at + end - begin; ++i) indices[i * rank] += shift;
}

SparseTensor uninitialized_sparse(int64_t entries, const Shape& dense_shape, DType dtype) {
  return {Tensor::uninitialized({entries, dense_shape.rank()}, DType::kInt64),
          Tensor::uninitialized({entries}, dtype), dense_shape};
}

SparseTensor slice_sparse(const SparseTensor& t, int64_t begin, int64_t end) {
  const int64_t first = first_entry(t, begin);
  const int64_t last = first_entry(t, end);
  SparseTensor out =
      uninitialized_sparse(last - first, t.dense_shape.with(0, end - begin), t.values.dtype());
  copy_entries(t, first, last, -begin, out, 0);
  return out;
}

SparseTensor take_sparse(const SparseTensor& t, std::span<const int64_t> rows) {
  std::vector<std::pair<int64_t, int64_t>> entries;
  entries.reserve(rows.size());
  int64_t total = 0;
  for (const int64_t row : rows) {
    entries.emplace_back(first_entry(t, row), first_entry(t, row + 1));
    total += entries.back().second - entries.back().first;
  }
  SparseTensor out =
      uninitialized_sparse(total, t.dense_shape.with(0, std::ssize(rows)), t.values.dtype());
  int64_t at = 0;
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    const auto [begin, end] = entries[i];
    copy_entries(t, begin, end, i - rows[i], out, at);
    at += end - begin;
  }
  return out;
}

// Returns the total number of rows. Throws unless the tensors agree in dtype and in all dimensions
// but the first.
int64_t check_parts(const std::vector<Tensor>& parts, const std::string& path) {
  int64_t rows = 0;
  for (const Tensor& part : parts) {
    if (part.dtype() != parts[0].dtype()) {
      throw TypeError("concat_rows: dtypes of '", path, "' differ: ", parts[0].dtype(), " and ",
                      part.dtype(), "; cast one of them");
    }
    if (part.rank() == 0 || part.rank() != parts[0].rank() ||
        part.shape().without(0) != parts[0].shape().without(0)) {
      throw ValueError("concat_rows: shapes of '", path,
                       "' cannot be concatenated: ", parts[0].shape(), " and ", part.shape(),
                       "; all dimensions but the first must be equal");
    }
    rows += part.dim(0);
  }
  return rows;
}

Tensor concat_dense(const std::vector<Tensor>& parts, const std::string& path) {
  const int64_t rows = check_parts(parts, path);
  Tensor out = Tensor::uninitialized(parts[0].shape().with(0, rows), parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    copy_rows(part, 0, part.dim(0), out, at);
    at += part.dim(0);
  }
  return out;
}

RaggedTensor concat_ragged(const std::vector<TensorLike>& parts, const std::string& path) {
  std::vector<Tensor> values;
  int64_t rows = 0;
  for (const TensorLike& part : parts) {
    values.push_back(part.ragged().values);
    rows += part.ragged().rows();
  }
  Tensor joined = concat_dense(values, path);
  Tensor splits = Tensor::uninitialized({rows + 1}, DType::kInt64);
  int64_t* split = splits.mutable_data<int64_t>().data();
  *split = 0;
  for (const TensorLike& part : parts) {
    const int64_t base = *split;
    for (const int64_t end : part.ragged().row_splits.data<int64_t>().subspan(1)) {
      *++split = base + end;
    }
  }
  return {joined, splits};
}

// Returns the shape of the concatenation: the rows add up, and the last dimension is the largest
// one.
Shape concat_sparse_shape(const std::vector<TensorLike>& parts, const std::string& path) {
  Shape out = parts[0].sparse().dense_shape;
  for (size_t i = 1; i < parts.size(); ++i) {
    const Shape& next = parts[i].sparse().dense_shape;
    const int rank = out.rank();
    if (next.rank() != rank || (rank > 2 && next.slice(1, rank - 1) != out.slice(1, rank - 1))) {
      throw ValueError("concat_rows: shapes of '", path, "' cannot be concatenated: ", out, " and ",
                       next, "; all but the first and the last dimension must be equal");
    }
    if (rank > 1) out = out.with(-1, std::max(out[-1], next[-1]));
    out = out.with(0, out[0] + next[0]);
  }
  return out;
}

SparseTensor concat_sparse(const std::vector<TensorLike>& parts, const std::string& path) {
  const Shape dense_shape = concat_sparse_shape(parts, path);
  std::vector<Tensor> values;
  for (const TensorLike& part : parts) values.push_back(part.sparse().values);
  SparseTensor out =
      uninitialized_sparse(check_parts(values, path), dense_shape, values[0].dtype());
  int64_t entry = 0;
  int64_t row = 0;
  for (const TensorLike& part : parts) {
    const int64_t entries = part.sparse().values.dim(0);
    copy_entries(part.sparse(), 0, entries, row, out, entry);
    entry += entries;
    row += part.sparse().dense_shape[0];
  }
  return out;
}

TensorLike concat_leaves(const std::vector<TensorLike>& parts, const std::string& path) {
  if (parts.size() == 1) return parts[0];
  const Layout layout = parts[0].layout();
  for (const TensorLike& part : parts) {
    if (part.layout() != layout) {
      throw TypeError("concat_rows: '", path,
                      "' must have the same layout (dense, ragged or sparse) in all batches");
    }
  }
  if (layout == Layout::kRagged) return concat_ragged(parts, path);
  if (layout == Layout::kSparse) return concat_sparse(parts, path);
  std::vector<Tensor> tensors;
  for (const TensorLike& part : parts) tensors.push_back(part.tensor());
  return concat_dense(tensors, path);
}

}  // namespace

TensorLike::TensorLike(RaggedTensor t) : value_(std::move(t)) {}
TensorLike::TensorLike(SparseTensor t) : value_(std::move(t)) {}
TensorLike::~TensorLike() = default;
TensorLike::TensorLike(const TensorLike& other) = default;
TensorLike::TensorLike(TensorLike&& other) noexcept = default;
TensorLike& TensorLike::operator=(const TensorLike& other) = default;
TensorLike& TensorLike::operator=(TensorLike&& other) noexcept = default;

void RaggedTensor::validate(const std::string& caller) const {
  if (row_splits.dtype() != DType::kInt64 || row_splits.rank() != 1 || row_splits.dim(0) == 0) {
    throw ValueError(caller, ": row_splits must be int64 [rows + 1], received ", row_splits.dtype(),
                     " ", row_splits.shape());
  }
  if (values.rank() == 0)
    throw ValueError(caller,
                     ": values of a ragged tensor must have rank 1 or more, received a scalar");
  if (values.is_symbolic() || row_splits.is_symbolic()) return;
  const auto splits = row_splits.data<int64_t>();
  if (splits.front() != 0 || splits.back() != values.dim(0)) {
    throw ValueError(caller, ": row_splits must run from 0 to ", values.dim(0), ", received ",
                     splits.front(), " to ", splits.back());
  }
  if (const auto it = std::ranges::is_sorted_until(splits); it != splits.end()) {
    throw ValueError(caller, ": row_splits must not decrease, received ", *(it - 1), " before ",
                     *it);
  }
}

void SparseTensor::validate(const std::string& caller) const {
  const int rank = dense_shape.rank();
  if (rank == 0 || indices.dtype() != DType::kInt64 || indices.rank() != 2 || values.rank() != 1 ||
      (indices.dim(1) != rank && indices.dim(1) != kUnknown) ||
      !compatible(indices.shape().slice(0, 1), values.shape())) {
    throw ValueError(caller, ": a sparse tensor must have int64 indices [n, ", rank,
                     "] and values [n], ", "received ", indices.dtype(), " ", indices.shape(),
                     " and ", values.shape());
  }
  if (values.is_symbolic() || indices.is_symbolic()) return;
  if (!dense_shape.fully_defined()) {
    throw ValueError(caller, ": dense_shape must be fully defined, received ", dense_shape);
  }
  const int64_t* index = indices.data<int64_t>().data();
  const int64_t entries = indices.dim(0);
  for (int64_t i = 0; i < entries; ++i, index += rank) {
    for (int axis = 0; axis < rank; ++axis) {
      if (index[axis] < 0 || index[axis] >= dense_shape.dims()[axis]) {
        throw ValueError(caller, ": index ", index[axis], " of entry ", i,
                         " is out of range for dimension ", axis, " of ", dense_shape,
                         "; indices must be in [0, dimension)");
      }
    }
    if (i > 0 && std::lexicographical_compare(index, index + rank, index - rank, index)) {
      throw ValueError(caller, ": indices must be in row-major order, but entry ", i,
                       " is not; sort the entries");
    }
  }
}

TensorSpec TensorLike::spec() const {
  if (layout() == Layout::kDense) return tensor().spec();
  if (layout() == Layout::kSparse) {
    return {
        .shape = sparse().dense_shape, .dtype = sparse().values.dtype(), .layout = Layout::kSparse};
  }
  const int64_t splits = ragged().row_splits.dim(0);
  const Shape rows = {splits == kUnknown ? kUnknown : splits - 1, kUnknown};
  const Tensor& flat = ragged().values;
  return {
      .shape = rows + flat.shape().without(0), .dtype = flat.dtype(), .layout = Layout::kRagged};
}

bool TensorLike::is_symbolic() const { return values().is_symbolic(); }

const Tensor& TensorLike::values() const {
  if (const auto* t = std::get_if<RaggedTensor>(&value_)) return t->values;
  if (const auto* t = std::get_if<SparseTensor>(&value_)) return t->values;
  return std::get<Tensor>(value_);
}

const Tensor& TensorLike::tensor() const {
  if (const auto* t = std::get_if<Tensor>(&value_)) return *t;
  throw TypeError("TensorLike: expected a dense tensor, received a ",
                  layout() == Layout::kRagged ? "ragged" : "sparse", " one");
}

const RaggedTensor& TensorLike::ragged() const {
  if (const auto* t = std::get_if<RaggedTensor>(&value_)) return *t;
  throw TypeError("TensorLike: expected a ragged tensor, received a ",
                  layout() == Layout::kDense ? "dense" : "sparse", " one");
}

const SparseTensor& TensorLike::sparse() const {
  if (const auto* t = std::get_if<SparseTensor>(&value_)) return *t;
  throw TypeError("TensorLike: expected a sparse tensor, received a ",
                  layout() == Layout::kDense ? "dense" : "ragged", " one");
}

Specs specs_of(const Tensors& tensors) {
  return map_structure(tensors, [](const TensorLike& t) { return t.spec(); });
}

bool any_symbolic(const Tensors& tensors) {
  bool found = false;
  for_each_leaf(tensors,
                [&](const std::string&, const TensorLike& t) { found = found || t.is_symbolic(); });
  return found;
}

TensorLike slice_rows(const TensorLike& tensor, int64_t begin, int64_t end) {
  const int64_t rows = rows_of(tensor);
  if (begin < 0 || begin > end || end > rows) {
    throw ValueError("slice_rows: the range must be within ", rows, " rows, received [", begin,
                     ", ", end, ")");
  }
  if (begin == 0 && end == rows) return tensor;
  if (tensor.layout() == Layout::kRagged) return slice_ragged(tensor.ragged(), begin, end);
  if (tensor.layout() == Layout::kSparse) return slice_sparse(tensor.sparse(), begin, end);
  return slice_dense(tensor.tensor(), begin, end);
}

Tensors slice_rows(const Tensors& tensors, int64_t begin, int64_t end) {
  return map_structure(
      tensors, [&](const TensorLike& t) -> TensorLike { return slice_rows(t, begin, end); });
}

Tensors take_rows(const Tensors& tensors, std::span<const int64_t> rows) {
  return map_structure(tensors, [&](const TensorLike& t) -> TensorLike {
    const int64_t count = rows_of(t);
    for (const int64_t row : rows) {
      if (row < 0 || row >= count) {
        throw ValueError("take_rows: position ", row, " is out of range for ", count,
                         " rows; positions must be in [0, rows)");
      }
    }
    if (t.layout() == Layout::kRagged) return take_ragged(t.ragged(), rows);
    if (t.layout() == Layout::kSparse) return take_sparse(t.sparse(), rows);
    return take_dense(t.tensor(), rows);
  });
}

Tensors concat_rows(const std::vector<Tensors>& batches) {
  if (batches.empty()) throw ValueError("concat_rows: requires at least one batch, received none");
  const std::vector<std::string> paths = flatten_paths(batches[0]);
  std::vector<std::vector<TensorLike>> parts(paths.size());
  for (const Tensors& batch : batches) {
    assert_same_structure(batches[0], batch);
    const std::vector<TensorLike> leaves = flatten(batch);
    for (size_t i = 0; i < leaves.size(); ++i) parts[i].push_back(leaves[i]);
  }
  std::vector<TensorLike> joined;
  for (size_t i = 0; i < paths.size(); ++i) joined.push_back(concat_leaves(parts[i], paths[i]));
  return pack_sequence_as(batches[0], joined);
}

int64_t row_count(const Tensors& tensors) {
  std::optional<int64_t> count;
  for_each_leaf(tensors, [&](const std::string& path, const TensorLike& t) {
    const int64_t rows = rows_of(t);
    if (count.has_value() && *count != rows) {
      throw ValueError("row_count: '", path, "' has ", rows,
                       " rows, but the leaves before it have ", *count,
                       "; all leaves must have the same number of rows");
    }
    count = rows;
  });
  if (!count.has_value())
    throw ValueError("row_count: the structure contains no tensors; pass at least one");
  return *count;
}

}  // namespace keel
