#include <keel/layers/recurrent/lstm.h>

#include <keel/layers/recurrent/lstm_cell.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

layers::LSTMCell make_cell(const LSTMOptions& options) {
  auto cell = recurrent_settings<LSTMCellOptions>(options);
  cell.activation = options.activation;
  cell.recurrent_activation = options.recurrent_activation;
  cell.unit_forget_bias = options.unit_forget_bias;
  cell.name = "lstm_cell";
  cell.dtype = options.dtype;
  return layers::LSTMCell(std::move(cell));
}

}  // namespace

LSTMLayer::LSTMLayer(Options options)
    : RecurrentLayer(kClassName, options, make_cell(options)), options_(std::move(options)) {}

KEEL_REGISTER(Layer, LSTMLayer)

}  // namespace keel
