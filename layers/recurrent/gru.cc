#include <keel/layers/recurrent/gru.h>

#include <keel/layers/recurrent/gru_cell.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

layers::GRUCell make_cell(const GRUOptions& options) {
  auto cell = recurrent_settings<GRUCellOptions>(options);
  cell.activation = options.activation;
  cell.recurrent_activation = options.recurrent_activation;
  cell.reset_after = options.reset_after;
  cell.name = "gru_cell";
  cell.dtype = options.dtype;
  return layers::GRUCell(std::move(cell));
}

}  // namespace

GRULayer::GRULayer(Options options)
    : RecurrentLayer(kClassName, options, make_cell(options)), options_(std::move(options)) {}

KEEL_REGISTER(Layer, GRULayer)

}  // namespace keel
