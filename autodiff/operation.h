// Operation is a node of a functional graph: an Op or a Layer.
// Op is a pure, differentiable function of tensors.
// Gradient holds nothing, a dense Tensor, or IndexedSlices (gradients of some rows of a table).
// GraphNode is one call of an operation in the graph behind symbolic tensors, which records which
// operation produced each tensor and from which inputs.
//
// Every op call goes through dispatch(), which does exactly one of three things:
//   if an input is symbolic: infers the output specs and adds a graph node
//   if a tape is recording:  computes the outputs and records what vjp() needs
//   otherwise:               computes the outputs
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// The sparse gradient of a table: gradients of single rows. Row ids may repeat; the dense
// equivalent sums the values of each row.
struct IndexedSlices {
  Tensor ids;         // int64 [n], in [0, dense_shape[0])
  Tensor values;      // [n, dim...]
  Shape dense_shape;  // {rows, dim...}
};

// A gradient of a target with respect to one source.
class Gradient {
 public:
  Gradient() = default;  // none: the target does not depend on the source
  // Make a dense gradient, and one of some rows of a table.
  Gradient(Tensor t) : value_(std::in_place_type<Tensor>, std::move(t)) {}  // NOLINT: implicit
  Gradient(IndexedSlices s);                                                // NOLINT: implicit
  ~Gradient();
  Gradient(const Gradient& other);
  Gradient(Gradient&& other) noexcept;
  Gradient& operator=(const Gradient& other);
  Gradient& operator=(Gradient&& other) noexcept;

  // Returns true if there is a gradient, dense or sparse.
  explicit operator bool() const { return value_.index() != 0; }
  // Returns true if the gradient is IndexedSlices.
  bool is_slices() const { return std::holds_alternative<IndexedSlices>(value_); }
  const IndexedSlices& slices() const;  // throws RuntimeError unless is_slices()
  // Returns the dense equivalent; slices are summed into zeros of shape dense_shape. Throws
  // RuntimeError if there is no gradient.
  Tensor dense() const;
  // Adds `other` to this gradient. Two sets of slices of one table are concatenated, not made
  // dense. The sum is differentiable.
  void add(const Gradient& other);

 private:
  std::variant<std::monostate, Tensor, IndexedSlices> value_;
};

// Arguments of an operation's call other than its inputs.
struct CallOptions {
  std::optional<bool> training = {};  // unset: inherited from the enclosing call
};

// A function that can be a node of a graph: an Op or a Layer.
class Operation : public std::enable_shared_from_this<Operation> {
 public:
  using OwnedAs = Operation;  // shared pointers to any layer own an Operation (make_owned)

  virtual ~Operation() = default;
  // Returns the name of the class, which error messages and profiles contain.
  virtual const std::string& class_name() const = 0;
  // Runs the operation on new inputs; used to replay a graph.
  virtual Tensors replay(const Tensors& inputs, const CallOptions& options) = 0;
};

// The arguments of Op::vjp().
struct VjpArgs {
  std::span<const TensorSpec> input_specs;     // one for each input, always present
  std::span<const TensorSpec> output_specs;    // one for each output, always present
  std::span<const Tensor> inputs;              // empty handles where Retain::inputs is not set
  std::span<const Tensor> outputs;             // empty handles where Retain::outputs is not set
  std::span<const Gradient> output_gradients;  // none where no gradient reached the output
  uint32_t wanted = ~0u;                       // bit i: the gradient of input i is used

  // Returns true if the gradient of `input` is worth computing. Always true for inputs at index 32
  // and above, which the mask does not cover.
  bool wants(size_t input) const { return input >= 32 || (wanted >> input & 1) != 0; }
};

// Selects the tensors that a tape keeps for vjp(): bit i stands for input (output) i. Tensors at
// index 32 and above are kept only if all bits are set.
struct Retain {
  uint32_t inputs = ~0u;   // default: all inputs
  uint32_t outputs = ~0u;  // default: all outputs
};

// A pure function of tensors with a gradient. Implementations are immutable, because tapes and
// graphs share them.
class Op : public Operation {
 public:
  // Makes an op with this name in error messages, profiles and graphs.
  explicit Op(std::string class_name) : class_name_(std::move(class_name)) {}
  const std::string& class_name() const final { return class_name_; }

