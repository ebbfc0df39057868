// The state of an EngineSession. Private to its sources.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/tables/internal/engine_session.h>
#include <keel/layers/embedding/tables/internal/invalid_id_counter.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/embedding/tables/internal/prefetch_queue.h>

namespace keel {

// Returns the learning rate that the optimizer follows.
inline const LearningRate& rate_source(const TableOptimizerState& optimizer) {
  return optimizer.source == nullptr ? optimizer.learning_rate
                                     : optimizer.source->learning_rate_source();
}

// Returns true if reading the learning rate calls a function of the user.
inline bool calls_user_code(const TableOptimizerState& optimizer) {
  return rate_source(optimizer).callable() != nullptr;
}

struct EngineSession::State {
  const TableSet tables;
  const Nest<FeatureConfig> features;
  const EngineSessionOptions options;
  distribute::Strategy& strategy;
  const std::weak_ptr<const void> strategy_lifetime;
  const std::vector<FeatureConfig> configs;  // by feature
  const std::vector<std::string> paths;      // by feature
  InvalidIdCounter counter;
  LookupCounter lookup_counter;
  std::atomic<bool> counts_lookups = false;
  std::vector<std::atomic<bool>> warned;              // by feature: a missing gradient was reported
  std::vector<PrefetchQueue<Batch>> prefetched = {};  // by local replica
  std::string record = {};
  std::shared_ptr<distribute::EmbeddingEngine> engine = nullptr;
  // Set last, because replicas may read it while another one builds.
  std::atomic<bool> built = false;

  const TableOptimizerState& optimizer(size_t table) const {
    return optimizer_of(*tables.tables[table].own);
  }
  int64_t rows(int table) const { return tables.tables[table].own->vocabulary_size; }
  distribute::EngineConfiguration configuration(const std::vector<Shape>& output_shapes) const;
  // Returns the first table whose optimizer equals that of this table.
  size_t first_of_same_optimizer(size_t table) const;
  // By table: the first table with which it shares a learning rate; unset for constant rates.
  std::vector<std::optional<size_t>> first_of_same_rate() const;
  // By table: the initializers of the slots; empty if the optimizer's own initial values apply.
  std::vector<std::vector<Initializer>> slot_initializers() const;
  void initialize(distribute::EmbeddingEngine& made,
                  const std::vector<std::vector<Initializer>>& slots,
                  const std::map<std::string, Tensor>& restored) const;
  std::string entry_name(size_t table, size_t part) const;
  std::vector<distribute::TableStep> steps(distribute::Communicator& communicator) const;
  // Returns the strategy's live engine, which another object may have built, after it has run its
  // pending updates; null if there is none.
  std::shared_ptr<distribute::EmbeddingEngine> drained_engine() const;
  // Returns that engine and the position in it of the table that matches this session's table and
  // has this part. Throws RuntimeError if there is none.
  std::pair<std::shared_ptr<distribute::EmbeddingEngine>, int> drained_table(int table,
                                                                             int part) const;
  // Calls fn(first, end) for runs of contiguous rows that cover the rows of this process, in
  // ascending order, limited to the first `rows` rows: the engine may have padded the table.
  template <class Fn>
  static void for_each_run(const distribute::LocalRows& local, int64_t rows, const Fn& fn) {
    if (local.is_run()) {
      fn(std::min(local.first_row(), rows), std::min(local.first_row() + local.count(), rows));
      return;
    }
    for (int64_t position = 0; position < local.count(); ++position) {
      const int64_t row = local.row_at(position);
      if (row < rows) fn(row, row + 1);
    }
  }
  // Returns access to the rows of this process; unset if they are not contiguous. The state entry
  // then reads and writes the whole table.
  std::optional<StateEntry::Rows> row_access(const EngineSession& self, int table, int part) const;
  std::vector<LookupCounter::Part> parts_of(const Batch& batch) const;
  template <class BagsOf>
  Batch encode(const Tensors& inputs, const FeatureWeights& weights,
               const std::vector<bool>& by_position, const BagsOf& fn);
};

}  // namespace keel
