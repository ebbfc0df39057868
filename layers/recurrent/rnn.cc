#include <keel/layers/recurrent/rnn.h>

#include <keel/layers/recurrent/internal/cell_config.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

LayerHandle<RNNCell> required_cell(const RNNOptions& options) {
  if (!options.cell) throw ValueError("RNN: cell is not set; pass a cell");
  return *options.cell;
}

}  // namespace

LayerHandle<RNNCell> cell_from_config(const Config& config, const std::string& caller) {
  const LayerHandle<Layer> layer = layers::deserialize(config);
  auto cell = std::dynamic_pointer_cast<RNNCell>(layer.shared());
  if (cell == nullptr) {
    throw ValueError(caller, ": ", layer->class_name(), " ", layer->name(),
                     " is not a cell; derive it from RNNCell");
  }
  return {kAdopt, std::move(cell)};
}

std::vector<LayerHandle<RNNCell>> cells_from_config(const Config& config,
                                                    const std::string& caller) {
  std::vector<LayerHandle<RNNCell>> out;
  for (const Config& cell : config.items()) out.push_back(cell_from_config(cell, caller));
  return out;
}

RNNLayer::RNNLayer(Options options)
    : RecurrentLayer(kClassName, options, required_cell(options)), options_(std::move(options)) {}

Config RNNLayer::get_config() const {
  Config out = config_of(to_config(options_));
  out.set("cell", layers::serialize(*cell()));
  return out;
}

std::shared_ptr<Layer> RNNLayer::from_config(const Config& config) {
  Config rest = config;
  std::optional<LayerHandle<RNNCell>> cell;
  const Config* const found = config.find("cell");
  if (found != nullptr && found->is_list()) {
    cell = layers::StackedRNNCells({.cells = cells_from_config(*found, kClassName)});
  } else if (found != nullptr && !found->is_null()) {
    cell = cell_from_config(*found, kClassName);
  }
  rest.erase("cell");
  auto options = keel::from_config<Options>(rest, kClassName);
  options.cell = std::move(cell);
  return std::make_shared<RNNLayer>(std::move(options));
}

KEEL_REGISTER(Layer, RNNLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "num_constants=null, time_major=false")

}  // namespace keel
