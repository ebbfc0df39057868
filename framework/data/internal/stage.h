// Stages: how a Dataset runs. Private to framework/data.
//
// Stages hand each other blocks: several consecutive elements at once, as rows of one structure
// wherever elements are rows of something. A block of rows refers to its source and copies
// nothing until batch() or prefetch() gathers it, so choosing, skipping and shuffling elements
// move positions, not values.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>

namespace keel::data {

using Element = std::shared_ptr<const Tensors>;

inline constexpr int64_t kBlockRows = 4096;  // elements asked for at once where any number will do

// One whole element, or rows of a source each of which is an element.
class Block {
 public:
  static Block whole(Element element);
  static Block rows(Element source, int64_t begin, int64_t end);
  static Block rows(Element source, std::vector<int64_t> positions);

  bool is_whole() const { return whole_; }
  int64_t count() const;
  const Element& source() const { return source_; }
  int64_t position(int64_t i) const;  // of element i in the source

  Block slice(int64_t begin, int64_t end) const;
  Block select(std::span<const int64_t> elements) const;  // ascending, none twice
  // Element i as the user sees it: row r of a dense leaf [n, ..] is a tensor [..], of a ragged
  // leaf a dense [k, ..], of a sparse leaf [n, w] a sparse [w].
  Tensors element(int64_t i) const;
  // The elements of a block of rows side by side: leaves [count(), ..]. Shares the source if the
  // block is all of it.
  Tensors gathered() const;

 private:
  Element source_;
  bool whole_ = false;
  int64_t begin_ = 0;  // a range [begin_, end_), unless there are positions
  int64_t end_ = 0;
  std::vector<int64_t> positions_;
};

// The elements of several blocks side by side. Whole elements are stacked: dense leaves of one
// shape get a dimension in front, sparse ones likewise, ragged ones must have one row each and
// are joined. ValueError, with the path, for elements that do not fit each other.
Tensors stacked(const std::vector<Block>& blocks);

class BlockIterator {
 public:
  virtual ~BlockIterator() = default;
  // Between 1 and `most` further elements; nothing at the end. A stage gives whole elements or
  // rows, always the same kind.
  virtual std::optional<Block> next(int64_t most) = 0;
};

// One iteration of a whole recipe, as its stages see it.
struct Run {
  std::stop_token stop = {};  // sources end early once it asks them to
  uint64_t epoch = 0;         // how often repeats have started this stage anew
  // The iteration number of each shuffle at epoch 0.
  std::shared_ptr<const std::map<const Dataset::Stage*, uint64_t>> numbers = nullptr;
};

class Dataset::Stage {
 public:
  explicit Stage(std::shared_ptr<const Stage> input = nullptr) : input_(std::move(input)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // The stage outlives its iterators.
  virtual std::unique_ptr<BlockIterator> iterate(const Run& run) const = 0;
  virtual int64_t cardinality() const { return input_->cardinality(); }
  // Rows of all elements together, where that is known without running.
  virtual int64_t unbatched_cardinality() const;
  // What all blocks are rows of; null if there is no such thing.
  virtual Element source() const { return nullptr; }
  // Sets aside iteration numbers for `epochs` runs of this stage and those before it. Done when
  // an iterator is made: how far a prefetching thread ran ahead must not show in later orders.
  virtual void reserve(uint64_t epochs, std::map<const Stage*, uint64_t>& numbers) const {
    if (input_ != nullptr) input_->reserve(epochs, numbers);
  }

 protected:
  const Stage& input() const { return *input_; }

 private:
  std::shared_ptr<const Stage> input_;
};

using Stage = Dataset::Stage;
using StagePtr = std::shared_ptr<const Stage>;

StagePtr tensors_stage(Tensors element);
StagePtr slices_stage(Tensors rows);
StagePtr generator_stage(std::function<Dataset::Generator()> make, int64_t cardinality);
StagePtr map_stage(StagePtr input, std::function<Tensors(const Tensors&)> fn);
StagePtr filter_stage(StagePtr input, std::function<bool(const Tensors&)> keep);
StagePtr shuffle_stage(StagePtr input, int64_t buffer_size, const ShuffleOptions& options);
StagePtr batch_stage(StagePtr input, int64_t batch_size, const BatchOptions& options);
StagePtr unbatch_stage(StagePtr input);
StagePtr repeat_stage(StagePtr input, int64_t count);
StagePtr take_stage(StagePtr input, int64_t count);
StagePtr skip_stage(StagePtr input, int64_t count);
StagePtr shard_stage(StagePtr input, int64_t num_shards, int64_t index);
StagePtr prefetch_stage(StagePtr input, int64_t buffer_size);

// ValueError, naming `caller`, if the structure holds an empty or symbolic tensor.
void check_values(const Tensors& tensors, const char* caller);

}  // namespace keel::data
