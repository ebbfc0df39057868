#include <algorithm>
#include <cstring>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

// Removes (by = -1) or adds (by = 1) a leading index 0 in the coordinates of a sparse tensor.
SparseTensor with_leading_index(const SparseTensor& t, int by) {
  const int64_t n = t.indices.dim(0);
  const int64_t rank = t.indices.dim(1);
  Tensor indices = Tensor::uninitialized({n, rank + by}, DType::kInt64);
  const int64_t* in = t.indices.data<int64_t>().data();
  int64_t* out = indices.mutable_data<int64_t>().data();
  for (int64_t i = 0; i < n; ++i, in += rank, out += rank + by) {
    if (by > 0) out[0] = 0;
    std::copy(in + (by > 0 ? 0 : 1), in + rank, out + (by > 0 ? 1 : 0));
  }
  const Shape shape = by > 0 ? t.dense_shape.inserted(0, 1) : t.dense_shape.without(0);
  return {indices, t.values, shape};
}

// Returns a leaf of one row without its row dimension.
TensorLike without_row(const TensorLike& row) {
  switch (row.layout()) {
    case Layout::kDense:
      return row.tensor().reshaped(row.tensor().shape().without(0));
    case Layout::kRagged:
      return row.ragged().values;
    case Layout::kSparse:
      break;
  }
  return with_leading_index(row.sparse(), -1);
}

std::string place(const std::string& path) { return path.empty() ? "" : " at '" + path + "'"; }

Tensor stack_dense(const std::string& path, const std::vector<TensorLike>& leaves) {
  const Tensor& first = leaves.front().tensor();
  for (const TensorLike& leaf : leaves) {
    const Tensor& other = leaf.tensor();
    if (other.dtype() != first.dtype()) {
      throw TypeError("Dataset.batch: elements must have the same dtype, received ", first.dtype(),
                      " and ", other.dtype(), place(path));
    }
    if (other.shape() != first.shape()) {
      throw ValueError("Dataset.batch: elements must have the same shape, received ", first.shape(),
                       " and ", other.shape(), place(path),
                       "; use RaggedTensors of one row for rows of different lengths");
    }
  }
  const auto n = static_cast<int64_t>(leaves.size());
  Tensor out = Tensor::uninitialized(first.shape().inserted(0, n), first.dtype());
  if (first.dtype() == DType::kString) {
    auto to = out.mutable_data<std::string>().begin();
    for (const TensorLike& leaf : leaves) {
      to = std::ranges::copy(leaf.tensor().data<std::string>(), to).out;
    }
    return out;
  }
  std::byte* to = out.mutable_raw().data();
  const size_t bytes = first.raw().size();
  for (const TensorLike& leaf : leaves) {
    if (bytes > 0) std::memcpy(to, leaf.tensor().raw().data(), bytes);
    to += bytes;
  }
  return out;
}

TensorLike stack_leaf(const std::string& path, const std::vector<TensorLike>& leaves) {
  const Layout layout = leaves.front().layout();
  std::vector<Tensors> rows;
  for (const TensorLike& leaf : leaves) {
    if (leaf.layout() != layout) {
      throw TypeError("Dataset.batch: elements must have the same layout (dense, ragged or sparse)",
                      place(path));
    }
    if (layout == Layout::kRagged) {
      if (leaf.ragged().rows() != 1) {
        throw ValueError("Dataset.batch: a ragged element must have exactly one row, received ",
                         leaf.ragged().rows(), " rows", place(path));
      }
      rows.emplace_back(leaf);
    } else if (layout == Layout::kSparse) {
      rows.emplace_back(TensorLike(with_leading_index(leaf.sparse(), 1)));
    }
  }
  if (layout == Layout::kDense) return stack_dense(path, leaves);
  return concat_rows(rows).leaf();
}

Tensors stack_elements(const std::vector<Block>& blocks) {
  const Tensors& first = *blocks.front().source();
  const std::vector<std::string> paths = flatten_paths(first);
  std::vector<std::vector<TensorLike>> columns(paths.size());
  for (const Block& block : blocks) {
    assert_same_structure(first, *block.source());
    size_t column = 0;
    for_each_leaf(*block.source(), [&](const std::string&, const TensorLike& leaf) {
      columns[column++].push_back(leaf);
    });
  }
  std::vector<TensorLike> out;
  for (size_t i = 0; i < paths.size(); ++i) out.push_back(stack_leaf(paths[i], columns[i]));
  return pack_sequence_as(first, out);
}

// Joins blocks of the same source into one block.
Block joined(const std::vector<Block>& blocks) {
  std::vector<int64_t> positions;
  for (const Block& block : blocks) {
    for (int64_t i = 0; i < block.count(); ++i) positions.push_back(block.position(i));
  }
  return Block::rows(blocks.front().source(), std::move(positions));
}

}  // namespace

Block Block::whole(Element element) {
  Block out = rows(std::move(element), 0, 1);
  out.whole_ = true;
  return out;
}

Block Block::rows(Element source, int64_t begin, int64_t end) {
  Block out;
  out.source_ = std::move(source);
  out.begin_ = begin;
  out.end_ = end;
  return out;
}

Block Block::rows(Element source, std::vector<int64_t> positions) {
  Block out;
  out.source_ = std::move(source);
  out.positions_ = std::move(positions);
  return out;
}

int64_t Block::count() const {
  return positions_.empty() ? end_ - begin_ : static_cast<int64_t>(positions_.size());
}

int64_t Block::position(int64_t i) const {
  return positions_.empty() ? begin_ + i : positions_[static_cast<size_t>(i)];
}

Block Block::slice(int64_t begin, int64_t end) const {
  if (begin == 0 && end == count()) return *this;
  if (positions_.empty()) return rows(source_, begin_ + begin, begin_ + end);
  return rows(source_, std::vector(positions_.begin() + begin, positions_.begin() + end));
}

Block Block::select(std::span<const int64_t> elements) const {
  if (static_cast<int64_t>(elements.size()) == count()) return *this;
  std::vector<int64_t> positions;
  positions.reserve(elements.size());
  for (const int64_t i : elements) positions.push_back(position(i));
  return rows(source_, std::move(positions));
}

Tensors Block::element(int64_t i) const {
  if (whole_) return *source_;
  const int64_t row = position(i);
  return map_structure(*source_, [row](const TensorLike& leaf) {
    return without_row(slice_rows(leaf, row, row + 1));
  });
}

Tensors Block::gathered() const {
  if (!positions_.empty()) return take_rows(*source_, positions_);
  if (begin_ == 0 && end_ == row_count(*source_)) return *source_;
  return slice_rows(*source_, begin_, end_);
}

Tensors stacked(const std::vector<Block>& blocks) {
  if (blocks.front().is_whole()) return stack_elements(blocks);
  if (blocks.size() == 1) return blocks.front().gathered();
  const Element& source = blocks.front().source();
  if (std::ranges::all_of(blocks, [&](const Block& b) { return b.source() == source; })) {
    return joined(blocks).gathered();
  }
  std::vector<Tensors> parts;
  for (const Block& block : blocks) parts.push_back(block.gathered());
  return concat_rows(parts);
}

void check_values(const Tensors& tensors, const char* caller) {
  for_each_leaf(tensors, [&](const std::string& path, const TensorLike& leaf) {
    if (!leaf.values() || leaf.is_symbolic()) {
      throw ValueError(caller, ": all tensors must have values, received ",
                       leaf.values() ? "a symbolic one" : "an empty one", place(path));
    }
  });
}

}  // namespace keel::data
