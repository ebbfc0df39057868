// PrefetchQueue: encoded batches that one replica will look up, known by their tensors.
#pragma once

#include <optional>
#include <vector>

#include <keel/framework/tensor_like.h>

namespace keel {

// The tensors that features and weights are made of. Kept, so that no others take their memory.
struct BatchKey {
  std::vector<TensorSpec> specs;
  std::vector<Tensor> parts;

  BatchKey(const Tensors& features, const std::optional<Nest<std::optional<TensorLike>>>& weights);
  // By identity, not by contents.
  bool operator==(const BatchKey& other) const;
};

template <class Batch>
class PrefetchQueue {
 public:
  // Keeps the last two.
  void add(BatchKey key, Batch batch) {
    if (entries_.size() == 2) entries_.erase(entries_.begin());
    entries_.push_back({std::move(key), std::move(batch)});
  }
  // Those announced before it are not asked for any more.
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
