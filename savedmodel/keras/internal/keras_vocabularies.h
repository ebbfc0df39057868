// Vocabularies in Keras 3's archives that stand beside the config: those that StringLookup and
// IntegerLookup learned, or read from a file.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {

// The config of an archive's model, where each lookup layer without a vocabulary of its own has
// that of the archive: "assets/<group>/vocabulary.txt", a word for each line, and for tf_idf the
// dataset "<group>/vars/idf_weights" of `weights`. Groups are those of the layers' weights; layers
// stand in their order in files that Keras wrote.
// IoError if a word of IntegerLookup is no integer, or idf_weights are missing.
Config with_vocabularies(const ZipFile& archive, const Hdf5File& weights, const Config& model);

}  // namespace keel
