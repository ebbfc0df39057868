// Construction of the cells of recurrent layers.
#pragma once

#include <utility>

#include <keel/layers/recurrent/recurrent.h>

namespace keel {

// Creates the cell of a recurrent layer from the layer's options.
template <class Cell>
LayerHandle<RNNCell> make_cell(const char* name, const auto& options) {
  auto cell = recurrent_settings<typename Cell::Options>(options);
  cell.activation = options.activation;
  if constexpr (requires { cell.recurrent_activation; }) {
    cell.recurrent_activation = options.recurrent_activation;
  }
  if constexpr (requires { cell.unit_forget_bias; }) {
    cell.unit_forget_bias = options.unit_forget_bias;
  }
  if constexpr (requires { cell.reset_after; }) cell.reset_after = options.reset_after;
  cell.name = name;
  cell.dtype = options.dtype;
  return LayerHandle<Cell>(std::move(cell));
}

}  // namespace keel
