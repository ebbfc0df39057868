// Vocabularies that Keras 3's archives store next to the config: those that StringLookup and
// IntegerLookup learned or read from a file.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {

// Returns the config of an archive's model, in which each lookup layer without its own vocabulary
// has that of the archive: "assets/<group>/vocabulary.txt" with one word per line, and for tf_idf
// the dataset "<group>/vars/idf_weights" of `weights`. The groups are those of the layers' weights.
// The layers of files written by Keras are in their original order.
// Throws IoError if a word of IntegerLookup is not an integer, or if idf_weights are missing.
Config with_vocabularies(const ZipFile& archive, const Hdf5File& weights, const Config& model);

}  // namespace keel
