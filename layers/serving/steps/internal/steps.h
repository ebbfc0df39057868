// Steps that the plans of several layers share. Private to plans.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/autodiff/operation.h>
#include <keel/framework/kernels/gemm/packed_gemm.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

// Computes y = function(x . matrix + bias), where a row of x is [repeats, in] and a row of y is
// [repeats, units].
class ProductStep final : public PlanStep {
 public:
  ProductStep(std::shared_ptr<const kernels::PackedMatrix> matrix, RowFunction function,
              PlanValue x, PlanValue y, int64_t repeats)
      : matrix_(std::move(matrix)), function_(function), x_(x), y_(y), repeats_(repeats) {}
  void run(const PlanCall& call) const override;
  std::string what() const override;

 private:
  const std::shared_ptr<const kernels::PackedMatrix> matrix_;
  const RowFunction function_;
  const PlanValue x_, y_;
  const int64_t repeats_;
};

// Computes y = function(x) on each run of `length` values of a row.
class MapStep final : public PlanStep {
 public:
  MapStep(RowFunction function, PlanValue x, PlanValue y, int64_t width, int64_t length)
      : function_(function), x_(x), y_(y), width_(width), length_(length) {}
  void run(const PlanCall& call) const override;
  std::string what() const override { return function_.name(); }

 private:
  const RowFunction function_;
  const PlanValue x_, y_;
  const int64_t width_, length_;
};

// Computes y = (x - center) factor + offset or, if `divides`, (x - center) / factor + offset.
// `numbers` are center, factor and offset, each with one value per element of a row.
class AffineStep final : public PlanStep {
 public:
  AffineStep(std::array<std::vector<float>, 3> numbers, bool divides, PlanValue x, PlanValue y)
      : numbers_(std::move(numbers)), divides_(divides), x_(x), y_(y) {}
  void run(const PlanCall& call) const override;
  std::string what() const override { return str("scales ", numbers_[0].size(), " floats"); }

 private:
  const std::array<std::vector<float>, 3> numbers_;
  const bool divides_;
  const PlanValue x_, y_;
};

// Copies rows.
class CopyStep final : public PlanStep {
 public:
  CopyStep(PlanValue from, PlanValue to, int64_t width) : from_(from), to_(to), width_(width) {}
  void run(const PlanCall& call) const override;
  std::string what() const override { return str("copy of ", width_, " floats"); }

 private:
  const PlanValue from_, to_;
  const int64_t width_;
};

// Converts the rows of a dense numeric tensor to floats.
class ConvertStep final : public PlanStep {
 public:
  ConvertStep(PlanValue from, PlanValue to, int64_t width) : from_(from), to_(to), width_(width) {}
  // Throws RuntimeError if the tensor does not have the rows of the batch.
  void run(const PlanCall& call) const override;
  std::string what() const override { return str("conversion of ", width_, " numbers"); }

 private:
  const PlanValue from_, to_;
  const int64_t width_;
};

// Calls an operation with copies of its variables. Input rows are converted to tensors first. Runs
// on whole batches, because the operation may mix rows.
class CallStep final : public PlanStep {
 public:
  struct Input {
    PlanValue value;
    Shape row_shape = {};
    bool is_rows = false;  // otherwise a tensor
  };
  CallStep(std::shared_ptr<Operation> operation, CallOptions options, Nest<Input> inputs,
           std::vector<PlanValue> outputs, std::shared_ptr<const VariableSnapshot> copies,
           std::vector<std::string> sources)
      : operation_(std::move(operation)),
        options_(options),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        copies_(std::move(copies)),
        sources_(std::move(sources)) {}
  void run(const PlanCall& call) const override;
  bool by_rows() const override { return false; }
  bool calls_layer() const override { return true; }
  std::string what() const override { return "calls " + operation_->class_name(); }

 private:
  const std::shared_ptr<Operation> operation_;
  const CallOptions options_;
  const Nest<Input> inputs_;
  const std::vector<PlanValue> outputs_;
  const std::shared_ptr<const VariableSnapshot> copies_;
  const std::vector<std::string> sources_;  // the inputs on which the results depend
};

}  // namespace keel
