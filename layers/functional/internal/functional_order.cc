#include <keel/layers/functional/internal/functional_order.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <keel/layers/functional/internal/keras_calls.h>

namespace keel {
namespace {

using Node = std::shared_ptr<const GraphNode>;

void add_producers(const Tensors& tensors, std::vector<Node>& out) {
  for (const TensorLike& t : flatten(tensors)) {
    if (t.is_symbolic()) out.push_back(t.values().producer());
  }
}

// Adds the producers of explicit masks.
void add_mask_producers(const Tensors& tensors, std::vector<Node>& out) {
  for (const TensorLike& t : flatten(tensors)) {
    const Tensor mask = t.is_symbolic() ? t.values().mask() : Tensor();
    if (mask && mask.is_symbolic() && mask.producer() != nullptr) out.push_back(mask.producer());
  }
}

// Returns the producers of a node's inputs in the order in which Keras visits the arguments of a
// call: positional arguments first, then keyword arguments sorted by name.
std::vector<Node> producers_of_call(const GraphNode& node) {
  const std::string& class_name = node.operation->class_name();
  const KerasCall call = keras_call(class_name, node.inputs);
  std::vector<Node> out;
  std::map<std::string, std::vector<Node>> keywords;
  for (const KerasCall::Input& input : call.inputs) {
    add_producers(input.value, input.by_keyword ? keywords[input.name] : out);
    for (const CallParameter& parameter : call_signature(class_name).parameters) {
      if (parameter.masked == input.name) {
        add_mask_producers(input.value, keywords[parameter.name]);
      }
    }
  }
  for (const auto& [_, nodes] : keywords) out.insert(out.end(), nodes.begin(), nodes.end());
  return out;
}

// Post-order traversal of the graph from the outputs.
struct Walk {
  std::unordered_set<const GraphNode*> done;
  std::unordered_map<const Operation*, int> met;  // order in which operations are first visited
  std::vector<Node> post;

  // Uses an explicit stack instead of recursion, because graphs may be deep.
  void visit(const Node& node) {
    std::vector<Visit> path;
    enter(node, path);
    while (!path.empty()) {
      Visit& top = path.back();
      if (top.next < top.producers.size()) {
        enter(top.producers[top.next++], path);
        continue;
      }
      if (done.insert(top.node.get()).second) post.push_back(top.node);
      path.pop_back();
    }
  }

 private:
  struct Visit {
    Node node;
    std::vector<Node> producers;
    size_t next = 0;
  };

  void enter(Node node, std::vector<Visit>& path) {
    if (done.contains(node.get())) return;
    met.try_emplace(node->operation.get(), static_cast<int>(met.size()));
    std::vector<Node> producers = producers_of_call(*node);
    path.push_back({.node = std::move(node), .producers = std::move(producers)});
  }
};

}  // namespace

namespace {

// Depth of each node and operation, measured from the outputs, and both lists in Keras's visiting
// order.
struct Depths {
  std::unordered_map<const GraphNode*, int> of_node;
  std::unordered_map<const Operation*, int> of_operation;
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<Operation>> operations;

  explicit Depths(const Walk& walk) {
    // In reverse post-order every node follows the nodes that read its results, so its depth is
    // final when it is visited.
    for (auto it = walk.post.rbegin(); it != walk.post.rend(); ++it) {
      const Node& node = *it;
      if (!of_operation.contains(node->operation.get())) operations.push_back(node->operation);
      const int here = std::max(depth(node), of_operation[node->operation.get()]);
      of_node[node.get()] = here;
      of_operation[node->operation.get()] = here;
      for (const Node& producer : producers_of_call(*node)) {
        const int theirs = depth(producer);
        of_node[producer.get()] = std::max(theirs, here + 1);
      }
    }
  }

 private:
  int depth(const Node& node) {
    const auto [it, is_new] = of_node.try_emplace(node.get());
    if (is_new) nodes.push_back(node);
    return it->second;
  }
};

}  // namespace

std::vector<std::shared_ptr<Operation>> order_by_depth(const Tensors& inputs,
                                                       const Tensors& outputs) {
  Walk walk;
  for (const Node& node : producers_of(outputs)) walk.visit(node);
  Depths depths(walk);
  std::vector<std::shared_ptr<Operation>> operations = std::move(depths.operations);
  auto& depth = depths.of_operation;
  for (const Node& node : producers_of(inputs)) {
    if (depth.contains(node->operation.get())) continue;
    depth[node->operation.get()] = 0;
    walk.met[node->operation.get()] = -1;
    operations.push_back(node->operation);
  }
  std::ranges::stable_sort(operations, [&](const auto& a, const auto& b) {
    const int da = depth[a.get()];
    const int db = depth[b.get()];
    return da != db ? da > db : walk.met[a.get()] < walk.met[b.get()];
  });
  return operations;
}

std::vector<std::shared_ptr<const GraphNode>> calls_by_depth(const Tensors& outputs) {
  Walk walk;
  for (const Node& node : producers_of(outputs)) walk.visit(node);
  Depths depths(walk);
  std::vector<Node> nodes = std::move(depths.nodes);
  std::ranges::stable_sort(nodes, [&](const Node& a, const Node& b) {
    return depths.of_node[a.get()] > depths.of_node[b.get()];
  });
  return nodes;
}

}  // namespace keel
