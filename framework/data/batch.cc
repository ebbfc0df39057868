#include <algorithm>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

class BatchIterator : public BlockIterator {
 public:
  BatchIterator(std::unique_ptr<BlockIterator> input, int64_t batch_size, bool drop_remainder)
      : input_(std::move(input)), batch_size_(batch_size), drop_remainder_(drop_remainder) {}

  std::optional<Block> next(int64_t) override {
    std::vector<Block> parts;
    int64_t missing = batch_size_;
    while (missing > 0 && !ended_) {
      std::optional<Block> part = input_->next(missing);
      ended_ = !part;
      if (!part) break;
      missing -= part->count();
      parts.push_back(*std::move(part));
    }
    if (parts.empty() || (missing > 0 && drop_remainder_)) return std::nullopt;
    return Block::whole(std::make_shared<const Tensors>(stacked(parts)));
  }

 private:
  const std::unique_ptr<BlockIterator> input_;
  const int64_t batch_size_;
  const bool drop_remainder_;
  bool ended_ = false;
};

class BatchStage : public Stage {
 public:
  BatchStage(StagePtr input, int64_t batch_size, const BatchOptions& options)
      : Stage(std::move(input)), batch_size_(batch_size), options_(options) {}

  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    return std::make_unique<BatchIterator>(input().iterate(run), batch_size_,
                                           options_.drop_remainder);
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n < 0) return n;
    return n / batch_size_ + (!options_.drop_remainder && n % batch_size_ != 0 ? 1 : 0);
  }
  int64_t unbatched_cardinality() const override {
    const int64_t n = input().cardinality();
    return n > 0 && options_.drop_remainder ? n - n % batch_size_ : n;
  }

 private:
  const int64_t batch_size_;
  const BatchOptions options_;
};

// Returns true for a leaf that cannot be split into rows.
bool lacks_rows(const TensorLike& leaf) {
  if (leaf.layout() == Layout::kDense) return leaf.tensor().rank() == 0;
  return leaf.layout() == Layout::kSparse && leaf.sparse().dense_shape.rank() < 2;
}

class UnbatchIterator : public BlockIterator {
 public:
  explicit UnbatchIterator(std::unique_ptr<BlockIterator> input) : input_(std::move(input)) {}

  std::optional<Block> next(int64_t most) override {
    while (next_row_ == rows_) {
      const std::optional<Block> block = input_->next(1);
      if (!block) return std::nullopt;
      start(block->is_whole() ? block->source()
                              : std::make_shared<const Tensors>(block->element(0)));
    }
    const int64_t begin = next_row_;
    next_row_ = std::min(rows_, begin + std::min(most, rows_));
    return Block::rows(element_, begin, next_row_);
  }

 private:
  void start(Element element) {
    for_each_leaf(*element, [](const std::string& path, const TensorLike& leaf) {
      if (lacks_rows(leaf)) {
        throw ValueError(
            "Dataset.unbatch: every leaf must have rows, received a scalar or a sparse vector",
            path.empty() ? "" : " at '" + path + "'");
      }
    });
    rows_ = row_count(*element);
    next_row_ = 0;
    element_ = std::move(element);
  }

  const std::unique_ptr<BlockIterator> input_;
  Element element_;
  int64_t rows_ = 0;
  int64_t next_row_ = 0;
};

class UnbatchStage : public Stage {
 public:
  using Stage::Stage;
  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    return std::make_unique<UnbatchIterator>(input().iterate(run));
  }
  int64_t cardinality() const override { return input().unbatched_cardinality(); }
};

}  // namespace

StagePtr batch_stage(StagePtr input, int64_t batch_size, const BatchOptions& options) {
  if (batch_size < 1) {
    throw ValueError("Dataset.batch: batch_size must be at least 1, received ", batch_size);
  }
  return std::make_shared<BatchStage>(std::move(input), batch_size, options);
}

StagePtr unbatch_stage(StagePtr input) { return std::make_shared<UnbatchStage>(std::move(input)); }

}  // namespace keel::data
