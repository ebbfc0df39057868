#include <keel/savedmodel/keras/internal/keras_weights_h5.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>

#include <keel/layers/core/projection.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/text_vectorization.h>
#include <keel/savedmodel/keras/dialect/keras_dialect.h>
#include <keel/savedmodel/keras/internal/keras_h5_optimizer.h>
#include <keel/savedmodel/keras/internal/keras_weight_groups.h>
#include <keel/savedmodel/keras/internal/model_weights.h>

namespace keel {
namespace {

constexpr const char* kOptimizer = "/optimizer/vars";

std::string vars_of(const std::string& path) {
  return path.empty() ? "/vars" : "/" + path + "/vars";
}

// Adds the idf_weights of a layer of class T, which have a name instead of a number. Keras does
// not load a model without them.
template <class T>
void add_idf_weights(const Layer& layer, const std::string& vars, Hdf5Contents& out) {
  const auto* lookup = dynamic_cast<const T*>(&layer);
  if (lookup == nullptr || lookup->idf_weights().empty()) return;
  const std::vector<double> values = lookup->idf_weights();
  Tensor weights = Tensor::from(values, {std::ssize(values)}).cast(DType::kFloat32);
  out.datasets.push_back({.path = vars + "/idf_weights", .get = [weights] { return weights; }});
}

}  // namespace

void add_idf_weights(const Layer& layer, const std::string& group, Hdf5Contents& out) {
  add_idf_weights<StringLookupLayer>(layer, group + "/vars", out);
  add_idf_weights<IntegerLookupLayer>(layer, group + "/vars", out);
  // Keras stores these in the group of the StringLookup inside the layer.
  add_idf_weights<TextVectorizationLayer>(layer, group + "/_lookup_layer/vars", out);
}

Hdf5Contents keras_weights_contents(const Model& model, const MinCount& min_count) {
  require_no_replica("save_weights");
  require_built("save_weights", model);
  Hdf5Contents out;
  const auto add = [&](const std::string& vars, const std::string& name) {
    out.groups.push_back(vars);
    out.texts.push_back({.object = vars, .attribute = "name", .text = name});
  };
  for (WeightGroup& group : weight_groups(model)) {
    const std::string vars = vars_of(group.path);
    add(vars, group.name);
    add_idf_weights(*group.layer, group.path.empty() ? "" : "/" + group.path, out);
    for (size_t i = 0; i < group.weights.size(); ++i) {
      out.datasets.push_back(
          {.path = absl::StrCat(vars, "/", i), .get = std::move(group.weights[i].get)});
    }
    for (const NamedDynamicTable& table : group.dynamic_tables) {
      out.groups.push_back(absl::StrCat(vars, "/", table.name));
      const auto parts = dynamic_parts(table, min_count);
      for (size_t i = 0; i < parts.size(); ++i) {
        out.datasets.push_back(
            {.path = absl::StrCat(vars, "/", table.name, "/", kDynamicParts[i]), .get = parts[i]});
      }
    }
  }
  if (model.optimizer() == nullptr) return out;
  add(kOptimizer, model.optimizer()->name());
  std::vector<OptimizerState> state = optimizer_state(model);
  for (size_t i = 0; i < state.size(); ++i) {
    out.datasets.push_back(
        {.path = absl::StrCat(kOptimizer, "/", i), .get = std::move(state[i].get)});
  }
  return out;
}

namespace {

class Reader {
 public:
  Reader(const Hdf5File& file, bool skip_mismatch) : file_(file), skip_(skip_mismatch) {
    index("");
  }

  void match(const WeightGroup& group) {
    if (!group.attribute.empty() && match_in_owner(group)) return;
    const std::string vars = find(group);
    const size_t stored = vars.empty() ? 0 : count_numbered(vars);
    for (const NamedDynamicTable& table : group.dynamic_tables) take_table(vars, table);
    if (group.weights_inside > 0 && stored == group.weights_inside) return;  // match_in_owner()
    if (stored != group.weights.size()) {
      return mismatch("layer '", group.name, "' requires ", group.weights.size(), " weights in ",
                      vars_of(group.path), ", the file has ", stored);
    }
    if (const auto* layer = dynamic_cast<const ProjectionLayer*>(group.layer)) {
      if (layer->lora_kernel_a()) lora_.push_back(layer->lora_kernel_a());
    }
    const std::vector<StateEntry> weights = in_stored_order(group.weights, vars);
    for (size_t i = 0; i < weights.size(); ++i) {
      const StateEntry& entry = weights[i];
      take(absl::StrCat("layer '", group.name, "', weight '", entry.name, "'"),
           absl::StrCat(vars, "/", i), entry.spec, entry.set, entry.check);
    }
  }

