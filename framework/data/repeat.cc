#include <algorithm>
#include <limits>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

// The iteration numbers reserved for an infinite repeat: more than any run will need.
constexpr uint64_t kManyEpochs = uint64_t{1} << 32;

class RepeatIterator : public BlockIterator {
 public:
  RepeatIterator(const Stage& input, Run run, int64_t count)
      : stage_(input), run_(std::move(run)), count_(count) {
    if (count_ != 0) input_ = stage_.iterate(run_);
  }

  std::optional<Block> next(int64_t most) override {
    while (input_ != nullptr) {
      std::optional<Block> block = input_->next(most);
      if (block) {
        empty_ = false;
        return block;
      }
      input_.reset();
      if (empty_) return std::nullopt;  // an epoch without elements, so the others have none either
      if (++done_ != count_) start_epoch();
    }
    return std::nullopt;
  }

 private:
  void start_epoch() {
    ++run_.epoch;
    empty_ = true;
    input_ = stage_.iterate(run_);
  }

  const Stage& stage_;
  Run run_;
  const int64_t count_;  // kInfinite is never reached
  int64_t done_ = 0;
  bool empty_ = true;
  std::unique_ptr<BlockIterator> input_;
};

class RepeatStage : public Stage {
 public:
  RepeatStage(StagePtr input, int64_t count) : Stage(std::move(input)), count_(count) {}

  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    Run first = run;
    first.epoch *= epochs();
    return std::make_unique<RepeatIterator>(input(), std::move(first), count_);
  }
  int64_t cardinality() const override { return times(input().cardinality()); }
  int64_t unbatched_cardinality() const override { return times(input().unbatched_cardinality()); }
  Element source() const override { return input().source(); }
  void reserve(uint64_t outer, std::map<const Stage*, uint64_t>& numbers) const override {
    Stage::reserve(outer >= kManyEpochs ? outer : outer * epochs(), numbers);
  }

 private:
  uint64_t epochs() const {
    return count_ == kInfinite
               ? kManyEpochs
               : std::clamp<uint64_t>(static_cast<uint64_t>(count_), 1, kManyEpochs);
  }
  int64_t times(int64_t n) const {
    if (n == 0 || count_ == 0) return 0;
    if (count_ == kInfinite) return kInfinite;
    return n < 0 ? n : n * std::min(count_, std::numeric_limits<int64_t>::max() / n);
  }

  const int64_t count_;
};

}  // namespace

StagePtr repeat_stage(StagePtr input, int64_t count) {
  if (count < kInfinite) {
    throw ValueError("Dataset.repeat: count must be at least 0 or kInfinite, received ", count);
  }
  return std::make_shared<RepeatStage>(std::move(input), count);
}

}  // namespace keel::data
