// Reads and writes the model archives of Keras 3 (.keras): zip files of configuration and weights.
#pragma once

#include <memory>
#include <set>
#include <string>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/min_count.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/mapped/mapped_tables.h>

namespace keel {

// Options of write_keras_archive().
struct KerasArchiveWriteOptions {
  SignatureSpecs signatures = {};                // must fit the model
  MinCount min_count = {};                       // for tables for unbounded ids
  std::set<std::string> vocabulary_assets = {};  // lookup layers with vocabularies in assets
};

// Writes configuration and weights and, if the model is compiled with an optimizer, the arguments
// of compile() and the optimizer's state. The file appears as a whole or not at all. All processes
// of a job must call this, and rank 0 writes the file. Throws NotImplementedError if a part of the
// model has no config, RuntimeError if the model has no weights yet, and IoError if the file cannot
// be written.
void write_keras_archive(const Model& model, const std::string& path,
                         const KerasArchiveWriteOptions& options = {});

// Options of read_keras_archive(), as in LoadOptions (saved_model.h).
struct KerasArchiveReadOptions {
  bool compile = false;
  bool safe_mode = true;
  std::shared_ptr<MappedTables> mapped_tables = nullptr;
};

// Returns the model of an archive. Throws IoError if the file is damaged or not an archive, and the
// other errors of read_keras_h5().
ModelHandle read_keras_archive(const std::string& path,
                               const KerasArchiveReadOptions& options = {});
// Assigns only the weights of an archive to a model of the same structure; otherwise like
// read_keras_weights().
std::vector<std::string> read_archive_weights(const std::string& path, const Model& model,
                                              bool skip_mismatch);

}  // namespace keel
