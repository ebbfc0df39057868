#include <keel/framework/data/dataset.h>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

class DatasetIterator : public Iterator {
 public:
  explicit DatasetIterator(StagePtr stage) : stage_(std::move(stage)) {
    std::map<const Stage*, uint64_t> numbers;
    stage_->reserve(1, numbers);
    blocks_ = stage_->iterate(
        {.numbers = std::make_shared<const std::map<const Stage*, uint64_t>>(std::move(numbers))});
  }

  std::optional<Tensors> next() override {
    if (ended_) return std::nullopt;
    ended_ = true;  // an exception also ends the iteration
    const std::optional<Block> block = blocks_->next(1);
    if (!block) return std::nullopt;
    Tensors element = block->element(0);
    ended_ = false;
    return element;
  }

 private:
  const StagePtr stage_;  // must outlive its iterator
  std::unique_ptr<BlockIterator> blocks_;
  bool ended_ = false;
};

}  // namespace

int64_t Dataset::Stage::unbatched_cardinality() const {
  const int64_t n = cardinality();
  return n == 0 || n == kInfinite ? n : kUnknownCardinality;
}

Dataset::Dataset(std::shared_ptr<const Stage> stage) : stage_(std::move(stage)) {}

Dataset Dataset::from_tensors(Tensors element) {
  return Dataset(tensors_stage(std::move(element)));
}
Dataset Dataset::from_tensor_slices(Tensors rows) { return Dataset(slices_stage(std::move(rows))); }
Dataset Dataset::from_generator(std::function<Generator()> make, int64_t cardinality) {
  return Dataset(generator_stage(std::move(make), cardinality));
}

Dataset Dataset::map(std::function<Tensors(const Tensors&)> fn) const {
  return Dataset(map_stage(stage_, std::move(fn)));
}
Dataset Dataset::filter(std::function<bool(const Tensors&)> keep) const {
  return Dataset(filter_stage(stage_, std::move(keep)));
}
Dataset Dataset::shuffle(int64_t buffer_size, ShuffleOptions options) const {
  return Dataset(shuffle_stage(stage_, buffer_size, options));
}
Dataset Dataset::batch(int64_t batch_size, BatchOptions options) const {
  return Dataset(batch_stage(stage_, batch_size, options));
}
Dataset Dataset::unbatch() const { return Dataset(unbatch_stage(stage_)); }
Dataset Dataset::repeat(int64_t count) const { return Dataset(repeat_stage(stage_, count)); }
Dataset Dataset::take(int64_t count) const { return Dataset(take_stage(stage_, count)); }
Dataset Dataset::skip(int64_t count) const { return Dataset(skip_stage(stage_, count)); }
Dataset Dataset::shard(int64_t num_shards, int64_t index) const {
  return Dataset(shard_stage(stage_, num_shards, index));
}
Dataset Dataset::prefetch(int64_t buffer_size) const {
  return Dataset(prefetch_stage(stage_, buffer_size));
}

std::unique_ptr<Iterator> Dataset::iterator() const {
  return std::make_unique<DatasetIterator>(stage_);
}
int64_t Dataset::cardinality() const { return stage_->cardinality(); }

Dataset::RangeIterator::RangeIterator(std::unique_ptr<Iterator> it)
    : it_(std::move(it)), element_(it_->next()) {}

Dataset::RangeIterator& Dataset::RangeIterator::operator++() {
  element_ = it_->next();
  return *this;
}

}  // namespace keel::data
