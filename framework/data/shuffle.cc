// The order of a shuffle is defined as follows. The buffer holds the first `buffer_size` elements
// of the input. For each output t = 0, 1, ... a slot of the buffer is drawn uniformly; its element
// is returned and the next input element takes the slot. When the input has ended, the last element
// of the buffer takes the slot and the buffer shrinks. A buffer that holds the whole input
// therefore gives a uniformly random permutation. The slot of output t in iteration k is number t
// of uniform_int on lane k.
#include <array>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <utility>

#include <keel/framework/data/internal/stage.h>
#include <keel/framework/random.h>

namespace keel::data {
namespace {

// Draws the numbers of RandomStream::uniform_int one at a time, each with its own bound.
class RandomDraws {
 public:
  RandomDraws(RandomStream stream, uint64_t lane) : stream_(stream), lane_(lane) {}

  int64_t next(int64_t places) {
    if (drawn_ % 2 == 0) words_ = stream_.bits(drawn_ / 2, lane_);
    const size_t half = 2 * (drawn_++ % 2);
    const uint64_t word = words_[half] | uint64_t{words_[half + 1]} << 32;
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>(static_cast<Wide>(word) * static_cast<uint64_t>(places) >> 64);
  }

 private:
  const RandomStream stream_;
  const uint64_t lane_;
  uint64_t drawn_ = 0;
  std::array<uint32_t, 4> words_ = {};
};

// The contents of the buffer.
class Slots {
 public:
  virtual ~Slots() = default;
  virtual void append(const Block& block) = 0;
  // For each i in order, takes out the element at places[i] and stores element i of `in` there.
  virtual Block exchange(std::span<const int64_t> places, const Block& in) = 0;
  // For each place in order, takes out its element and moves the last element there.
  virtual Block remove(std::span<const int64_t> places) = 0;
};

// Rows of one source, stored as positions.
class PositionSlots : public Slots {
 public:
  explicit PositionSlots(Element source) : source_(std::move(source)) {}

  void append(const Block& block) override {
    for (int64_t i = 0; i < block.count(); ++i) slots_.push_back(block.position(i));
  }
  Block exchange(std::span<const int64_t> places, const Block& in) override {
    std::vector<int64_t> out;
    out.reserve(places.size());
    for (const int64_t place : places) {
      const int64_t position = in.position(static_cast<int64_t>(out.size()));
      out.push_back(std::exchange(slots_[static_cast<size_t>(place)], position));
    }
    return Block::rows(source_, std::move(out));
  }
  Block remove(std::span<const int64_t> places) override {
    std::vector<int64_t> out;
    out.reserve(places.size());
    for (const int64_t place : places) {
      out.push_back(std::exchange(slots_[static_cast<size_t>(place)], slots_.back()));
      slots_.pop_back();
    }
    return Block::rows(source_, std::move(out));
  }

 private:
  const Element source_;
  std::vector<int64_t> slots_;
};

// Whole elements, which are added and removed one at a time.
class ElementSlots : public Slots {
 public:
  void append(const Block& block) override { slots_.push_back(block); }
  Block exchange(std::span<const int64_t> places, const Block& in) override {
    return std::exchange(slots_[static_cast<size_t>(places[0])], in);
  }
  Block remove(std::span<const int64_t> places) override {
    Block last = std::move(slots_.back());
    slots_.pop_back();
    const auto place = static_cast<size_t>(places[0]);
    return place == slots_.size() ? last : std::exchange(slots_[place], std::move(last));
  }

 private:
  std::vector<Block> slots_;
};

// One leaf of the buffered rows.
class StoredColumn {
 public:
  virtual ~StoredColumn() = default;
  virtual void append(const TensorLike& rows) = 0;
  virtual TensorLike exchange(std::span<const int64_t> places, const TensorLike& in) = 0;
  virtual TensorLike remove(std::span<const int64_t> places) = 0;
};

// Dense rows of `width` units each. A unit is a string, or a byte for all other dtypes.
template <class Unit>
class DenseColumn : public StoredColumn {
 public:
  explicit DenseColumn(const Tensor& first)
      : row_shape_(first.shape().without(0)),
        dtype_(first.dtype()),
        width_(static_cast<size_t>(row_shape_.size()) * (kStrings ? 1 : size_of(dtype_))) {}

  void append(const TensorLike& rows) override {
    const std::span<const Unit> in = units(rows);
    slots_.insert(slots_.end(), in.begin(), in.end());
  }
  TensorLike exchange(std::span<const int64_t> places, const TensorLike& in) override {
    const Unit* from = units(in).data();
    return take(places, [&](Unit* slot, auto width) {
      copy(from, slot, width);
      from += width_;
    });
  }
  TensorLike remove(std::span<const int64_t> places) override {
    const Unit* last = slots_.data() + slots_.size();
    TensorLike out = take(places, [&](Unit* slot, auto width) {
      last -= width_;
      if (slot != last) copy(last, slot, width);
    });
    slots_.resize(slots_.size() - places.size() * width_);
    return out;
  }

