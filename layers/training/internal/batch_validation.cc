#include <keel/layers/training/internal/batch_validation.h>

#include <optional>
#include <ostream>

#include <keel/distribute/internal/gather_tensors.h>
#include <keel/layers/training/compile/step_data.h>

namespace keel {
namespace {

// Returns the row of the first NaN of a floating tensor, or -1.
template <class T>
int64_t row_of_nan(const Tensor& x) {
  const auto values = x.data<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != values[i]) return static_cast<int64_t>(i) / (x.size() / x.dim(0));
  }
  return -1;
}

// Returns the row of the first NaN of the first leaf that has one, or -1.
double row_of_nan(const Tensors& tensors) {
  if (!given(tensors)) return -1;
  for (const TensorLike& leaf : flatten(tensors)) {
    const Tensor& x = leaf.tensor();
    if (!is_floating(x.dtype())) continue;
    const int64_t row = x.dtype() == DType::kFloat32 ? row_of_nan<float>(x) : row_of_nan<double>(x);
    if (row >= 0) return static_cast<double>(row);
  }
  return -1;
}

// Returns the position of the first leaf whose number of rows differs from that of the first leaf,
// or -1.
double leaf_of_other_rows(const Tensors& element) {
  std::optional<int64_t> rows;
  double leaf = 0;
  for (const TensorLike& t : flatten(element)) {
    const Shape shape = t.values() ? t.spec().shape : Shape();
    if (shape.rank() > 0) {
      if (rows && *rows != shape[0]) return leaf;
      rows = shape[0];
    }
    ++leaf;
  }
  return -1;
}

// The facts that replicas exchange about their parts of the batch; numbers, so that one tensor
// holds them.
enum Fact { kRows, kNanLabel, kNanWeight, kUnevenLeaf, kFacts };

Tensor facts_of(const Tensors& element, const StepContext& context) {
  const StepData data = unpack_x_y_sample_weight(element, context.caller);
  std::vector<double> out(kFacts);
  out[kRows] = static_cast<double>(rows_of(data));
  out[kNanLabel] = row_of_nan(data.y);
  out[kNanWeight] = row_of_nan(data.sample_weight);
  out[kUnevenLeaf] = leaf_of_other_rows(element);
  return Tensor::from(out, {kFacts});
}

}  // namespace

int64_t check_batch(const distribute::PerReplica<Tensors>& batch, distribute::ProcessGroup& group,
                    const StepContext& context) {
  std::vector<Tensor> facts;
  for (const Tensors& element : batch.values()) {
    facts.push_back(facts_of(element, context));
  }
  if (group.size() > 1) facts = distribute::gather_tensors(group, "the labels of a step", facts);
  int64_t rows = 0;
  for (const Tensor& of_replica : facts) {
    const auto fact = of_replica.data<double>();
    if (fact[kUnevenLeaf] >= 0) {
      const std::vector<std::string> paths = flatten_paths(batch.values()[0]);
      throw ValueError(context, ": '", paths.at(static_cast<size_t>(fact[kUnevenLeaf])),
                       "' of the batch does not have the same number of rows as '", paths[0],
                       "'; features, labels and weights must have the same number of rows");
    }
    const auto refuse_nan = [&](Fact row, const char* what) {
      if (fact[row] < 0) return;
      throw ValueError(context, ": the ", what, " of row ", rows + static_cast<int64_t>(fact[row]),
                       " of the batch is NaN; check the data");
    };
    refuse_nan(kNanLabel, "label");
    refuse_nan(kNanWeight, "sample weight");
    rows += static_cast<int64_t>(fact[kRows]);
  }
  if (rows == 0) throw ValueError(context, ": the batch has no rows; drop empty batches");
  return rows;
}

}  // namespace keel
