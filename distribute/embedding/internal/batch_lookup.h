// BatchLookup: looks up the batches of one replica of an EmbeddingEngine.
#pragma once

#include <string>
#include <vector>

#include <keel/distribute/embedding/internal/engine_tables.h>
#include <keel/distribute/embedding/internal/remote_rows.h>

namespace keel::distribute {

// Keeps its buffers from lookup to lookup.
class BatchLookup {
 public:
  explicit BatchLookup(const EngineTables& tables) : tables_(tables) {}

  // Fetches the rows that other processes hold, and pools the rows of each feature. Features f with
  // a tensor values[f] have been pooled already. `keyed` is that of the ticket. No replica may
  // write rows meanwhile. Collective.
  std::vector<Tensor> run(Communicator& communicator, const std::vector<FeatureBatch>& features,
                          std::span<const std::shared_ptr<KeyedLookup>> keyed,
                          std::vector<Tensor> values);

 private:
  void fetch(Communicator& communicator, const std::vector<FeatureBatch>& features);
  void pool_by_pointer(size_t feature, const FeatureBatch& batch, const KeyedLookup* keyed,
                       std::vector<int64_t>& next_remote, float* out);

  const EngineTables& tables_;
  RemoteRows remote_;
  std::vector<std::vector<int64_t>> elsewhere_;  // by table: ids of rows that other processes hold
  std::vector<const float*> rows_;               // by position of one feature
  std::vector<float> copies_;                    // by position of one feature
};

}  // namespace keel::distribute