 private:
  static constexpr bool kStrings = std::is_same_v<Unit, std::string>;

  std::span<const Unit> units(const TensorLike& rows) const {
    const Tensor& t = rows.tensor();
    if (t.dtype() != dtype_ || t.shape().without(0) != row_shape_) {
      throw ValueError(
          "Dataset.shuffle: all elements must have the same shape and dtype, received ", row_shape_,
          " ", dtype_, " and ", t.shape().without(0), " ", t.dtype());
    }
    if constexpr (kStrings) {
      return t.data<std::string>();
    } else {
      return t.raw();
    }
  }

  template <class Width>
  static void copy(const Unit* from, Unit* to, Width width) {
    if constexpr (kStrings) {
      std::copy_n(from, static_cast<size_t>(width), to);
    } else {
      std::memcpy(to, from, static_cast<size_t>(width));
    }
  }

  // Copies the row of each place to the result and then calls refill(slot, width). The most common
  // widths are compile-time constants, so that each copy is a single move instruction.
  template <class Refill>
  Tensor take(std::span<const int64_t> places, Refill refill) {
    Tensor out =
        Tensor::uninitialized(row_shape_.inserted(0, static_cast<int64_t>(places.size())), dtype_);
    Unit* to = nullptr;
    if constexpr (kStrings) {
      to = out.mutable_data<std::string>().data();
    } else {
      to = out.mutable_raw().data();
    }
    const auto loop = [&](auto width) {
      for (const int64_t place : places) {
        Unit* slot = slots_.data() + static_cast<size_t>(place) * width_;
        if constexpr (kStrings) {
          std::move(slot, slot + width_, to);
        } else {
          copy(slot, to, width);
        }
        refill(slot, width);
        to += width_;
      }
    };
    if (width_ == 0) return out;
    if (width_ == 4) {
      loop(std::integral_constant<size_t, 4>());
    } else if (width_ == 8) {
      loop(std::integral_constant<size_t, 8>());
    } else {
      loop(width_);
    }
    return out;
  }

  const Shape row_shape_;
  const DType dtype_;
  const size_t width_;
  std::vector<Unit> slots_;
};

// Ragged and sparse rows, which differ in size, stored one by one.
class RowsColumn : public StoredColumn {
 public:
  void append(const TensorLike& rows) override {
    for (int64_t i = 0, n = row_count(rows); i < n; ++i)
      slots_.emplace_back(slice_rows(rows, i, i + 1));
  }
  TensorLike exchange(std::span<const int64_t> places, const TensorLike& in) override {
    std::vector<Tensors> out;
    for (const int64_t place : places) {
      const auto i = static_cast<int64_t>(out.size());
      out.push_back(std::exchange(slots_[static_cast<size_t>(place)], slice_rows(in, i, i + 1)));
    }
    return concat_rows(out).leaf();
  }
  TensorLike remove(std::span<const int64_t> places) override {
    std::vector<Tensors> out;
    for (const int64_t place : places) {
      out.push_back(slots_[static_cast<size_t>(place)]);
      slots_[static_cast<size_t>(place)] = slots_.back();
      slots_.pop_back();
    }
    return concat_rows(out).leaf();
  }

 private:
  std::vector<Tensors> slots_;  // each of one row
};

// Rows from several sources, stored by value so that the buffer does not keep the sources alive.
class RowSlots : public Slots {
 public:
  void append(const Block& block) override {
    const Tensors rows = block.gathered();
    if (columns_.empty()) make_columns(rows);
    for_each_column(rows,
                    [](StoredColumn& column, const TensorLike& leaf) { column.append(leaf); });
  }
  Block exchange(std::span<const int64_t> places, const Block& in) override {
    std::vector<TensorLike> out;
    for_each_column(in.gathered(), [&](StoredColumn& column, const TensorLike& leaf) {
      out.push_back(column.exchange(places, leaf));
    });
    return packed(out, places);
  }
  Block remove(std::span<const int64_t> places) override {
    std::vector<TensorLike> out;
    for (const auto& column : columns_) out.push_back(column->remove(places));
    return packed(out, places);
  }