  void match_optimizer(const Model& model) {
    if (model.optimizer() == nullptr || !file_.has(kOptimizer)) return;
    std::vector<OptimizerState> state = optimizer_state(model);
    const size_t stored = file_.children(kOptimizer).size();
    // An optimizer that had not created its slots yet has none in the file.
    const auto is_slot = [](const OptimizerState& s) { return s.is_slot; };
    const size_t scalars = std::ranges::find_if(state, is_slot) - state.begin();
    if (stored != state.size() && stored != scalars) {
      return leave_optimizer_out(absl::StrCat(file_.path(), ", ", kOptimizer), state.size(),
                                 stored);
    }
    if (stored == state.size()) move_shared(*model.optimizer(), scalars, state);
    for (size_t i = 0; i < stored; ++i) {
      take(absl::StrCat("optimizer, '", state[i].name, "'"), absl::StrCat(kOptimizer, "/", i),
           state[i].spec, state[i].set);
    }
  }

  std::vector<std::string> assign() && {
    for (const Assignment& a : assignments_) {
      if (a.check) a.check(file_.read(a.dataset, a.dtype));
    }
    for (const Assignment& a : assignments_) a.set(file_.read(a.dataset, a.dtype));
    for (const auto& [table, state] : tables_) table.restore(state);
    // The kernels contain the products of the matrices. Keras clears both of them.
    for (const Variable& a : lora_) a.assign(Tensor::zeros(a.shape(), a.dtype()));
    return std::move(skipped_);
  }

 private:
  struct Assignment {
    std::string dataset;
    DType dtype;
    std::function<void(const Tensor&)> set, check;
  };

  template <class... Args>
  void mismatch(const Args&... what) {
    if (!skip_) throw ValueError(file_.path(), ": ", what...);
    skipped_.push_back(str(what...));
  }

  bool fits(const std::vector<OptimizerState>& state) const {
    for (size_t i = 0; i < state.size(); ++i) {
      const std::string dataset = absl::StrCat(kOptimizer, "/", i);
      if (!file_.has(dataset) || !spec_mismatch(state[i].spec, file_.spec(dataset)).empty()) {
        return false;
      }
    }
    return true;
  }

  // Moves the slots that all variables share to their place in the file. Keras before 3.10 stores
  // Nadam's product before the other slots, but after averages and accumulated gradients.
  void move_shared(const Optimizer& optimizer, size_t first_slot,
                   std::vector<OptimizerState>& state) const {
    const size_t shared = optimizer.shared_slots().size();
    if (shared == 0 || !optimizer.optimizers().empty() || fits(state)) return;
    const auto position = [](auto& all, size_t i) {
      return all.begin() + static_cast<std::ptrdiff_t>(i);
    };
    for (size_t to = first_slot; to + shared < state.size(); ++to) {
      std::vector<OptimizerState> moved = state;
      std::rotate(position(moved, to), position(moved, moved.size() - shared), moved.end());
      if (fits(moved)) {
        state = std::move(moved);
        return;
      }
    }
  }

  // Returns true if the datasets of a group fit the weights in this order.
  bool fits(const std::vector<StateEntry>& weights, const std::string& vars) const {
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string dataset = absl::StrCat(vars, "/", i);
      if (!file_.has(dataset) || !spec_mismatch(weights[i].spec, file_.spec(dataset)).empty()) {
        return false;
      }
    }
    return true;
  }

  // Returns the weights of a group in the order of the file. Earlier releases stored the trainable
  // weights of quantized and adapted layers first.
  std::vector<StateEntry> in_stored_order(std::vector<StateEntry> weights,
                                          const std::string& vars) const {
    if (fits(weights, vars)) return weights;
    std::vector<StateEntry> earlier = weights;
    std::ranges::stable_partition(earlier, &StateEntry::trainable);
    return fits(earlier, vars) ? earlier : weights;
  }

  // Matches the group in the layout of earlier releases, which stored the weights of sublayers in
  // the group of the outer layer. Returns false if the file has another layout.
  bool match_in_owner(const WeightGroup& group) {
    const auto owner = by_path_.find(group.owner_path);
    if (owner == by_path_.end() || count_numbered(owner->second) <= group.positions.back()) {
      return false;
    }
    for (size_t i = 0; i < group.weights.size(); ++i) {
      const StateEntry& entry = group.weights[i];
      take(absl::StrCat("layer '", group.layer->name(), "', weight '", entry.name, "'"),
           absl::StrCat(owner->second, "/", group.positions[i]), entry.spec, entry.set,
           entry.check);
    }
    return true;
  }

  // Counts the weights of a group. The groups of lookup layers may also contain other datasets.
  size_t count_numbered(const std::string& vars) const {
    const std::vector<std::string> names = file_.children(vars);
    return std::ranges::count_if(names, [](const std::string& name) {
      return name.find_first_not_of("0123456789") == std::string::npos;
    });
  }

