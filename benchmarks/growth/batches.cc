#include "benchmarks/growth/batches.h"

#include <algorithm>

namespace keel::bench {
namespace {

constexpr int64_t kBag = 10;

}  // namespace

int GrowthSetting::slots() const {
  if (optimizer == "sgd") return 0;
  return optimizer == "adagrad" ? 1 : 2;
}

GrowthBatches::GrowthBatches(const GrowthSetting& setting)
    : samples_(setting.samples),
      tables_(setting.tables),
      rows_(setting.vocabulary, Popularity::kZipf) {}

std::vector<BagBatch> GrowthBatches::draw() {
  std::vector<BagBatch> out;
  for (int t = 0; t < tables_; ++t) {
    out.push_back(make_bags(rows_, samples_, kBag, false, random_));
  }
  return out;
}

int64_t GrowthBatches::ids() const { return samples_ * kBag * tables_; }

int64_t rows_of_batch(const GrowthSetting& setting) {
  int64_t rows = 0;
  for (BagBatch& bags : GrowthBatches(setting).draw()) {
    std::ranges::sort(bags.ids);
    rows += std::ranges::unique(bags.ids).begin() - bags.ids.begin();
  }
  return rows;
}

}  // namespace keel::bench
