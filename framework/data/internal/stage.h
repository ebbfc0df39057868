// Stages: the implementation of Dataset. Private to framework/data.
//
// Stages exchange blocks of several consecutive elements, stored as rows of one structure whenever
// elements are rows of a source. A block of rows refers to its source, and nothing is copied until
// batch() or prefetch() gathers it, so selecting, skipping and shuffling elements moves positions,
// not values.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>

namespace keel::data {

using Element = std::shared_ptr<const Tensors>;

inline constexpr int64_t kBlockRows = 4096;  // elements requested at once where any number will do

// One whole element, or several elements that are rows of a source.
class Block {
 public:
  // Make a block of one whole element, of rows [begin, end) of a source, or of the rows of a source
  // at the given positions.
  static Block whole(Element element);
  static Block rows(Element source, int64_t begin, int64_t end);
  static Block rows(Element source, std::vector<int64_t> positions);

  bool is_whole() const { return whole_; }
  // Number of elements.
  int64_t count() const;
  const Element& source() const { return source_; }
  int64_t position(int64_t i) const;  // position of element i in the source

  // Returns elements [begin, end).
  Block slice(int64_t begin, int64_t end) const;
  // Returns the elements at the given indices, which must be ascending and distinct.
  Block select(std::span<const int64_t> elements) const;
  // Returns element i as users see it. Row r of a dense leaf [n, ..] is a tensor [..], of a ragged
  // leaf a dense [k, ..], and of a sparse leaf [n, w] a sparse [w].
  Tensors element(int64_t i) const;
  // Returns the elements of a block of rows as leaves [count(), ..]. Returns the source itself if
  // the block is all of it.
  Tensors gathered() const;

 private:
  Element source_;
  bool whole_ = false;
  int64_t begin_ = 0;  // the range [begin_, end_), used if positions_ is empty
  int64_t end_ = 0;
  std::vector<int64_t> positions_;
};

// Concatenates the elements of several blocks. Whole elements are stacked: dense leaves of equal
// shape and sparse leaves get a new first dimension; ragged leaves must have one row each and are
// concatenated. Throws ValueError, with the path of the leaf, if elements do not match.
Tensors stacked(const std::vector<Block>& blocks);

// Iterates over the blocks of a stage.
class BlockIterator {
 public:
  virtual ~BlockIterator() = default;
  // Returns a block of 1 to `most` further elements, or nullopt at the end. A stage returns either
  // whole elements or rows, always the same kind.
  virtual std::optional<Block> next(int64_t most) = 0;
};

// The state of one iteration of a whole dataset.
struct Run {
  std::stop_token stop = {};  // sources end early once a stop is requested
  uint64_t epoch = 0;         // number of times that repeats have restarted this stage
  // The iteration number of each shuffle at epoch 0.
  std::shared_ptr<const std::map<const Dataset::Stage*, uint64_t>> numbers = nullptr;
};

// A step of a dataset's description: a source or a transformation of its input.
class Dataset::Stage {
 public:
  explicit Stage(std::shared_ptr<const Stage> input = nullptr) : input_(std::move(input)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Starts an iteration. The stage must outlive its iterators.
  virtual std::unique_ptr<BlockIterator> iterate(const Run& run) const = 0;
  // Number of elements, kInfinite or kUnknownCardinality.
  virtual int64_t cardinality() const { return input_->cardinality(); }
  // Returns the total number of rows of all elements, if it is known without running the stage.
  virtual int64_t unbatched_cardinality() const;
  // Returns the source of which all blocks are rows, or null if there is no single one.
  virtual Element source() const { return nullptr; }
  // Reserves iteration numbers for `epochs` runs of this stage and its inputs. This happens when an
  // iterator is created, so that later orders do not depend on how far a prefetching thread ran
  // ahead.
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

// Each function makes the stage of the Dataset method of its name and validates the arguments.
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

// Throws ValueError, with `caller` in the message, if the structure contains an empty or symbolic
// tensor.
void check_values(const Tensors& tensors, const char* caller);

}  // namespace keel::data
