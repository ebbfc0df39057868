// ServingPlan: a model made ready to answer small batches, at once and from any thread.
//
//   const ServingPlan plan(load_model("ranker.keras", {.compile = false}));
//   Tensors scores = plan(batch);            // as (*model)(batch, {.training = false})
//   plan.run(views, outputs);                // the same on memory of one's own
//
// The work is settled when the plan is made: the order of the steps, where each writes its results
// (the parts of a Concatenate into their place in it), weights packed for the products of few rows,
// biases and activations inside the products, all lookups in one pass that asks for its rows ahead
// of time. A call walks no graph, watches for no tape and takes no lock; run() allocates nothing
// once a thread's first call has made its workspace. Dropout and the like cost nothing.
//
// The plan has the weights of the moment it was made: training the model further does not change
// it, and may go on beside its calls. Tables and whatever else the plan reads as it is are copied
// once training writes to them, not before. Its results have the bits of the model's, as kernels
// sum in the same order, and those of a row depend on that row alone, not on the batch that it came
// in, unless a layer that is called mixes rows.
//
// Layers that say nothing of plans (Layer::plan), and any layer that a mask or `training` reaches,
// are called as ever: such a step allocates, and a batch then goes through the plan in one piece.
// summary() names them. So is what comes after a result that has not one row for each of the batch,
// or may not have. They are the model's layers, on copies of the variables that they hold
// (Layer::variables()). What a call assigns, as one that draws random numbers does, stays in the
// plan, and one thread at a time may run a plan that does. What a layer keeps elsewhere, such as
// the vocabulary of a lookup, is the model's: adapt() comes before the plan.
//
// Large batches are cut into pieces of kPieceRows, so that what lies between the layers stays in
// the cache; the workers (framework/base/parallel.h) share the pieces unless a SerialSection
// forbids it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/layers/serving/steps/tensor_view.h>
#include <keel/layers/training/model.h>

namespace keel {

struct ServingPlanOptions {
  // "int8": tables that the plan looks up by itself become rows of 8 bits with a scale and an
  // offset each (framework/int8_table.h), a quarter of the memory to go through. An element is off
  // by up to half of its row's (most - least) / 255. Tables of layers that are called stay what
  // they are.
  std::string table_dtype = "float32";
};

class ServingPlan {
 public:
  static constexpr int64_t kPieceRows = 96;

  // The model is functional or sequential and knows its input (ValueError); its tables are
  // variables: RuntimeError for a layer whose tables an engine holds (make the plan from a model
  // that was loaded outside of the TPUStrategy). The plan keeps the model.
  // ValueError for another table_dtype, and for int8 with rows that are not finite.
  explicit ServingPlan(ModelHandle model, const ServingPlanOptions& options = {});
  ~ServingPlan();
  ServingPlan(ServingPlan&&) noexcept;
  ServingPlan& operator=(ServingPlan&&) noexcept;

  // Inputs and outputs in flattening order.
  const std::vector<std::string>& input_names() const;
  const std::vector<TensorSpec>& input_specs() const;
  const std::vector<TensorSpec>& output_specs() const;

  // Takes what the model takes; a dict may have further keys, and numbers become the input's dtype,
  // but for floating ones where that is an integer (TypeError).
  // Errors are those of run().
  Tensors operator()(const Tensors& inputs) const;

  // Writes output i to outputs[i], float32 row by row. Nothing is written if it throws:
  //   ValueError  another number of inputs or outputs, a shape that does not fit, a view that
  //               contradicts itself, inputs of different numbers of rows, an id outside its table,
  //               an output whose size is not that of the batch
  //   TypeError   another dtype or layout
  //   NotImplementedError  an output that is no float32 tensor [batch, ...] of known shape
  // What a layer that is called throws comes out as it is.
  void run(std::span<const TensorView> inputs, std::span<const std::span<float>> outputs) const;

  // The steps, one on a line: "3  top_0 (Dense)  product 367 x 512, relu".
  std::string summary() const;
  // Names of the layers and operations that are called.
  std::vector<std::string> called_layers() const;

 private:
  struct State;
  class Lease;
  std::unique_ptr<State> state_;
};

}  // namespace keel
