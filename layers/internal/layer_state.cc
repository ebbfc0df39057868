#include <keel/layers/internal/layer_state.h>

#include <algorithm>
#include <map>

#include <keel/layers/internal/naming.h>

namespace keel {
namespace {

using Visitor = FunctionRef<void(const std::string&, const StateEntry&)>;

void walk(const Layer& layer, const std::string& prefix, std::vector<const Layer*>& seen,
          Visitor fn) {
  if (std::ranges::find(seen, &layer) != seen.end()) return;
  seen.push_back(&layer);
  for (const StateEntry& entry : layer.state_entries()) fn(prefix + entry.name, entry);
  std::map<std::string, int> used;
  std::vector<const Layer*> siblings;
  for (const auto& child : layer.sublayers()) {
    if (std::ranges::find(siblings, &*child) != siblings.end()) continue;
    siblings.push_back(&*child);
    std::string name = to_snake_case(child->class_name());
    const int k = used[name]++;
    if (k > 0) name += "_" + std::to_string(k);
    walk(*child, prefix + name + "/", seen, fn);
  }
}

}  // namespace

void for_each_state_entry(const Layer& root, Visitor fn) {
  std::vector<const Layer*> seen;
  walk(root, "", seen, fn);
}

}  // namespace keel
