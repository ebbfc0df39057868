// A click data set drawn from a known model, so that the best possible AUC is known too.
#pragma once

#include <cstdint>
#include <filesystem>

namespace keel::examples {

struct SyntheticOptions {
  int64_t train_rows = 100'000;
  int64_t test_rows = 20'000;
  uint64_t seed = 1;
};

// Writes train.csv, test.csv and schema.json into `folder`, in the layout that read_ctr_csv reads:
// columns label; age, price, hour (numeric); user, item, device, country (categorical). Ids follow
// a power law. A click has the probability sigmoid(bias + a weight per user, item, device and
// country + the product of a user's and an item's hidden vectors + smooth terms in the numbers).
// Returns the AUC of those true probabilities on the test rows: no model can expect to do better.
double write_synthetic_ctr(const std::filesystem::path& folder, const SyntheticOptions& options);

}  // namespace keel::examples
