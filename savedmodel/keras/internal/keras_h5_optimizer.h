// The state of an optimizer in Keras's files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

inline constexpr char kOptimizerWeights[] = "/optimizer_weights";

struct OptimizerWeight {
  std::string name;             // in the group
  std::function<Tensor()> get;  // collective over the processes of a job
};

// What that group holds: the iterations, then the slots in Keras's order, named as by Keras 2.15
// ("iteration:0", "Adam/m/dense/kernel:0"). Slots that are missing are made first.
std::vector<OptimizerWeight> optimizer_weights(const Model& model);

// Reads them into the optimizer of a compiled model, from files of Keras 2 and 3; nothing happens
// if the file has none, and leave_optimizer_out if it has those of another number of variables.
// ValueError, before anything changes, if shapes do not fit the model's trainable variables;
// IoError for a name whose meaning is not known.
void read_optimizer_weights(const Hdf5File& file, const Model& model);

// Says on stderr that an optimizer stays new, as Keras does: the file's state is of other
// variables, as that of a model whose tables an engine held is on the host.
void leave_optimizer_out(const std::string& where, size_t needed, size_t stored);

struct OptimizerState {
  std::string name;
  TensorSpec spec = {};
  bool is_slot = false;  // made with the variables; the others there are from the start
  std::function<Tensor()> get;
  std::function<void(const Tensor&)> set;
};

// The state of the optimizer of a compiled model in the order of Keras 3's files: the iterations,
// the learning rate unless a schedule gives it, then averages and accumulated gradients if the
// optimizer has them, its slots, and those that all variables share. Slots that are missing are
// made first.
std::vector<OptimizerState> optimizer_state(const Model& model);

}  // namespace keel
