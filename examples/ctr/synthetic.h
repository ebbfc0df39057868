// Creates a click data set from a known model, so that the best possible AUC is known.
#pragma once

#include <cstdint>
#include <filesystem>

namespace keel::examples {

struct SyntheticOptions {
  int64_t train_rows = 100'000;
  int64_t test_rows = 20'000;
  uint64_t seed = 1;
};

// Writes train.csv, test.csv and schema.json to `folder` in the layout that read_ctr_csv reads. The
// columns are label; age, price, hour (numeric); user, item, device, country (categorical). Ids
// follow a power law. The probability of a click is sigmoid(bias + a weight per user, item, device
// and country + the dot product of a user's and an item's hidden vectors + smooth functions of the
// numeric columns). Returns the AUC of these probabilities on the test rows: the expected AUC of a
// model cannot be higher.
double write_synthetic_ctr(const std::filesystem::path& folder, const SyntheticOptions& options);

}  // namespace keel::examples
