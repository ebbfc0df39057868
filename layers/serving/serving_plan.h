// ServingPlan: a model compiled for inference on small batches, callable from any thread.
//
//   const ServingPlan plan(load_model("ranker.keras", {.compile = false}));
//   Tensors scores = plan(batch);            // equals (*model)(batch, {.training = false})
//   plan.run(views, outputs);                // the same on caller-owned memory
//
// The constructor decides the order of the steps and where each step writes its results; the parts
// of a Concatenate are written directly into its result. It packs weights for products with few
// rows, fuses biases and activations into the products, and combines all lookups of inputs in one
// step that prefetches its rows. A call traverses no graph, records no tape and takes no lock.
// run() allocates nothing once the first call of a thread has created its workspace. Dropout and
// similar layers cost nothing.
//
// The plan uses the weights at the time of its construction. Training the model further does not
// change the plan and may run concurrently with its calls. Tables and other tensors that the plan
// reads directly are copied only when training writes to them. Results are bitwise equal to those
// of the model, because kernels sum in the same order. The result of a row depends on that row
// only, not on the rest of the batch, unless a called layer mixes rows.
//
// Layers that do not implement Layer::plan are called as in the model, and so are layers that the
// model calls with training = true and layers that support masking and receive a mask. Steps that
// follow a result which has, or may have, another number of rows than the batch are called too.
// called_layers() and summary() list these layers. A called layer allocates memory, and the plan
// then runs a batch in one piece.
//
// Called layers are the model's layers, run on copies of their variables (Layer::variables()).
// Assignments in a call, such as those of a layer that draws random numbers, affect only the
// copies; only one thread at a time may run such a plan. State that a layer keeps elsewhere, such
// as the vocabulary of a lookup layer, is shared with the model: call adapt() before creating the
// plan.
//
// Batches larger than kPieceRows are split into pieces, so that intermediate results stay in the
// cache. The worker threads (framework/base/parallel.h) share the pieces unless a SerialSection is
// active.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/layers/serving/steps/plan_step.h>
#include <keel/layers/training/model.h>

namespace keel {

// Options of ServingPlan.
struct ServingPlanOptions {
  // "float32", or "int8": tables that the plan looks up directly are converted to rows of 8-bit
  // values with one scale and one offset each, which needs a quarter of the memory traffic. The
  // error of an element is at most half of (max - min) / 255 of its row. Tables of called layers
  // are not converted.
  std::string table_dtype = "float32";
};

// A compiled model.
class ServingPlan {
 public:
  // Number of rows of a piece of a larger batch.
  static constexpr int64_t kPieceRows = 96;

  // Compiles `model`, which the plan keeps alive. Throws
  // - ValueError if the model is neither functional nor sequential with a known input;
  // - ValueError for an unknown table_dtype, and with "int8" for tables with values that are not
  //   finite;
  // - RuntimeError for a layer whose tables belong to an embedding engine; create the plan from a
  //   model that was loaded outside of the TPUStrategy.
  explicit ServingPlan(ModelHandle model, const ServingPlanOptions& options = {});
  ~ServingPlan();
  ServingPlan(ServingPlan&&) noexcept;
  ServingPlan& operator=(ServingPlan&&) noexcept;

  // Names and specs in flattening order.
  const std::vector<std::string>& input_names() const;
  const std::vector<TensorSpec>& input_specs() const;
  const std::vector<TensorSpec>& output_specs() const;

  // Runs the plan on inputs in the model's structure. A dict may have further keys. Numbers are
  // cast to the input's dtype, except floating values for an integer input (TypeError). Throws the
  // errors of run().
  Tensors operator()(const Tensors& inputs) const;

  // Runs the plan and writes output i to outputs[i] as float32 values, row by row. Writes nothing
  // if it throws:
  //   ValueError  wrong number of inputs or outputs, a shape that does not fit, an inconsistent
  //               view, inputs with different numbers of rows, an id outside its table, or an
  //               output span of the wrong size
  //   TypeError   wrong dtype or layout
  //   NotImplementedError  an output that is not a float32 tensor [batch, ...] of known shape
  // Exceptions of called layers propagate unchanged.
  void run(std::span<const TensorView> inputs, std::span<const std::span<float>> outputs) const;

  // Returns a description with one step per line: "3  top_0 (Dense)  product 367 x 512, relu".
  std::string summary() const;
  // Returns the names of the layers and operations that the plan calls instead of compiling them.
  std::vector<std::string> called_layers() const;

 private:
  struct State;
  class Lease;
  std::unique_ptr<State> state_;
};

}  // namespace keel
