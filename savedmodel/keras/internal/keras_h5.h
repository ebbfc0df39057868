// Reads and writes whole models in Keras's legacy files (.h5): configuration and weights. Keras 2
// and 3 read the written files.
#pragma once

#include <memory>
#include <string>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/min_count.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/mapped/mapped_tables.h>

namespace keel {

// Options of write_keras_h5().
struct KerasH5WriteOptions {
  // If true, writes the optimizer state of a compiled model in the layout of Keras 2.15. Keras 3
  // loads such a file, but cannot resume training from it.
  bool optimizer_weights = false;
  SignatureSpecs signatures = {};  // must fit the model
  MinCount min_count = {};         // for tables for unbounded ids
};

// Writes a model. If it is compiled with an optimizer, the arguments of compile() are written too.
// The file appears as a whole or not at all. All processes of a job must call this, and rank 0
// writes the file. Tables are gathered from all processes, and each process temporarily holds one
// whole table at a time.
//
// Throws NotImplementedError, naming it, if a part of the model has no config, RuntimeError if the
// model has no weights yet, and IoError if the file cannot be written.
void write_keras_h5(const Model& model, const std::string& path,
                    const KerasH5WriteOptions& options = {});

// Options of read_keras_h5(), as in LoadOptions (saved_model.h).
struct KerasH5ReadOptions {
  bool compile = false;
  bool safe_mode = true;
  std::shared_ptr<MappedTables> mapped_tables = nullptr;
};

// Returns a model with the weights of the file. Layers with weights are matched by order, and so
// are the weights of each layer; names are ignored. All weights are checked before the first one is
// assigned.
//
// Throws
// - IoError if the file is damaged or not a legacy file of a whole model;
// - ValueError for an unknown class or config key;
// - NotImplementedError for a feature that is not supported;
// - ValueError, naming layer, weight and both shapes, if weights are missing, left over or of
//   another shape.
ModelHandle read_keras_h5(const std::string& path, const KerasH5ReadOptions& options = {});

}  // namespace keel