  // Returns the specs of the outputs. Checks dtypes and shapes; dimensions may be unknown.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const = 0;
  // Returns the outputs. The inputs are concrete and have passed infer().
  virtual std::vector<Tensor> compute(std::span<const Tensor> inputs) const = 0;
  // Returns one gradient per input, or none for an input without a gradient. A gradient must have
  // the input's shape (the tape throws ValueError otherwise) and dtype (TypeError). Implementations
  // compute it with differentiable ops, so that a second tape can differentiate it again. The
  // default throws NotImplementedError.
  virtual std::vector<Gradient> vjp(const VjpArgs& args) const;
  // Returns the inputs and outputs that vjp() reads; all of them by default.
  virtual Retain retain() const { return {}; }
  // Returns false for ops whose outputs do not depend smoothly on their inputs (comparisons,
  // rounding). Tapes do not record them.
  virtual bool differentiable() const { return true; }

  // Calls dispatch() on the leaves of `inputs`. The options do not apply to ops.
  Tensors replay(const Tensors& inputs, const CallOptions& options) final;

 private:
  const std::string class_name_;
};

// Calls `op` on `inputs` as described at the top of this file and returns its outputs.
std::vector<Tensor> dispatch(std::shared_ptr<const Op> op, std::vector<Tensor> inputs);

// Calls an op that has a single output and returns that output.
template <class O>
Tensor dispatch1(O op, std::vector<Tensor> inputs) {
  return dispatch(std::make_shared<const O>(std::move(op)), std::move(inputs))[0];
}

// One call of an operation on symbolic inputs. Immutable. Nodes are numbered by `sequence` in the
// order in which the process creates them.
class GraphNode {
 public:
  // Use make_outputs() to create nodes.
  GraphNode(std::shared_ptr<Operation> op, Tensors in, CallOptions how, Specs out);
  // Destroys the nodes that only this node refers to in a loop: graphs may be thousands deep.
  ~GraphNode();
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;

  const std::shared_ptr<Operation> operation;  // the op or layer that was called
  Tensors inputs;                              // its arguments; at least one leaf is symbolic
  const CallOptions options;  // as passed by the caller; replaying the graph passes them again
  const Specs output_specs;   // the shapes, dtypes and layouts of the results
  const uint64_t sequence;    // the number of the node, unique in the process
};

// While a NoGraphScope is alive on this thread, symbolic calls infer specs but record no nodes.
// A layer's call() runs under one, so a layer is one node regardless of the ops inside it.
class NoGraphScope {
 public:
  NoGraphScope();
  ~NoGraphScope();
  NoGraphScope(const NoGraphScope&) = delete;
  NoGraphScope& operator=(const NoGraphScope&) = delete;
  // Returns true if this thread is inside a NoGraphScope.
  static bool active();
};

// Records a node for operation(inputs) and returns its outputs, symbolic tensors with these specs.
// Under a NoGraphScope, records nothing, and the outputs have no producer.
Tensors make_outputs(std::shared_ptr<Operation> operation, const Tensors& inputs,
                     const Specs& specs, const CallOptions& options = {});

// Returns a symbolic tensor with this spec, including its components if it is ragged or sparse.
// `output` is its position among the outputs of `producer` in flattening order. `producer` may be
// null.
TensorLike make_symbolic(const TensorSpec& spec, const std::shared_ptr<const GraphNode>& producer,
                         int output);

// Returns the nodes that produced `tensors`, which are the inputs of a node or the outputs of a
// graph. The producers of the symbolic leaves come first, in flattening order. The producers of
// symbolic masks attached to leaves (Tensor::with_mask) follow.
std::vector<std::shared_ptr<const GraphNode>> producers_of(const Tensors& tensors);

// Returns the nodes that `outputs` depend on, producers before consumers. The order is depth first
// from each output in flattening order, with the inputs of a node in order. Throws ValueError if an
// output or a symbolic input of a node has no producer, that is, if no layer or op returned it.
std::vector<std::shared_ptr<const GraphNode>> topological_order(const Tensors& outputs);

}  // namespace keel

extern template std::vector<keel::Gradient>::~vector();
extern template std::vector<keel::Gradient>::vector(const std::vector<keel::Gradient>& other);
