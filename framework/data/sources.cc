// The source stages: tensors in memory and the user's generators.
#include <algorithm>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

// Iterates over a whole element or the rows of a source, in order.
class SourceIterator : public BlockIterator {
 public:
  SourceIterator(Block all, std::stop_token stop) : all_(std::move(all)), stop_(std::move(stop)) {}

  std::optional<Block> next(int64_t most) override {
    const int64_t count = std::min(most, all_.count() - done_);
    if (count == 0 || stop_.stop_requested()) return std::nullopt;
    done_ += count;
    return all_.slice(done_ - count, done_);
  }

 private:
  const Block all_;
  const std::stop_token stop_;
  int64_t done_ = 0;
};

class TensorsStage : public Stage {
 public:
  explicit TensorsStage(Tensors element)
      : element_(std::make_shared<const Tensors>(std::move(element))) {}
  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    return std::make_unique<SourceIterator>(Block::whole(element_), run.stop);
  }
  int64_t cardinality() const override { return 1; }

 private:
  const Element element_;
};

class SlicesStage : public Stage {
 public:
  explicit SlicesStage(Tensors rows)
      : count_(row_count(rows)), rows_(std::make_shared<const Tensors>(std::move(rows))) {}
  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    return std::make_unique<SourceIterator>(Block::rows(rows_, 0, count_), run.stop);
  }
  int64_t cardinality() const override { return count_; }
  Element source() const override { return rows_; }

 private:
  const int64_t count_;
  const Element rows_;
};

class GeneratorIterator : public BlockIterator {
 public:
  GeneratorIterator(std::function<Dataset::Generator()> make, std::stop_token stop)
      : make_(std::move(make)), stop_(std::move(stop)) {}

  std::optional<Block> next(int64_t) override {
    if (ended_ || stop_.stop_requested()) return std::nullopt;
    if (!generate_) generate_ = make_();
    std::optional<Tensors> element = generate_();
    if (!element) {
      ended_ = true;
      return std::nullopt;
    }
    check_values(*element, "Dataset.from_generator");
    return Block::whole(std::make_shared<const Tensors>(*std::move(element)));
  }

 private:
  const std::function<Dataset::Generator()> make_;
  const std::stop_token stop_;
  Dataset::Generator generate_;
  bool ended_ = false;
};

class GeneratorStage : public Stage {
 public:
  GeneratorStage(std::function<Dataset::Generator()> make, int64_t cardinality)
      : make_(std::move(make)), cardinality_(cardinality) {}
  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    return std::make_unique<GeneratorIterator>(make_, run.stop);
  }
  int64_t cardinality() const override { return cardinality_; }

 private:
  const std::function<Dataset::Generator()> make_;
  const int64_t cardinality_;
};

void check_row(const std::string& path, const TensorLike& leaf) {
  constexpr const char* kCaller = "Dataset.from_tensor_slices";
  int rank = 0;
  switch (leaf.layout()) {
    case Layout::kDense:
      rank = leaf.tensor().rank();
      break;
    case Layout::kRagged:
      leaf.ragged().validate(kCaller);
      return;
    case Layout::kSparse:
      leaf.sparse().validate(kCaller);
      rank = leaf.sparse().dense_shape.rank() - 1;  // a sparse row has a rank of at least 1
      break;
  }
  if (rank < 1) {
    throw ValueError(kCaller, ": every leaf must have rows, received ",
                     leaf.layout() == Layout::kDense ? "a scalar" : "a sparse vector",
                     path.empty() ? "" : " at '" + path + "'");
  }
}

}  // namespace

StagePtr tensors_stage(Tensors element) {
  check_values(element, "Dataset.from_tensors");
  return std::make_shared<TensorsStage>(std::move(element));
}

StagePtr slices_stage(Tensors rows) {
  check_values(rows, "Dataset.from_tensor_slices");
  int leaves = 0;
  for_each_leaf(rows, [&](const std::string& path, const TensorLike& leaf) {
    check_row(path, leaf);
    ++leaves;
  });
  if (leaves == 0)
    throw ValueError("Dataset.from_tensor_slices: the structure has no tensors; pass at least one");
  return std::make_shared<SlicesStage>(std::move(rows));
}

StagePtr generator_stage(std::function<Dataset::Generator()> make, int64_t cardinality) {
  if (!make) throw ValueError("Dataset.from_generator: `make` is empty; pass a function");
  if (cardinality < kUnknownCardinality) {
    throw ValueError("Dataset.from_generator: cardinality must be at least 0, kInfinite or ",
                     "kUnknownCardinality, received ", cardinality);
  }
  return std::make_shared<GeneratorStage>(std::move(make), cardinality);
}

}  // namespace keel::data