  // Returns the current path of a group, whose name contains backslashes if written on Windows.
  static std::string path_of_now(const std::string& child) {
    std::string out;
    for (size_t begin = 0; begin <= child.size();) {
      const size_t end = std::min(child.find('\\', begin), child.size());
      const std::string part = child.substr(begin, end - begin);
      out += (begin == 0 ? "" : "/") + (part == "_layer_checkpoint_dependencies" ? "layers" : part);
      begin = end + 1;
    }
    return out;
  }

  // Indexes all groups with weights by path and, if the file contains it, by layer name. Paths
  // are those since Keras 2.15; before, children were not in "layers".
  void index(const std::string& group, const std::string& path = "") {
    for (const std::string& child : file_.children(group.empty() ? "/" : group)) {
      const std::string full = absl::StrCat(group, "/", child);
      if (!file_.is_group(full)) continue;
      if (child != "vars") {
        index(full,
              path.empty() ? path_of_now(child) : absl::StrCat(path, "/", path_of_now(child)));
        continue;
      }
      by_path_[path] = full;
      if (!file_.has_attribute(full, "name")) continue;
      // Names of layers loaded from files contain no "/" (keras_dialect.h).
      const std::string name = plain_name(file_.string_attribute(full, "name"));
      path_of_name_.emplace(name, path);
      if (!file_.children(full).empty()) by_name_.emplace(name, full);
    }
  }

  // Returns the path of a group in the file. The layers of a model that is not a graph may be
  // under the names of its attributes, which are unknown here, and are then found by layer name.
  std::string find(const WeightGroup& group) const {
    auto here = by_path_.find(group.path);
    if (here == by_path_.end() && group.path.ends_with("/_gate_dense")) {
      // Earlier releases named the gate of MultiHeadAttention without an underscore.
      std::string earlier = group.path;
      earlier.erase(earlier.rfind('/') + 1, 1);
      here = by_path_.find(earlier);
    }
    if (!group.attribute.empty()) {
      if (here != by_path_.end()) return here->second;
      const auto [first, last] = path_of_name_.equal_range(group.layer->name());
      if (first == last || std::next(first) != last) return "";
      const auto there = by_path_.find(first->second + "/" + group.attribute);
      return there == by_path_.end() ? "" : there->second;
    }
    if (group.weights.empty() && group.dynamic_tables.empty())
      return here == by_path_.end() ? "" : here->second;
    if (here != by_path_.end() && !file_.children(here->second).empty()) return here->second;
    const auto [first, last] = by_name_.equal_range(group.name);
    return first != last && std::next(first) == last ? first->second : "";
  }

  void take(const std::string& what, const std::string& dataset, const TensorSpec& spec,
            const std::function<void(const Tensor&)>& set,
            const std::function<void(const Tensor&)>& check = {}) {
    if (!file_.has(dataset)) return mismatch(what, " is not in the file: there is no ", dataset);
    const std::string problem = spec_mismatch(spec, file_.spec(dataset));
    if (!problem.empty()) return mismatch(what, problem, " in ", dataset);
    assignments_.push_back({.dataset = dataset, .dtype = spec.dtype, .set = set, .check = check});
  }

  void take_table(const std::string& vars, const NamedDynamicTable& table) {
    const std::string group = absl::StrCat(vars, "/", table.name);
    if (vars.empty() || !file_.has(group)) {
      return mismatch("layer '", table.layer, "' requires table '", table.name,
                      "' with dynamic ids, which the file does not have");
    }
    std::vector<std::string> datasets;
    for (const char* part : kDynamicParts) datasets.push_back(absl::StrCat(group, "/", part));
    tables_.emplace_back(table.table, read_dynamic_table(file_, datasets, table));
  }

  const Hdf5File& file_;
  const bool skip_;
  std::vector<std::pair<DynamicTable, DynamicTableState>> tables_;
  std::map<std::string, std::string> by_path_;
  std::multimap<std::string, std::string> by_name_;       // groups with weights
  std::multimap<std::string, std::string> path_of_name_;  // all groups
  std::vector<Variable> lora_;
  std::vector<Assignment> assignments_;
  std::vector<std::string> skipped_;
};

}  // namespace

std::vector<std::string> read_keras_weights(const Hdf5File& file, const Model& model,
                                            bool skip_mismatch) {
  require_no_replica("load_weights");
  require_built("load_weights", model);
  Reader reader(file, skip_mismatch);
  for (const WeightGroup& group : weight_groups(model)) reader.match(group);
  reader.match_optimizer(model);
  return std::move(reader).assign();
}

}  // namespace keel
