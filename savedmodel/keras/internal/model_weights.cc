#include <keel/savedmodel/keras/internal/model_weights.h>

#include <algorithm>
#include <set>

#include <keel/autodiff/replica_context.h>
#include <keel/layers/core/projection.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>

namespace keel {
namespace {

// Replaces parts of a name that cannot be group names: in HDF5, "." is the group itself.
std::string file_name(const std::string& name) {
  std::string out, part;
  const auto end_part = [&] {
    out += part.empty() || part == "." ? "_" : part;
    part.clear();
  };
  for (char c : name) {
    if (c == '/') {
      end_part();
      out += '/';
    } else {
      part += c;
    }
  }
  end_part();
  return out + ":0";
}

class Collector {
 public:
  explicit Collector(LoraWeights lora) : lora_(lora) {}

  // Adds the weights of a layer. Names of sublayers are prefixed, except in nested models.
  void add(const Layer& layer, const std::string& prefix) {
    if (!seen_.insert(&layer).second) return;
    add_own(layer, prefix);
    if (const auto* model = dynamic_cast<const Model*>(&layer)) {
      for (const auto& child : model->layers()) add(*child, child->name() + "/");
    }
    // The layers that layers() lists have been added already.
    for (const auto& child : layer.sublayers()) add(*child, prefix + child->name() + "/");
  }

  void add_own(const Layer& layer, const std::string& prefix) {
    for (StateEntry& entry : entries_of(layer)) {
      if (entry.kind != StateEntry::Kind::kWeight || entry.any_rows) continue;
      std::string name = file_name(prefix + entry.name);
      for (int i = 1; !names_.insert(name).second; ++i) {
        name = file_name(prefix + entry.name + "_" + std::to_string(i));
      }
      all_.push_back({.name = name, .entry = std::move(entry), .owner = &layer});
    }
    for (NamedDynamicTable& table : dynamic_tables_of(layer)) {
      std::string name = prefix + table.name;
      for (int i = 1; !names_.insert(name).second; ++i) {
        name = prefix + table.name + "_" + std::to_string(i);
      }
      tables_.push_back({.prefix = name + "/", .table = std::move(table)});
    }
  }

  std::vector<NamedWeight> take() {
    std::ranges::stable_partition(all_, [](const NamedWeight& w) { return w.entry.trainable; });
    return std::move(all_);
  }
  std::vector<LayerWeights::Table> take_tables() { return std::move(tables_); }

 private:
  std::vector<StateEntry> entries_of(const Layer& layer) const {
    const auto* projection = dynamic_cast<const ProjectionLayer*>(&layer);
    const bool separate = lora_ == LoraWeights::kSeparate && projection != nullptr &&
                          static_cast<bool>(projection->lora_kernel_a());
    return separate ? layer.Layer::state_entries() : layer.state_entries();
  }

  const LoraWeights lora_;
  std::set<const Layer*> seen_;
  std::set<std::string> names_;
  std::vector<NamedWeight> all_;
  std::vector<LayerWeights::Table> tables_;
};

void require_built(const std::string& caller, const Layer& root, const Layer& layer) {
  if (dynamic_cast<const InputLayer*>(&layer) != nullptr) return;
  // These are built when their layers are, even if they have not been called.
  const bool is_graph = dynamic_cast<const FunctionalModel*>(&layer) != nullptr ||
                        dynamic_cast<const SequentialModel*>(&layer) != nullptr;
  if (is_graph) {
    for (const auto& child : layer.sublayers()) require_built(caller, root, *child);
  } else if (!layer.built()) {
    throw RuntimeError(
        caller, ": ", layer.class_name(), " '", layer.name(), "' of ", root.class_name(), " '",
        root.name(),
        "' has no weights yet; call the model once first, or begin it with an InputLayer");
  }
}

}  // namespace

std::vector<LayerWeights> weights_by_layer(const Model& model, LoraWeights lora) {
  std::vector<LayerWeights> out;
  for (const auto& layer : model.layers()) {
    Collector collector(lora);
    collector.add(*layer, layer->name() + "/");
    out.push_back({.layer = layer->name(),
                   .nested = !layer->sublayers().empty(),
                   .weights = collector.take(),
                   .dynamic_tables = collector.take_tables()});
  }
  return out;
}

LayerWeights top_level_weights(const Model& model) {
  Collector collector(LoraWeights::kMerged);
  collector.add_own(model, "");
  return {.layer = "top_level_model_weights",
          .weights = collector.take(),
          .dynamic_tables = collector.take_tables()};
}

std::string spec_mismatch(const TensorSpec& needed, const TensorSpec& stored) {
  if (stored.shape != needed.shape) {
    return str(" requires shape ", needed.shape, ", the file has ", stored.shape);
  }
  if ((needed.dtype == DType::kInt8) == (stored.dtype == DType::kInt8)) return {};
  return str(" requires ", needed.dtype, ", the file has ", stored.dtype);
}

void require_built(const std::string& caller, const Layer& root) {
  require_built(caller, root, root);
}

void require_no_replica(const std::string& caller) {
  const ReplicaContext* context = current_replica_context();
  if (context != nullptr && context->replicas > 1) {
    throw RuntimeError(caller, ": must be called outside the replicas of a strategy");
  }
}

}  // namespace keel
