#include "layers/functional_order.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace keel {
namespace {

using Node = std::shared_ptr<const GraphNode>;

struct Walk {
  std::unordered_set<const GraphNode*> done;
  std::unordered_map<const Operation*, int> met;  // order in which operations are first met
  std::vector<Node> post;

  void visit(const Node& node) {
    if (done.contains(node.get())) return;
    met.try_emplace(node->operation.get(), static_cast<int>(met.size()));
    for (const Node& producer : producers_of(node->inputs)) visit(producer);
    if (done.insert(node.get()).second) post.push_back(node);
  }
};

}  // namespace

std::vector<std::shared_ptr<Operation>> order_by_depth(const Tensors& inputs,
                                                       const Tensors& outputs) {
  Walk walk;
  for (const Node& node : producers_of(outputs)) walk.visit(node);

  std::unordered_map<const GraphNode*, int> node_depth;
  std::unordered_map<const Operation*, int> depth;
  std::vector<std::shared_ptr<Operation>> operations;
  for (auto it = walk.post.rbegin(); it != walk.post.rend(); ++it) {
    const Node& node = *it;
    if (!depth.contains(node->operation.get())) operations.push_back(node->operation);
    const int here = std::max(node_depth[node.get()], depth[node->operation.get()]);
    node_depth[node.get()] = here;
    depth[node->operation.get()] = here;
    for (const Node& producer : producers_of(node->inputs)) {
      int& theirs = node_depth[producer.get()];
      theirs = std::max(theirs, here + 1);
    }
  }
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

}  // namespace keel