 private:
  void make_columns(const Tensors& rows) {
    structure_ = map_structure(rows, [](const TensorLike&) { return true; });
    for_each_leaf(rows, [&](const std::string&, const TensorLike& leaf) {
      if (leaf.layout() != Layout::kDense) {
        columns_.push_back(std::make_unique<RowsColumn>());
      } else if (leaf.tensor().dtype() == DType::kString) {
        columns_.push_back(std::make_unique<DenseColumn<std::string>>(leaf.tensor()));
      } else {
        columns_.push_back(std::make_unique<DenseColumn<std::byte>>(leaf.tensor()));
      }
    });
  }
  template <class Fn>
  void for_each_column(const Tensors& rows, Fn fn) {
    assert_same_structure(structure_, rows);
    size_t i = 0;
    for_each_leaf(rows,
                  [&](const std::string&, const TensorLike& leaf) { fn(*columns_[i++], leaf); });
  }
  Block packed(const std::vector<TensorLike>& leaves, std::span<const int64_t> places) const {
    return Block::rows(std::make_shared<const Tensors>(pack_sequence_as(structure_, leaves)), 0,
                       static_cast<int64_t>(places.size()));
  }

  Nest<bool> structure_;
  std::vector<std::unique_ptr<StoredColumn>> columns_;
};

class ShuffleIterator : public BlockIterator {
 public:
  ShuffleIterator(std::unique_ptr<BlockIterator> input, Element source, int64_t buffer_size,
                  RandomDraws draws)
      : input_(std::move(input)),
        source_(std::move(source)),
        buffer_size_(buffer_size),
        draws_(draws) {}

  std::optional<Block> next(int64_t most) override {
    fill();
    if (size_ == 0) return std::nullopt;
    most = whole_ ? 1 : std::min(most, kBlockRows);
    if (size_ == buffer_size_ && !ended_) {
      if (const std::optional<Block> in = input_->next(most)) {
        return slots_->exchange(draw(in->count(), 0), *in);
      }
      ended_ = true;
    }
    Block out = slots_->remove(draw(std::min(most, size_), 1));
    size_ -= out.count();
    return out;
  }

 private:
  void fill() {
    while (size_ < buffer_size_ && !ended_) {
      const std::optional<Block> in = input_->next(std::min(buffer_size_ - size_, kBlockRows));
      if (!in) {
        ended_ = true;
        return;
      }
      if (slots_ == nullptr) make_slots(in->is_whole());
      slots_->append(*in);
      size_ += in->count();
    }
  }

  void make_slots(bool whole) {
    whole_ = whole;
    if (whole) {
      slots_ = std::make_unique<ElementSlots>();
    } else if (source_ != nullptr) {
      slots_ = std::make_unique<PositionSlots>(source_);
    } else {
      slots_ = std::make_unique<RowSlots>();
    }
  }

  // Draws `count` places from a buffer that shrinks by `shrink` elements with each.
  std::span<const int64_t> draw(int64_t count, int64_t shrink) {
    places_.clear();
    for (int64_t i = 0; i < count; ++i) places_.push_back(draws_.next(size_ - i * shrink));
    return places_;
  }

  const std::unique_ptr<BlockIterator> input_;
  const Element source_;  // source of all blocks of the input, or null
  const int64_t buffer_size_;
  RandomDraws draws_;
  std::unique_ptr<Slots> slots_;
  bool whole_ = false;
  int64_t size_ = 0;  // elements in the buffer
  bool ended_ = false;
  std::vector<int64_t> places_;
};

class ShuffleStage : public Stage {
 public:
  ShuffleStage(StagePtr input, int64_t buffer_size, const ShuffleOptions& options)
      : Stage(std::move(input)),
        buffer_size_(buffer_size),
        reshuffle_(options.reshuffle_each_iteration),
        stream_(next_random_stream(options.seed)) {}

  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    const uint64_t iteration = reshuffle_ ? run.numbers->at(this) + run.epoch : 0;
    return std::make_unique<ShuffleIterator>(input().iterate(run), input().source(), buffer_size_,
                                             RandomDraws(stream_, iteration));
  }
  int64_t unbatched_cardinality() const override { return input().unbatched_cardinality(); }
  Element source() const override { return input().source(); }
  void reserve(uint64_t epochs, std::map<const Stage*, uint64_t>& numbers) const override {
    numbers[this] = iterations_.fetch_add(epochs);
    Stage::reserve(epochs, numbers);
  }

 private:
  const int64_t buffer_size_;
  const bool reshuffle_;
  const RandomStream stream_;
  mutable std::atomic<uint64_t> iterations_ = 0;
};

}  // namespace

StagePtr shuffle_stage(StagePtr input, int64_t buffer_size, const ShuffleOptions& options) {
  if (buffer_size < 1) {
    throw ValueError("Dataset.shuffle: buffer_size must be at least 1, received ", buffer_size);
  }
  return std::make_shared<ShuffleStage>(std::move(input), buffer_size, options);
}

}  // namespace keel::data
