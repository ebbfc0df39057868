// libtorch's layers, and a small residual network, with the weights of Keel's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace keel::bench {

// The compared work. Inputs have the channels last.
struct LayerWork {
  // Keras's class name, "StackedLSTM" or "StackedGRU" (two layers), or "ResNet".
  std::string layer;
  std::vector<int64_t> input;  // [batch, ...]
  int64_t units = 0;           // filters, units, heads, groups or classes; 0: none
  int64_t window = 0;          // size of windows along each axis; 0: none
};

// The values of one weight in Keras's layout.
struct WeightValues {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// The order of axes in libtorch's memory.
enum class MemoryFormat { kChannelsFirst, kChannelsLast };

class LayerPeer {
 public:
  virtual ~LayerPeer() = default;
  // Computes the sum of the layer's output, and its gradients with respect to the input and the
  // weights. For "ResNet": the loss of one batch and one step of SGD.
  virtual void step() = 0;
  // Returns the output of the last step in Keras's layout; for "ResNet" the loss.
  virtual std::vector<float> output() = 0;
};

// Returns null without libtorch. `input` has the shape work.input. `weights` are in Keras's order;
// those of "ResNet" in the order of the calls, without the moving statistics. `labels` are for
// "ResNet" only.
std::unique_ptr<LayerPeer> make_layer_peer(const LayerWork& work, MemoryFormat format,
                                           const std::vector<float>& input,
                                           const std::vector<WeightValues>& weights,
                                           const std::vector<int64_t>& labels);

}  // namespace keel::bench
