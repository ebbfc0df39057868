// Stages that transform or select single elements.
#include <algorithm>
#include <exception>
#include <utility>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

using BlockIteratorPtr = std::unique_ptr<BlockIterator>;

class MapIterator : public BlockIterator {
 public:
  MapIterator(BlockIteratorPtr input, const std::function<Tensors(const Tensors&)>& fn)
      : input_(std::move(input)), fn_(fn) {}

  std::optional<Block> next(int64_t) override {
    const std::optional<Block> block = input_->next(1);
    if (!block) return std::nullopt;
    Tensors element = fn_(block->element(0));
    check_values(element, "Dataset.map");
    return Block::whole(std::make_shared<const Tensors>(std::move(element)));
  }

 private:
  const BlockIteratorPtr input_;
  const std::function<Tensors(const Tensors&)>& fn_;
};

class MapStage : public Stage {
 public:
  MapStage(StagePtr input, std::function<Tensors(const Tensors&)> fn)
      : Stage(std::move(input)), fn_(std::move(fn)) {}
  BlockIteratorPtr iterate(const Run& run) const override {
    return std::make_unique<MapIterator>(input().iterate(run), fn_);
  }

 private:
  const std::function<Tensors(const Tensors&)> fn_;
};

// The base of stages that select elements of their input without changing them.
class ChoosingStage : public Stage {
 public:
  using Stage::Stage;
  Element source() const override { return input().source(); }
};

class FilterIterator : public BlockIterator {
 public:
  FilterIterator(BlockIteratorPtr input, const std::function<bool(const Tensors&)>& keep)
      : input_(std::move(input)), keep_(keep) {}

