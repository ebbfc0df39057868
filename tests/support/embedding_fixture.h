// Small embedding tables and batches for tests, and lookups of one feature on the host and on the
// engine.
//
// The standard fixture has the tables video, 8 x 4, sum, and user, 16 x 2, mean. Both hold 0, 1, 2,
// ... row by row. The features watched and favorited look up video, and friends looks up user. A
// batch has four rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>

#include "tests/support/tensors.h"

namespace keel::fixture {

using namespace testing_support;  // NOLINT: the tensors are what fixtures consist of

// Expects the shape and the `values`, in row-major order, with |a - b| <= atol + rtol |b|.
void expect_tensor(const Tensor& tensor, const Shape& shape, const std::vector<double>& values,
                   double rtol = 2e-5, double atol = 2e-6);
// Expects the rows of a [rows, columns] tensor.
void expect_rows(const Tensor& tensor, const std::vector<std::vector<double>>& rows,
                 double rtol = 2e-5, double atol = 2e-6);

// One feature, named "f", with its own table.
struct OneFeature {
  Tensor table_values;
  TensorLike input;
  std::optional<TensorLike> weights = {};
  TableConfig table = {};      // vocabulary_size and dim are those of table_values
  FeatureConfig feature = {};  // its table is the one above
};
Tensor look_up_on_host(const OneFeature& one);
// Every core looks up the same batch. Returns the activations of the last core.
Tensor look_up_on_engine(const OneFeature& one, int cores = 3);
// Looks up the batch under a TPUStrategy without an engine.
Tensor look_up_on_v0(const OneFeature& one, int cores = 3);

// The standard fixture.
struct Standard {
  Table video = make_table({.vocabulary_size = 8, .dim = 4, .combiner = "sum", .name = "video"});
  Table user = make_table({.vocabulary_size = 16, .dim = 2, .name = "user"});

  // Features with sequences of this many steps on video and on user; 0: pooled.
  Nest<FeatureConfig> features(int64_t video_steps = 0, int64_t user_steps = 0) const;
  // Rows [begin, end) of the batch.
  static Tensors sparse_batch(int64_t begin = 0, int64_t end = 4);
  static Tensors ragged_batch(int64_t begin = 0, int64_t end = 4);
  layers::TPUEmbedding unbuilt_layer(const EmbeddingOptimizer& optimizer = "sgd") const;
  // Fills the tables of a built layer.
  void load(const layers::TPUEmbedding& layer) const;
  // Returns a layer built for batches like `like`, with filled tables.
  layers::TPUEmbedding layer(const EmbeddingOptimizer& optimizer, const Tensors& like,
                             int64_t video_steps = 0, int64_t user_steps = 0) const;
};
// Returns the sum over all features of the sums of squares, divided by `rows`.
Tensor squares_loss(const Tensors& activations, double rows);
// Returns the values of a state entry of the layer: "video", "video/accumulators".
Tensor state_of(const layers::TPUEmbedding& layer, const std::string& name);

}  // namespace keel::fixture
