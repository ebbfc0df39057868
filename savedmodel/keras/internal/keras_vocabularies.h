// Reads the vocabularies that archives of Keras 3 store outside of the config: those that
// StringLookup, IntegerLookup and TextVectorization have adapted to data or read from a file.
#pragma once

#include <map>
#include <set>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {

// Returns the config of an archive's model with the vocabularies added to lookup layers that have
// none. A vocabulary is the entry "assets/<group>/vocabulary.txt", one token per line, where
// <group> is the layer's group of weights; for tf_idf, the dataset "<group>/vars/idf_weights" of
// `weights` is added too, or "<group>/_lookup_layer/vars/idf_weights" for TextVectorization. The
// layers must be in the order of files that Keras writes. Throws IoError if a token of
// IntegerLookup is not an integer, or if idf_weights are missing.
Config with_vocabularies(const ZipFile& archive, const Hdf5File& weights, const Config& model);

// Moves the vocabularies of the lookup layers with these names from the config of a model to
// assets: {entry of the archive: text}. Throws ValueError, naming the layer, for a word with a line
// break.
Config without_vocabularies(const Config& model, const std::set<std::string>& layers,
                            std::map<std::string, std::string>& assets);

}  // namespace keel
