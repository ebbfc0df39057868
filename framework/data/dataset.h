// Dataset: a stream of elements, which are nested structures of tensors, created and transformed
// lazily (tf.data). A dataset is an immutable description; each iterator() runs it from the start.
//
//   auto train = data::Dataset::from_tensor_slices(Tensors::tuple({features, labels}))
//                    .shuffle(100'000, {.seed = 7})
//                    .batch(256, {.drop_remainder = true})
//                    .prefetch(2);
//   for (const Tensors& batch : train) ...
//
// The order of the elements depends only on the description and its seeds, not on the number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <keel/framework/tensor_like.h>

namespace keel::data {

inline constexpr int64_t kInfinite = -1;            // cardinality of an infinite dataset
inline constexpr int64_t kUnknownCardinality = -2;  // known only by running the dataset

// Runs a dataset once. Not thread safe.
class Iterator {
 public:
  virtual ~Iterator() = default;
  // Returns the next element, or nullopt at the end and on every later call. An exception also ends
  // the iteration.
  virtual std::optional<Tensors> next() = 0;
};

// Options of Dataset::shuffle().
struct ShuffleOptions {
  std::optional<int64_t> seed = {};  // if unset, the next stream of the program (random.h)
  // If true, the order changes with every iteration: the k-th iteration of this Dataset and its
  // copies uses (seed, k). If false, every iteration has the same order.
  bool reshuffle_each_iteration = true;
};

// Options of Dataset::batch().
struct BatchOptions {
  bool drop_remainder = false;  // drop the last batch if it has fewer than batch_size elements
};

// An immutable description of a stream of elements. Copies are cheap and share iteration counts.
// Methods that make a dataset throw ValueError for an empty function and for an argument that is
// out of range.
class Dataset {
 public:
  // Makes a dataset with one element, the structure itself.
  static Dataset from_tensors(Tensors element);
  // Makes a dataset with one element per row of the leaves: each leaf, also a ragged or sparse one,
  // is split along its first dimension. Throws ValueError unless all leaves have the same number of
  // rows.
  static Dataset from_tensor_slices(Tensors rows);
  // Returns the next element, or nullopt at the end. All elements have one structure.
  using Generator = std::function<std::optional<Tensors>()>;
  // Makes a dataset from a generator. Each iteration calls `make()` once and takes the elements
  // from the function that it returns. `cardinality` is the value that cardinality() reports.
  static Dataset from_generator(std::function<Generator()> make,
                                int64_t cardinality = kUnknownCardinality);

  // Applies `fn` to each element. `fn` is called in order, on the thread that iterates.
  Dataset map(std::function<Tensors(const Tensors&)> fn) const;
  // Keeps the elements for which `keep` returns true.
  Dataset filter(std::function<bool(const Tensors&)> keep) const;
  // Shuffles the elements through a buffer of `buffer_size` elements. Each output is drawn from the
  // buffer with equal probability, and the next input element takes its place.
  Dataset shuffle(int64_t buffer_size, ShuffleOptions options = {}) const;
  // Stacks `batch_size` consecutive elements:
  // - dense leaves of shape [...] become [batch, ...];
  // - sparse leaves of shape [w] become [batch, w];
  // - ragged leaves, which must have one row in each element, become a ragged leaf of `batch` rows.
  // While iterating, throws ValueError if shapes differ and TypeError if dtypes or layouts differ,
  // with the path of the leaf.
  Dataset batch(int64_t batch_size, BatchOptions options = {}) const;
  // Splits each element into its rows; the inverse of batch().
  Dataset unbatch() const;
  // Repeats the dataset `count` times, or forever if `count` is kInfinite.
  Dataset repeat(int64_t count = kInfinite) const;
  // Keeps the first `count` elements.
  Dataset take(int64_t count) const;
  // Drops the first `count` elements.
  Dataset skip(int64_t count) const;
  // Keeps the elements at positions index, index + num_shards, index + 2 num_shards, ...
  Dataset shard(int64_t num_shards, int64_t index) const;
  // Produces up to `buffer_size` elements in advance on a separate thread. If producing an element
  // throws, next() rethrows at that element's position. Destroying the iterator stops the thread.
  Dataset prefetch(int64_t buffer_size) const;

  // Starts an iteration.
  std::unique_ptr<Iterator> iterator() const;
  int64_t cardinality() const;  // number of elements, kInfinite or kUnknownCardinality

  // The iterator of range-based for loops.
  class RangeIterator {
   public:
    explicit RangeIterator(std::unique_ptr<Iterator> it);   // reads the first element
    const Tensors& operator*() const { return *element_; }  // the current element
    RangeIterator& operator++();                            // reads the next element
    bool operator!=(std::nullptr_t) const { return element_.has_value(); }  // false at the end

   private:
    std::unique_ptr<Iterator> it_;
    std::optional<Tensors> element_;
  };
  RangeIterator begin() const { return RangeIterator(iterator()); }  // starts an iteration
  std::nullptr_t end() const { return nullptr; }                     // the sentinel

  // A stage of the description; defined in stage.h.
  class Stage;

 private:
  explicit Dataset(std::shared_ptr<const Stage> stage);
  std::shared_ptr<const Stage> stage_;
};

}  // namespace keel::data
