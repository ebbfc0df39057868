#include <absl/strings/str_cat.h>
#include <atomic>
#include <new>
#include <unordered_set>

#include <keel/autodiff/internal/thread_state.h>
#include <keel/autodiff/operation.h>

namespace keel {
namespace {

uint64_t next_sequence() {
  static std::atomic<uint64_t> counter = 0;
  return counter++;
}

std::shared_ptr<const GraphNode> producer_of(const TensorLike& t, const std::string& what) {
  if (!t.is_symbolic() || t.values().producer() == nullptr) {
    throw ValueError("graph: ", what,
                     " is not the symbolic result of a layer; call layers on layers::input()");
  }
  return t.values().producer();
}

// A node whose producers are being visited.
struct Visit {
  std::shared_ptr<const GraphNode> node;
  std::vector<std::shared_ptr<const GraphNode>> producers;
  size_t next = 0;
};

Visit visit_of(std::shared_ptr<const GraphNode> node) {
  for_each_leaf(node->inputs, [&](const std::string& path, const TensorLike& input) {
    if (!input.is_symbolic()) return;
    producer_of(input, absl::StrCat("input '", path, "' of ", node->operation->class_name()));
  });
  std::vector<std::shared_ptr<const GraphNode>> producers = producers_of(node->inputs);
  return {.node = std::move(node), .producers = std::move(producers)};
}

// Uses an explicit stack instead of recursion, because graphs may be deep.
void visit(const std::shared_ptr<const GraphNode>& last, std::unordered_set<const GraphNode*>& seen,
           std::vector<std::shared_ptr<const GraphNode>>& order) {
  if (!seen.insert(last.get()).second) return;
  std::vector<Visit> path = {visit_of(last)};
  while (!path.empty()) {
    Visit& top = path.back();
    if (top.next == top.producers.size()) {
      order.push_back(std::move(top.node));
      path.pop_back();
      continue;
    }
    const std::shared_ptr<const GraphNode> producer = top.producers[top.next++];
    if (seen.insert(producer.get()).second) path.push_back(visit_of(producer));
  }
}

}  // namespace

GraphNode::GraphNode(std::shared_ptr<Operation> op, Tensors in, CallOptions how, Specs out)
    : operation(std::move(op)),
      inputs(std::move(in)),
      options(how),
      output_specs(std::move(out)),
      sequence(next_sequence()) {}

// The destructor of a tensor destroys the node that produced it, so that destroying a chain of
// nodes would need a stack as deep as the chain. The outermost destructor collects the inputs of
// the others and destroys them one after the other.
GraphNode::~GraphNode() {
  std::vector<Tensors>*& unused = thread_state.unused_inputs;
  try {
    if (unused != nullptr) {
      unused->push_back(std::move(inputs));
      return;
    }
    std::vector<Tensors> all;
    all.push_back(std::move(inputs));
    unused = &all;
    while (!all.empty()) {
      const Tensors next = std::move(all.back());
      all.pop_back();
    }
    unused = nullptr;
  } catch (const std::bad_alloc&) {  // the inputs are destroyed with this node
  }
}

NoGraphScope::NoGraphScope() { ++thread_state.no_graph_depth; }
NoGraphScope::~NoGraphScope() { --thread_state.no_graph_depth; }
bool NoGraphScope::active() { return thread_state.no_graph_depth > 0; }

TensorLike make_symbolic(const TensorSpec& spec, const std::shared_ptr<const GraphNode>& producer,
                         int output) {
  if (spec.layout == Layout::kDense) return Tensor::symbolic(spec, producer, output);
  const auto part = [&](const Shape& shape, DType dtype) {
    return Tensor::symbolic({.shape = shape, .dtype = dtype}, producer, output);
  };
  if (spec.layout == Layout::kRagged) {
    const int64_t rows = spec.shape[0];
    return RaggedTensor{
        .values = part(Shape{kUnknown} + spec.shape.slice(2, spec.shape.rank()), spec.dtype),
        .row_splits = part({rows == kUnknown ? kUnknown : rows + 1}, DType::kInt64)};
  }
  return SparseTensor{.indices = part({kUnknown, spec.shape.rank()}, DType::kInt64),
                      .values = part({kUnknown}, spec.dtype),
                      .dense_shape = spec.shape};
}

Tensors make_outputs(std::shared_ptr<Operation> operation, const Tensors& inputs,
                     const Specs& specs, const CallOptions& options) {
  std::shared_ptr<const GraphNode> node;
  if (!NoGraphScope::active()) {
    node = std::make_shared<const GraphNode>(std::move(operation), inputs, options, specs);
  }
  int output = 0;
  return map_structure(specs, [&](const TensorSpec& spec) -> TensorLike {
    return make_symbolic(spec, node, output++);
  });
}

std::vector<std::shared_ptr<const GraphNode>> producers_of(const Tensors& tensors) {
  std::vector<std::shared_ptr<const GraphNode>> out, mask_producers;
  for_each_leaf(tensors, [&](const std::string&, const TensorLike& t) {
    if (!t.is_symbolic()) return;
    out.push_back(t.values().producer());
    const Tensor mask = t.values().mask();
    if (mask && mask.is_symbolic() && mask.producer() != nullptr)
      mask_producers.push_back(mask.producer());
  });
  out.insert(out.end(), mask_producers.begin(), mask_producers.end());
  return out;
}

std::vector<std::shared_ptr<const GraphNode>> topological_order(const Tensors& outputs) {
  std::unordered_set<const GraphNode*> seen;
  std::vector<std::shared_ptr<const GraphNode>> order;
  for_each_leaf(outputs, [&](const std::string& path, const TensorLike& output) {
    visit(producer_of(output, absl::StrCat("output '", path, "'")), seen, order);
  });
  return order;
}

}  // namespace keel
