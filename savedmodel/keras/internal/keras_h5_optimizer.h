// Reads and writes the state of optimizers in Keras's files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

inline constexpr char kOptimizerWeights[] = "/optimizer_weights";

// A dataset of the group kOptimizerWeights.
struct OptimizerWeight {
  std::string name;             // in the group
  std::function<Tensor()> get;  // collective over the processes of a job
};

// Returns the contents of that group: the iterations, then the slots in Keras's order, with the
// names of Keras 2.15 ("iteration:0", "Adam/m/dense/kernel:0"). Creates missing slots first.
// Throws NotImplementedError for a MultiOptimizer.
std::vector<OptimizerWeight> optimizer_weights(const Model& model);

// Assigns the optimizer state of a file of Keras 2 or 3 to the optimizer of a compiled model. Does
// nothing if the file has none. Calls leave_optimizer_out() if the file has state for another
// number of variables. Throws ValueError, before anything changes, if shapes do not fit the model's
// trainable variables, and IoError for an unknown name.
void read_optimizer_weights(const Hdf5File& file, const Model& model);

// Warns on stderr, like Keras, that the optimizer's state is not loaded, because the file's state
// belongs to other variables. An example is a model saved with its tables in an engine and loaded
// on the host.
void leave_optimizer_out(const std::string& where, size_t needed, size_t stored);

// One tensor of an optimizer's state.
struct OptimizerState {
  std::string name;
  TensorSpec spec = {};
  bool is_slot = false;  // slots are created with the variables, the other state with the optimizer
  std::function<Tensor()> get;
  std::function<void(const Tensor&)> set;
};

// Returns the state of a compiled model's optimizer in the order of Keras 3's files: the
// iterations, the learning rate unless it is a schedule, averages and accumulated gradients if the
// optimizer has them, its slots, and the slots that all variables share. A MultiOptimizer has that
// of each of its optimizers. Creates missing slots first.
std::vector<OptimizerState> optimizer_state(const Model& model);

}  // namespace keel
