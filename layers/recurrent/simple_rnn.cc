#include <keel/layers/recurrent/simple_rnn.h>

#include <keel/layers/recurrent/simple_rnn_cell.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

layers::SimpleRNNCell make_cell(const SimpleRNNOptions& options) {
  auto cell = recurrent_settings<SimpleRNNCellOptions>(options);
  cell.activation = options.activation;
  cell.name = "simple_rnn_cell";
  cell.dtype = options.dtype;
  return layers::SimpleRNNCell(std::move(cell));
}

}  // namespace

SimpleRNNLayer::SimpleRNNLayer(Options options)
    : RecurrentLayer(kClassName, options, make_cell(options)), options_(std::move(options)) {}

KEEL_REGISTER(Layer, SimpleRNNLayer)

}  // namespace keel
