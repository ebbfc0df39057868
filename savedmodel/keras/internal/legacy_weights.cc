#include <keel/savedmodel/keras/internal/legacy_weights.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <map>
#include <set>

#include <keel/savedmodel/keras/dialect/keras_dialect.h>
#include <keel/savedmodel/keras/internal/legacy_arrays.h>
#include <keel/savedmodel/keras/internal/model_weights.h>

namespace keel {
namespace {

using Charset = Hdf5Writer::Charset;

// Returns the path of a name in the group "/model_weights" or "/".
std::string inside(const std::string& root, const std::string& name) {
  return root == "/" ? root + name : absl::StrCat(root, "/", name);
}

// Tables for unbounded ids follow the weights.
void add_weights(const LayerWeights& layer, const std::string& root, const MinCount& min_count,
                 Hdf5Contents& out) {
  const std::string group = inside(root, layer.layer);
  std::vector<std::string> names;
  for (const NamedWeight& weight : layer.weights) {
    out.datasets.push_back(
        {.path = absl::StrCat(group, "/", weight.name), .get = weight.entry.get});
    names.push_back(weight.name);
  }
  for (const LayerWeights::Table& table : layer.dynamic_tables) {
    const auto parts = dynamic_parts(table.table, min_count);
    for (size_t i = 0; i < parts.size(); ++i) {
      names.push_back(absl::StrCat(table.prefix, kDynamicParts[i], ":0"));
      out.datasets.push_back({.path = absl::StrCat(group, "/", names.back()), .get = parts[i]});
    }
  }
  out.groups.push_back(group);
  out.lists.push_back({.object = group, .attribute = "weight_names", .values = std::move(names)});
}

}  // namespace

void add_legacy_weights(const Model& model, const std::string& root, Hdf5Contents& out,
                        const MinCount& min_count) {
  out.groups.push_back(root);
  // In the root, strings are stored as by Keras 3; in groups, as by all versions.
  const Charset charset = root == "/" ? Charset::kUtf8 : Charset::kAscii;
  out.texts.push_back({root, "keras_version", kLegacyKerasVersion, charset});
  out.texts.push_back({root, "backend", kLegacyBackend, charset});
  std::vector<std::string> layers;
  for (const LayerWeights& layer : weights_by_layer(model, LoraWeights::kSeparate)) {
    add_weights(layer, root, min_count, out);
    layers.push_back(layer.layer);
  }
  add_weights(top_level_weights(model), root, min_count, out);
  out.lists.push_back({.object = root, .attribute = "layer_names", .values = std::move(layers)});
}

namespace {

// The weights of a layer in a file: names of datasets.
struct StoredLayer {
  std::string layer;
  std::vector<std::string> names;     // as in the attribute weight_names
  std::vector<std::string> datasets;  // their paths
};

// Returns the names of a weight and its layer: "dense/kernel" for "model/dense/kernel:0".
std::string last_two_parts(std::string name) {
  if (name.ends_with(":0")) name.resize(name.size() - 2);
  const size_t last = name.rfind('/');
  const size_t before = last == std::string::npos || last == 0 ? last : name.rfind('/', last - 1);
  return before == std::string::npos ? name : name.substr(before + 1);
}

// Reorders the stored weights of a nested model by name if all names match, because their order
// depends on which layers are frozen.
void match_by_name(const LayerWeights& layer, StoredLayer& stored) {
  std::map<std::string, std::string> datasets, plain_datasets;
  for (size_t i = 0; i < stored.names.size(); ++i) {
    datasets[last_two_parts(stored.names[i])] = stored.datasets[i];
    plain_datasets[plain_name(stored.names[i])] = stored.datasets[i];
  }
  std::vector<std::string> ordered;
  for (const NamedWeight& weight : layer.weights) {
    // Without "/", a stored name is that of the layer and the weight.
    const auto plain = plain_datasets.find(plain_name(weight.name));
    const auto it = datasets.find(last_two_parts(weight.name));
    if (plain == plain_datasets.end() && it == datasets.end()) return;
    ordered.push_back(plain == plain_datasets.end() ? it->second : plain->second);
  }
  const std::set<std::string> all(ordered.begin(), ordered.end());
  if (all.size() == stored.names.size()) stored.datasets = std::move(ordered);
}

class Matcher {
 public:
  Matcher(const Hdf5File& file, std::string root, const WeightMatching& matching)
      : file_(file), root_(std::move(root)), matching_(matching) {}

