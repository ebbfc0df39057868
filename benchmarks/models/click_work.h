// Click models that Keel and the peer train and serve in the same way, and their batches.
//
//   DLRM         13 numbers -> 512-256-64-d; one vector of d for each of 26 columns; dot
//                products of all pairs; d + 351 -> 512-256-1
//   Wide & Deep  26 d + 13 -> 1024-512-256-1, plus a linear part: one number per id, 13 weights
//   DCN          26 d + 13 -> two full cross layers -> 512-256-1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>

namespace keel::bench {

enum class ModelKind { kDlrm, kWideAndDeep, kDcn };
std::string name_of(ModelKind kind);

inline constexpr int64_t kNumbers = 13;  // dense features of a sample
inline constexpr int64_t kColumns = 26;  // categorical columns of a sample

struct ClickWork {
  ModelKind model = ModelKind::kDlrm;
  int64_t dim = 16;
  std::vector<int64_t> rows = {};  // rows of the table of each column
  int64_t bag = 1;                 // ids of a sample in a column, summed
  bool adagrad = false;            // optimizer of the tables; all other weights use SGD
  double learning_rate = 0.01;
  bool bfloat16 = false;  // products in bfloat16, weights in float32
  // Set: Keel's tables are for unbounded ids. If they evict rows, a table's capacity is its number
  // of rows times capacity_factor.
  std::optional<DynamicVocabulary> dynamic = {};
  double capacity_factor = 1;
};

struct ClickBatch {
  int64_t samples = 0;
  std::vector<float> numbers;             // [samples, kNumbers]
  std::vector<std::vector<int64_t>> ids;  // by column: [samples, bag]
  std::vector<float> labels;              // [samples]
};
// Ids by Zipf's law.
std::vector<ClickBatch> make_click_batches(const ClickWork& work, int count, int64_t samples,
                                           uint64_t seed);

// The widths of a tower of dense layers.
struct Tower {
  int64_t input = 0;
  std::vector<int64_t> widths = {};
};
Tower bottom_tower(const ClickWork& work);  // DLRM only
Tower top_tower(const ClickWork& work);

// Return the floating-point operations of the products for one sample: forward only, and a training
// step.
double forward_flops(const ClickWork& work);
double training_flops(const ClickWork& work);

// The initial values for Keel and the peer. Dense values are in the order of the layers above:
// kernel [in, out] and bias of each layer, with those of the linear part last.
struct StartValues {
  std::vector<std::vector<float>> dense;
  std::vector<std::vector<float>>
      tables;  // by column; for Wide & Deep followed by those of the linear part
};

}  // namespace keel::bench
