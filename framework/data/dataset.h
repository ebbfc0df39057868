// Dataset: a stream of elements, nested structures of tensors, made and reshaped lazily
// (tf.data). A dataset is an immutable recipe: each iterator() runs it from the start.
//
//   auto train = data::Dataset::from_tensor_slices(Tensors::tuple({features, labels}))
//                    .shuffle(100'000, {.seed = 7})
//                    .batch(256, {.drop_remainder = true})
//                    .prefetch(2);
//   for (const Tensors& batch : train) ...
//
// Order is a function of the recipe and its seeds alone, whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <keel/framework/tensor_like.h>

namespace keel::data {

inline constexpr int64_t kInfinite = -1;            // cardinality of an endless dataset
inline constexpr int64_t kUnknownCardinality = -2;  // known only by running it

// Runs a dataset once. Not thread safe.
class Iterator {
 public:
  virtual ~Iterator() = default;
  // The next element; nothing at the end, and ever after. An error thrown here ends it too.
  virtual std::optional<Tensors> next() = 0;
};

struct ShuffleOptions {
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  // A new order each time the dataset is iterated: the k-th iteration of this Dataset (copies
  // included) uses (seed, k). False: the same order every time.
  bool reshuffle_each_iteration = true;
};

struct BatchOptions {
  bool drop_remainder = false;  // drop a last batch that is not full
};

class Dataset {
 public:
  // One element: the structure itself.
  static Dataset from_tensors(Tensors element);
  // One element per row of the leaves, which share their first dimension (ValueError). Ragged and
  // sparse leaves are cut along their first dimension too.
  static Dataset from_tensor_slices(Tensors rows);
  // Elements from `make()`, called once for each iteration: a function that returns elements of
  // one structure until it returns nothing. `cardinality` is what len() reports.
  using Generator = std::function<std::optional<Tensors>()>;
  static Dataset from_generator(std::function<Generator()> make,
                                int64_t cardinality = kUnknownCardinality);

  // fn of each element. Called in order, by the thread that iterates.
  Dataset map(std::function<Tensors(const Tensors&)> fn) const;
  Dataset filter(std::function<bool(const Tensors&)> keep) const;
  // Draws from a buffer of the next `buffer_size` elements at random (ValueError unless > 0): each
  // output is any of the buffer with equal chance, and the next element takes its place.
  Dataset shuffle(int64_t buffer_size, ShuffleOptions options = {}) const;
  // Stacks `batch_size` consecutive elements: dense [..] -> [batch, ..]; ragged rows are joined (as
  // an element of a generator or map, a row is a RaggedTensor of one row); a sparse [w] becomes
  // [batch, w]. ValueError, with the path, for shapes that differ.
  Dataset batch(int64_t batch_size, BatchOptions options = {}) const;
  Dataset unbatch() const;  // rows of batches become elements again
  Dataset repeat(int64_t count = kInfinite) const;
  Dataset take(int64_t count) const;
  Dataset skip(int64_t count) const;
  Dataset shard(int64_t num_shards, int64_t index) const;  // elements index, index + num_shards, ..
  // Makes up to `buffer_size` elements ahead on a thread of its own. An error made there is
  // thrown by next() at its place in the order; dropping the iterator stops the thread.
  Dataset prefetch(int64_t buffer_size) const;

  std::unique_ptr<Iterator> iterator() const;
  int64_t cardinality() const;  // elements, kInfinite or kUnknownCardinality

  // For range-for: begin() starts an iteration.
  class RangeIterator {
   public:
    explicit RangeIterator(std::unique_ptr<Iterator> it);
    const Tensors& operator*() const { return *element_; }
    RangeIterator& operator++();
    bool operator!=(std::nullptr_t) const { return element_.has_value(); }

   private:
    std::unique_ptr<Iterator> it_;
    std::optional<Tensors> element_;
  };
  RangeIterator begin() const { return RangeIterator(iterator()); }
  std::nullptr_t end() const { return nullptr; }

  // A stage of the recipe; defined in stage.h.
  class Stage;

 private:
  explicit Dataset(std::shared_ptr<const Stage> stage);
  std::shared_ptr<const Stage> stage_;
};

}  // namespace keel::data
