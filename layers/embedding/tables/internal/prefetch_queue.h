// PrefetchQueue: the encoded batches that one replica has prefetched, keyed by their tensors.
#pragma once

#include <optional>
#include <vector>

#include <keel/framework/tensor_like.h>

namespace keel {

// The tensors of the features and weights of one batch. Keeps them alive, so that no other tensor
// can reuse their memory while the key is compared by address.
struct BatchKey {
  std::vector<TensorSpec> specs;
  std::vector<Tensor> parts;

  BatchKey(const Tensors& features, const std::optional<Nest<std::optional<TensorLike>>>& weights);
  // Compares tensors by identity, not by contents.
  bool operator==(const BatchKey& other) const;
};

// A queue of at most two batches. Not thread-safe.
template <class Batch>
class PrefetchQueue {
 public:
  // Appends a batch. Drops the oldest if there are two already.
  void add(BatchKey key, Batch batch) {
    if (entries_.size() == 2) entries_.erase(entries_.begin());
    entries_.push_back({std::move(key), std::move(batch)});
  }
  // Removes and returns the batch with this key; unset if there is none. Also drops the batches
  // added before it, because lookups follow the order of prefetches.
  std::optional<Batch> take(const BatchKey& key) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (!(it->key == key)) continue;
      std::optional<Batch> out(std::move(it->batch));
      entries_.erase(entries_.begin(), it + 1);
      return out;
    }
    return {};
  }
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    BatchKey key;
    Batch batch;
  };
  std::vector<Entry> entries_;
};

}  // namespace keel
