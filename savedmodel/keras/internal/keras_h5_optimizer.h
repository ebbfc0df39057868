// The optimizer state in Keras's files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

inline constexpr char kOptimizerWeights[] = "/optimizer_weights";

// One dataset of the optimizer state in a legacy file.
struct OptimizerWeight {
  std::string name;             // in the group
  std::function<Tensor()> get;  // collective over the processes of a job
};

// Returns the contents of the group kOptimizerWeights: the iterations, then the slots in Keras's
// order, with the names of Keras 2.15 ("iteration:0", "Adam/m/dense/kernel:0"). Creates missing
// slots first.
std::vector<OptimizerWeight> optimizer_weights(const Model& model);

// Reads the state from files of Keras 2 and 3 into the optimizer of a compiled model. Does nothing
// if the file has no state. Calls leave_optimizer_out if the state has another number of variables.
// Throws ValueError, before any change, if shapes do not fit the model's trainable variables, and
// IoError for a name with an unknown meaning.
void read_optimizer_weights(const Hdf5File& file, const Model& model);

// Prints to stderr that the optimizer is not restored, as Keras does. This happens if the stored
// state belongs to other variables, for example if an engine held the tables of the saved model.
void leave_optimizer_out(const std::string& where, size_t needed, size_t stored);

// One variable of the optimizer state.
struct OptimizerState {
  std::string name;
  TensorSpec spec = {};
  bool is_slot = false;  // created with the variables; other state exists from the start
  std::function<Tensor()> get;
  std::function<void(const Tensor&)> set;
};

// Returns the optimizer state of a compiled model in the order of Keras 3's files: the iterations,
// the learning rate unless a schedule computes it, averages and accumulated gradients if the
// optimizer has them, its slots, and the slots that all variables share. Creates missing slots
// first.
std::vector<OptimizerState> optimizer_state(const Model& model);

}  // namespace keel