  void match(const Model& model) {
    std::vector<LayerWeights> layers = weights_by_layer(model, LoraWeights::kSeparate);
    for (LayerWeights& layer : weights_by_layer(model)) merged_.emplace(layer.layer, layer);
    std::erase_if(layers, [](const LayerWeights& layer) { return layer.empty(); });
    std::vector<StoredLayer> stored = weighted_layers();
    origin_ = legacy_origin(file_, root_, names_of(stored));
    if (matching_.by_name) {
      match_layers_by_name(layers, stored);
    } else {
      if (origin_.keras1) order_by_name(layers, stored);
      match_layers_in_order(layers, stored);
    }
    LayerWeights own = top_level_weights(model);
    StoredLayer stored_own = stored_layer(own.layer);
    if (!matching_.by_name || !stored_own.names.empty()) match(own, std::move(stored_own));
  }

  std::vector<std::string> assign() && {
    for (const Assignment& a : assignments_) {
      if (a.check) a.check(value_of(a));
    }
    for (const Assignment& a : assignments_) a.set(value_of(a));
    for (const auto& [table, state] : tables_) table.restore(state);
    return std::move(skipped_);
  }

 private:
  struct Assignment {
    StoredArray array;
    DType dtype;
    std::function<void(const Tensor&)> set, check;
  };

  Tensor value_of(const Assignment& a) const {
    return a.array.value ? a.array.value->cast(a.dtype) : file_.read(a.array.dataset, a.dtype);
  }

  static std::vector<std::string> names_of(const std::vector<StoredLayer>& layers) {
    std::vector<std::string> out;
    for (const StoredLayer& layer : layers) {
      out.insert(out.end(), layer.names.begin(), layer.names.end());
    }
    return out;
  }

  // Reorders the stored layers by name if they have the names of the model's layers. The order of a
  // graph that stands for the merged models of Keras 1 differs from that in its files.
  static void order_by_name(const std::vector<LayerWeights>& layers,
                            std::vector<StoredLayer>& stored) {
    std::map<std::string, const StoredLayer*> by_name;
    for (const StoredLayer& layer : stored) by_name[plain_name(layer.layer)] = &layer;
    std::vector<StoredLayer> ordered;
    for (const LayerWeights& layer : layers) {
      const auto it = by_name.find(layer.layer);
      if (it == by_name.end()) return;
      ordered.push_back(*it->second);
    }
    if (ordered.size() == stored.size()) stored = std::move(ordered);
  }

  // Returns the stored weights of a layer, which are empty if the file has no group for it.
  StoredLayer stored_layer(const std::string& name) const {
    StoredLayer out{.layer = name, .names = {}, .datasets = {}};
    const std::string group = inside(root_, name);
    if (!file_.has(group)) return out;
    out.names = file_.string_list(group, "weight_names");
    for (const std::string& weight : out.names)
      out.datasets.push_back(absl::StrCat(group, "/", weight));
    return out;
  }

  std::vector<StoredLayer> weighted_layers() const {
    std::vector<StoredLayer> out;
    for (const std::string& name : file_.string_list(root_, "layer_names")) {
      StoredLayer layer = stored_layer(name);
      if (!layer.names.empty()) out.push_back(std::move(layer));
    }
    return out;
  }

  template <class... Args>
  void mismatch(const Args&... what) {
    if (!matching_.skip_mismatch) throw ValueError(file_.path(), ": ", what...);
    skipped_.push_back(str(what...));
  }

  void match_layers_in_order(const std::vector<LayerWeights>& layers,
                             const std::vector<StoredLayer>& stored) {
    if (layers.size() != stored.size()) {
      std::vector<std::string> needed, found;
      for (const LayerWeights& layer : layers) needed.push_back(layer.layer);
      for (const StoredLayer& layer : stored) found.push_back(layer.layer);
      throw ValueError(file_.path(), ": the model has ", needed.size(), " layers with weights (",
                       absl::StrJoin(needed, ", "), "), the file has ", found.size(), " (",
                       absl::StrJoin(found, ", "),
                       "); load a file of the same architecture, or load by name");
    }
    for (size_t i = 0; i < layers.size(); ++i) match(layers[i], stored[i]);
  }

