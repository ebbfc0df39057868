// Random configurations of embedding tables, features, batches and gradients. A case depends only
// on its seed, and is available as values for the naive reference and as tensors for the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/framework/nest.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/tpu_embedding.h>

#include "tests/support/naive_embedding.h"

namespace keel::naive {

// A random generator with the same sequence on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed);
  uint64_t next();
  int64_t between(int64_t low, int64_t high);  // in [low, high]
  bool chance(double probability);
  double real(double low, double high);  // representable as float32
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[between(0, static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  uint64_t state_;
};

struct RandomTable {
  Rows values;
  Optimizer optimizer;
  double rate = 0.1;
  std::string combiner;
  std::optional<Quantization> quantization;
};

struct RandomFeature {
  int table = 0;
  Feature rules;
  Kind kind = Kind::kDense;
  std::vector<int64_t> shape;  // shape of the input: [batch], [batch, 1], [batch, width], ...
  bool weighted = false;
  bool int32_ids = false;
};

// The batch of one replica in one step, by feature. The loss does not depend on a feature without a
// gradient.
struct RandomBatch {
  std::vector<Ids> ids;
  std::vector<Rows> gradients;
};

struct RandomCase {
  uint64_t seed = 0;
  Rules rules = Rules::kHost;
  int hosts = 1, cores = 1;
  bool pipelined = false;  // engine: updates run one step late
  std::vector<RandomTable> tables;
  std::vector<RandomFeature> features;
  Nest<int> structure;                          // leaves are positions in `features`, in order
  std::vector<std::vector<RandomBatch>> steps;  // [step][replica]

  int replicas() const { return hosts * cores; }
  std::string describe() const;
};
// Returns the case of a seed. It has one step for kHost and kV0, and up to four for kEngine.
RandomCase random_case(uint64_t seed, Rules rules);

// Conversions to the library's types.
EmbeddingOptimizer optimizer_of(const Optimizer& optimizer, double rate);
Tensor tensor_of(const Rows& rows, const Shape& shape);
TensorLike ids_of(const RandomFeature& feature, const Ids& ids);
std::optional<TensorLike> weights_of(const Ids& ids);
// `tables[t]` is the object of table t, which is named "t<t>".
Nest<FeatureConfig> feature_config_of(const RandomCase& random, const std::vector<Table>& tables);
std::vector<Table> tables_of(const RandomCase& random);

}  // namespace keel::naive
