#include "tests/conformance/case_inputs.h"

#include <keel/distribute/tpu/tpu_strategy.h>

namespace keel::conformance {
namespace {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using distribute::TPUStrategyOptions;

constexpr TPUStrategyOptions kAccelerators[] = {{.num_hosts = 1, .num_cores = 1},
                                                {.num_hosts = 1, .num_cores = 3},
                                                {.num_hosts = 2, .num_cores = 2}};

std::vector<float> floats_of(const Config& list) {
  std::vector<float> out;
  for (const Config& item : list.items()) out.push_back(static_cast<float>(item.number()));
  return out;
}

Tensor vector_of(const std::vector<int64_t>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}
Tensor vector_of(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

}  // namespace

FeatureInput sparse_input(Fields& fields) {
  const std::vector<int64_t> shape = integers_of(fields.need("dense_shape"));
  std::vector<int64_t> indices;
  for (const Config& index : fields.need("indices").items()) {
    for (int64_t i : integers_of(index)) indices.push_back(i);
  }
  const Tensor values = vector_of(integers_of(fields.need("values")));
  SparseTensor ids = {
      .indices = Tensor::from(indices, {values.size(), static_cast<int64_t>(shape.size())}),
      .values = values,
      .dense_shape = Shape(shape)};
  const Config* weights = fields.find("weights");
  if (weights == nullptr) return {.ids = ids, .weights = {}};
  SparseTensor like = ids;
  like.values = vector_of(floats_of(*weights));
  return {.ids = ids, .weights = like};
}

FeatureInput ragged_input(Fields& fields, int64_t rows) {
  std::vector<int64_t> splits = {0};
  for (int64_t length : integers_of(fields.need("row_lengths"))) {
    splits.push_back(splits.back() + length);
  }
  while (static_cast<int64_t>(splits.size()) <= rows) splits.push_back(splits.back());
  const RaggedTensor ids = {vector_of(integers_of(fields.need("values"))), vector_of(splits)};
  const Config* weights = fields.find("weights");
  if (weights == nullptr) return {.ids = ids, .weights = {}};
  return {.ids = ids, .weights = RaggedTensor{vector_of(floats_of(*weights)), ids.row_splits}};
}

TensorLike without_ids(const TensorLike& input) {
  if (input.layout() == Layout::kSparse) {
    const SparseTensor& sparse = input.sparse();
    return SparseTensor{.indices = Tensor::zeros({0, sparse.dense_shape.rank()}, DType::kInt64),
                        .values = Tensor::zeros({0}, sparse.values.dtype()),
                        .dense_shape = sparse.dense_shape};
  }
  const RaggedTensor& ragged = input.ragged();
  return RaggedTensor{Tensor::zeros({0}, ragged.values.dtype()),
                      Tensor::zeros({ragged.rows() + 1}, DType::kInt64)};
}

TableConfig table_of(Fields& fields, int64_t rows, int64_t dim) {
  TableConfig out = {.vocabulary_size = rows, .dim = dim, .name = "table"};
  out.combiner = fields.string("combiner", "mean");
  if (const Config* quantization = fields.find("quantization")) {
    Fields q(*quantization, "quantization");
    out.quantization_config = QuantizationConfig(
        q.need("num_buckets").integer(), q.need("lower").number(), q.need("upper").number());
    q.finish();
  }
  return out;
}

FeatureConfig feature_of(Fields& fields, const Table& table) {
  FeatureConfig out = {.table = table};
  out.max_sequence_length = fields.integer("max_sequence_length", 0);
  if (const Config* shape = fields.find("output_shape"))
    out.output_shape = Shape(integers_of(*shape));
  out.validate_weights_and_indices = fields.boolean("validate", true);
  return out;
}

Modes modes_of(Fields& fields, const std::string& otherwise) {
  const std::string mode = fields.string("mode", otherwise);
  if (mode == "host") return {.host = true};
  if (mode == "engine") return {.engine = true};
  if (mode == "host_and_engine") return {.host = true, .engine = true};
  throw ValueError("unknown mode '", mode, "'");
}

void under_strategies(const Modes& modes, const Comparison& result,
                      const std::function<void(Strategy&, const std::string&)>& body) {
  if (modes.host) {
    CPUStrategy strategy;
    const auto scope = strategy.scope();
    body(strategy, "host: ");
  }
  if (!modes.engine) return;
  for (const TPUStrategyOptions& options : kAccelerators) {
    if (!result.differences().empty()) return;
    TPUStrategy strategy(options);
    const auto scope = strategy.scope();
    body(strategy, "engine of " + std::to_string(options.num_hosts) + " x " +
                       std::to_string(options.num_cores) + " cores: ");
  }
}

}  // namespace keel::conformance
