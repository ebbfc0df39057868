#include <keel/savedmodel/keras/internal/keras_weight_groups.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <keel/layers/core/projection.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/layer_types.h>

namespace keel {
namespace {

// Returns the name of a class in Keras's source, which may differ from its exported name.
std::string source_name(const std::string& class_name) {
  return class_name == "GroupQueryAttention" ? "GroupedQueryAttention" : class_name;
}

class Walk {
 public:
  void add(const Layer& layer, const std::string& path) {
    if (!seen_.insert(&layer).second) return;
    add_own(layer, path);
    const std::string prefix = path.empty() ? "" : path + "/";
    const auto* model = dynamic_cast<const Model*>(&layer);
    if (const auto* named = dynamic_cast<const SublayerAttributes*>(&layer)) {
      add_named(layer, named->sublayer_attributes(), prefix, model != nullptr);
      if (model == nullptr) return;
    }
    add_listed(model == nullptr ? layer.sublayers() : model->layers(), prefix + "layers/");
    add_listed(layer.sublayers(), prefix + "layers/");
  }

  std::vector<WeightGroup> take() { return std::move(groups_); }

 private:
  // Adds sublayers that Keras finds under attributes of a model. Keras visits attributes in the
  // order of their names, and one of them, "layers", contains all layers.
  void add_named(const Layer& layer, const std::vector<std::string>& attributes,
                 const std::string& prefix, bool is_model) {
    std::vector<std::pair<std::string, const Layer*>> named;
    for (size_t i = 0; i < std::min(attributes.size(), layer.sublayers().size()); ++i) {
      const std::string& name = attributes[i];
      const bool listed = is_model && (name.starts_with('_') || name > "layers");
      if (!name.empty() && !listed) named.emplace_back(name, &*layer.sublayers()[i]);
    }
    if (is_model) std::ranges::sort(named, {}, [](const auto& n) { return n.first; });
    for (const auto& [name, child] : named) add(*child, prefix + name);
  }

  // Adds the layers that have no group yet.
  void add_listed(const std::vector<LayerHandle<Layer>>& layers, const std::string& prefix) {
    std::map<std::string, int> used;
    for (const auto& layer : layers) {
      if (seen_.contains(&*layer)) continue;
      std::string name = to_snake_case(source_name(layer->class_name()));
      const int k = used[name]++;
      if (k > 0) name += "_" + std::to_string(k);
      add(*layer, prefix + name);
    }
  }

  void add_own(const Layer& layer, const std::string& path) {
    std::vector<StateEntry> weights = layer.state_entries();
    std::erase_if(weights, [](const StateEntry& entry) {
      return entry.kind != StateEntry::Kind::kWeight || entry.any_rows;
    });
    if (const auto* inside = dynamic_cast<const WeightAttributes*>(&layer)) {
      return add_inside(layer, inside->weight_attributes(), std::move(weights), path);
    }
    if (const auto* shared = dynamic_cast<const SharedWeights*>(&layer)) {
      prepend_shared(layer, shared->shared_weights(), weights);
    }
    // A quantized or adapted kernel is frozen, but comes before the bias.
    if (dynamic_cast<const ProjectionLayer*>(&layer) == nullptr) {
      std::ranges::stable_partition(weights, &StateEntry::trainable);
    }
    groups_.push_back({.path = path,
                       .name = layer.name(),
                       .weights = std::move(weights),
                       .layer = &layer,
                       .dynamic_tables = dynamic_tables_of(layer)});
  }

  // Inserts the entries of weights that belong to sublayers.
  static void prepend_shared(const Layer& layer, const std::vector<Variable>& shared,
                             std::vector<StateEntry>& weights) {
    std::vector<StateEntry> out;
    for (const Variable& weight : shared) {
      for (const auto& child : layer.sublayers()) {
        for (StateEntry& entry : child->state_entries()) {
          if (weight && entry.variable_id == weight.id()) out.push_back(std::move(entry));
        }
      }
    }
    weights.insert(weights.begin(), std::make_move_iterator(out.begin()),
                   std::make_move_iterator(out.end()));
  }

  // Adds a group without weights for the layer itself, then one for each attribute.
  void add_inside(const Layer& layer, const std::vector<std::string>& attributes,
                  std::vector<StateEntry> weights, const std::string& path) {
    groups_.push_back({.path = path,
                       .name = layer.name(),
                       .weights = {},
                       .layer = &layer,
                       .weights_inside = weights.size(),
                       .dynamic_tables = dynamic_tables_of(layer)});
    const size_t first = groups_.size();
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto is_it = [&](const WeightGroup& g) { return g.attribute == attributes.at(i); };
      auto group =
          std::find_if(groups_.begin() + static_cast<std::ptrdiff_t>(first), groups_.end(), is_it);
      if (group == groups_.end()) {
        const std::string& attribute = attributes[i];
        groups_.push_back({.path = path.empty() ? attribute : path + "/" + attribute,
                           .name = attribute.substr(attribute.rfind('/') + 1),
                           .weights = {},
                           .layer = &layer,
                           .owner_path = path,
                           .attribute = attribute});
        group = std::prev(groups_.end());
      }
      group->positions.push_back(i);
      group->weights.push_back(std::move(weights[i]));
    }
  }

  std::set<const Layer*> seen_;
  std::vector<WeightGroup> groups_;
};

}  // namespace

std::vector<WeightGroup> weight_groups(const Model& model) {
  Walk walk;
  walk.add(model, "");
  return walk.take();
}

}  // namespace keel