  void match_layers_by_name(const std::vector<LayerWeights>& layers,
                            const std::vector<StoredLayer>& stored) {
    bool any = layers.empty();
    std::map<std::string, const StoredLayer*> by_name, by_plain_name;
    for (const StoredLayer& s : stored) {
      by_name.emplace(s.layer, &s);
      // Names of layers loaded from files contain no "/" (keras_dialect.h).
      by_plain_name.emplace(plain_name(s.layer), &s);
    }
    for (const LayerWeights& layer : layers) {
      const auto same = by_name.find(layer.layer);
      const auto it = by_plain_name.find(layer.layer);
      if (same == by_name.end() && it == by_plain_name.end()) {
        skipped_.push_back(absl::StrCat("layer '", layer.layer, "' is not in ", file_.path()));
        continue;
      }
      any = true;
      match(layer, same == by_name.end() ? *it->second : *same->second);
    }
    if (any) return;
    std::vector<std::string> found;
    for (const StoredLayer& layer : stored) found.push_back(layer.layer);
    throw ValueError(file_.path(),
                     ": no layer of the model has the name of a layer in the file, which ", "has ",
                     absl::StrJoin(found, ", "), "; load by order, without by_name");
  }

  // Takes the tables for unbounded ids, which are the last datasets of the layer. Returns false if
  // the file has too few datasets.
  bool take_tables(const LayerWeights& layer, StoredLayer& stored) {
    const size_t parts = layer.dynamic_tables.size() * kDynamicParts.size();
    if (stored.datasets.size() < parts) return false;
    const size_t first = stored.datasets.size() - parts;
    for (size_t i = 0; i < layer.dynamic_tables.size(); ++i) {
      const auto from =
          stored.datasets.begin() + static_cast<std::ptrdiff_t>(first + i * kDynamicParts.size());
      const std::vector<std::string> datasets(from, from + kDynamicParts.size());
      const NamedDynamicTable& table = layer.dynamic_tables[i].table;
      // Tables of equal sizes must not be taken for each other.
      if (!datasets[0].ends_with(absl::StrCat("/", table.name, "/", kDynamicParts[0], ":0")))
        return false;
      tables_.emplace_back(table.table, read_dynamic_table(file_, datasets, table));
    }
    stored.names.resize(first);
    stored.datasets.resize(first);
    return true;
  }

  // Returns the weights of a layer for that number of datasets. Earlier releases stored the kernel
  // of a layer with LoRA with the product of its matrices.
  const LayerWeights& as_stored(const LayerWeights& layer, size_t datasets) const {
    if (layer.weights.size() == datasets) return layer;
    const auto merged = merged_.find(layer.layer);
    const bool fits = merged != merged_.end() && merged->second.weights.size() == datasets;
    return fits ? merged->second : layer;
  }

  void match(const LayerWeights& given, StoredLayer stored) {
    const LayerWeights& layer = as_stored(
        given, stored.datasets.size() - given.dynamic_tables.size() * kDynamicParts.size());
    if (!take_tables(layer, stored)) {
      return mismatch(
          "layer '", layer.layer, "' requires table '", layer.dynamic_tables[0].table.name,
          "' with dynamic ids, which the file does not have under '", stored.layer, "'");
    }
    const bool same_count = layer.weights.size() == stored.names.size();
    if (layer.nested && same_count) match_by_name(layer, stored);
    std::vector<StoredArray> arrays = stored_arrays(file_, origin_, layer, stored.datasets);
    if (layer.weights.size() != arrays.size()) {
      std::vector<std::string> names;
      for (const NamedWeight& weight : layer.weights) names.push_back(weight.name);
      return mismatch("layer '", layer.layer, "' requires ", names.size(), " weights (",
                      absl::StrJoin(names, ", "), "); the file has ", stored.names.size(),
                      " under '", stored.layer, "' (", absl::StrJoin(stored.names, ", "), ")");
    }
    for (size_t i = 0; i < layer.weights.size(); ++i) {
      const StateEntry& entry = layer.weights[i].entry;
      const std::string problem = spec_mismatch(entry.spec, arrays[i].spec);
      if (!problem.empty()) {
        mismatch("layer '", layer.layer, "', weight '", layer.weights[i].name, "'", problem, " in ",
                 arrays[i].dataset);
      } else {
        assignments_.push_back({.array = std::move(arrays[i]),
                                .dtype = entry.spec.dtype,
                                .set = entry.set,
                                .check = entry.check});
      }
    }
  }

  const Hdf5File& file_;
  const std::string root_;
  const WeightMatching matching_;
  LegacyOrigin origin_;
  std::map<std::string, LayerWeights> merged_;  // by name of the layer, LoRA in the kernels
  std::vector<Assignment> assignments_;
  std::vector<std::pair<DynamicTable, DynamicTableState>> tables_;
  std::vector<std::string> skipped_;
};

}  // namespace

std::vector<std::string> read_legacy_weights(const Hdf5File& file, const std::string& root,
                                             const Model& model, const WeightMatching& matching) {
  Matcher matcher(file, root, matching);
  matcher.match(model);
  return std::move(matcher).assign();
}

}  // namespace keel
