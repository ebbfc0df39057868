// The setting of a step in bench_growth: its tables, and batches that look them up.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/support/data.h"

namespace keel::bench {

struct GrowthSetting {
  std::string strategy = "tpu";
  // Keras optimizers: "sgd", "adagrad", "adam", "ftrl". "adam_lazy_rows", "ftrl_lazy_rows" and
  // "adam_replayed" compute the same values but update only rows that are read.
  std::string optimizer = "sgd";
  int64_t vocabulary = 1'000'000;  // rows of each table
  int64_t samples = 2048;
  int tables = 1;
  int replicas = 1;  // replicas of the TPU strategy

  // Returns the number of slot variables of the optimizer.
  int slots() const;
};

class GrowthBatches {
 public:
  explicit GrowthBatches(const GrowthSetting& setting);

  std::vector<BagBatch> draw();  // by table
  int64_t ids() const;           // ids per batch

 private:
  const int64_t samples_;
  const int tables_;
  const RowIds rows_;
  Random random_ = Random(3);
};

// Returns the number of distinct rows that the ids of a batch select.
int64_t rows_of_batch(const GrowthSetting& setting);

}  // namespace keel::bench