  std::optional<Block> next(int64_t most) override {
    while (!error_) {
      const std::optional<Block> block = input_->next(std::min(most, kBlockRows));
      if (!block) return std::nullopt;
      const std::vector<int64_t> kept = choose(*block);
      if (!kept.empty()) return block->select(kept);
    }
    std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // An error is deferred until the elements kept before it have been returned.
  std::vector<int64_t> choose(const Block& block) {
    std::vector<int64_t> kept;
    try {
      for (int64_t i = 0; i < block.count(); ++i) {
        if (keep_(block.element(i))) kept.push_back(i);
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    return kept;
  }

  const BlockIteratorPtr input_;
  const std::function<bool(const Tensors&)>& keep_;
  std::exception_ptr error_;
};

class FilterStage : public ChoosingStage {
 public:
  FilterStage(StagePtr input, std::function<bool(const Tensors&)> keep)
      : ChoosingStage(std::move(input)), keep_(std::move(keep)) {}
  BlockIteratorPtr iterate(const Run& run) const override {
    return std::make_unique<FilterIterator>(input().iterate(run), keep_);
  }
  int64_t cardinality() const override { return kUnknownCardinality; }

 private:
  const std::function<bool(const Tensors&)> keep_;
};

class TakeIterator : public BlockIterator {
 public:
  TakeIterator(BlockIteratorPtr input, int64_t count) : input_(std::move(input)), left_(count) {}

  std::optional<Block> next(int64_t most) override {
    if (left_ == 0) return std::nullopt;
    std::optional<Block> block = input_->next(std::min(most, left_));
    left_ -= block ? block->count() : left_;
    return block;
  }

 private:
  const BlockIteratorPtr input_;
  int64_t left_;
};

class TakeStage : public ChoosingStage {
 public:
  TakeStage(StagePtr input, int64_t count) : ChoosingStage(std::move(input)), count_(count) {}
  BlockIteratorPtr iterate(const Run& run) const override {
    return std::make_unique<TakeIterator>(input().iterate(run), count_);
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n == kInfinite || count_ == 0) return count_;
    return n == kUnknownCardinality ? n : std::min(n, count_);
  }

 private:
  const int64_t count_;
};

class SkipIterator : public BlockIterator {
 public:
  SkipIterator(BlockIteratorPtr input, int64_t count) : input_(std::move(input)), left_(count) {}

  std::optional<Block> next(int64_t most) override {
    while (left_ > 0) {
      const std::optional<Block> block = input_->next(std::min(left_, kBlockRows));
      left_ -= block ? block->count() : left_;
    }
    return input_->next(most);
  }

 private:
  const BlockIteratorPtr input_;
  int64_t left_;
};

class SkipStage : public ChoosingStage {
 public:
  SkipStage(StagePtr input, int64_t count) : ChoosingStage(std::move(input)), count_(count) {}
  BlockIteratorPtr iterate(const Run& run) const override {
    return std::make_unique<SkipIterator>(input().iterate(run), count_);
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    return n < 0 ? n : std::max<int64_t>(0, n - count_);
  }

 private:
  const int64_t count_;
};

class ShardIterator : public BlockIterator {
 public:
  ShardIterator(BlockIteratorPtr input, int64_t num_shards, int64_t index)
      : input_(std::move(input)), num_shards_(num_shards), until_next_(index) {}

  std::optional<Block> next(int64_t most) override {
    while (true) {
      // Reads no further than the last element that can be returned.
      const int64_t further = (std::min(most, kBlockRows) - 1) * std::min(num_shards_, kBlockRows);
      const std::optional<Block> block =
          input_->next(std::min(until_next_ + 1 + further, kBlockRows));
      if (!block) return std::nullopt;
      std::vector<int64_t> selected;
      int64_t i = until_next_;
      for (; i < block->count(); i += num_shards_) selected.push_back(i);
      until_next_ = i - block->count();
      if (!selected.empty()) return block->select(selected);
    }
  }

 private:
  const BlockIteratorPtr input_;
  const int64_t num_shards_;
  int64_t until_next_;  // elements to skip before the next element of this shard
};

class ShardStage : public ChoosingStage {
 public:
  ShardStage(StagePtr input, int64_t num_shards, int64_t index)
      : ChoosingStage(std::move(input)), num_shards_(num_shards), index_(index) {}
  BlockIteratorPtr iterate(const Run& run) const override {
    return std::make_unique<ShardIterator>(input().iterate(run), num_shards_, index_);
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    return n < 0 ? n : n / num_shards_ + (index_ < n % num_shards_ ? 1 : 0);
  }

 private:
  const int64_t num_shards_;
  const int64_t index_;
};

void check_count(int64_t count, const char* caller) {
  if (count < 0) throw ValueError(caller, ": count must be at least 0, received ", count);
}

}  // namespace

StagePtr map_stage(StagePtr input, std::function<Tensors(const Tensors&)> fn) {
  if (!fn) throw ValueError("Dataset.map: `fn` is empty; pass a function");
  return std::make_shared<MapStage>(std::move(input), std::move(fn));
}

StagePtr filter_stage(StagePtr input, std::function<bool(const Tensors&)> keep) {
  if (!keep) throw ValueError("Dataset.filter: `keep` is empty; pass a function");
  return std::make_shared<FilterStage>(std::move(input), std::move(keep));
}

StagePtr take_stage(StagePtr input, int64_t count) {
  check_count(count, "Dataset.take");
  return std::make_shared<TakeStage>(std::move(input), count);
}

StagePtr skip_stage(StagePtr input, int64_t count) {
  check_count(count, "Dataset.skip");
  return std::make_shared<SkipStage>(std::move(input), count);
}

StagePtr shard_stage(StagePtr input, int64_t num_shards, int64_t index) {
  if (num_shards < 1 || index < 0 || index >= num_shards) {
    throw ValueError("Dataset.shard: index must satisfy 0 <= index < num_shards, received index ",
                     index, " of ", num_shards);
  }
  return std::make_shared<ShardStage>(std::move(input), num_shards, index);
}

}  // namespace keel::data
