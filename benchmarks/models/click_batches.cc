#include "benchmarks/models/click_work.h"
#include "benchmarks/support/data.h"

namespace keel::bench {

std::vector<ClickBatch> make_click_batches(const ClickWork& work, int count, int64_t samples,
                                           uint64_t seed) {
  Random random(seed);
  std::vector<RowIds> columns;
  for (int64_t rows : work.rows) columns.emplace_back(rows, Popularity::kZipf);
  std::vector<ClickBatch> out(count);
  for (ClickBatch& batch : out) {
    batch.samples = samples;
    for (int64_t i = 0; i < samples * kNumbers; ++i) {
      batch.numbers.push_back(static_cast<float>(2 * random.unit() - 1));
    }
    for (const RowIds& column : columns) {
      std::vector<int64_t>& ids = batch.ids.emplace_back(samples * work.bag);
      for (int64_t& id : ids) id = column(random);
    }
    for (int64_t i = 0; i < samples; ++i) {
      batch.labels.push_back(random.unit() < 0.25 ? 1.0F : 0.0F);
    }
  }
  return out;
}

}  // namespace keel::bench
