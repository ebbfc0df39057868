// Stores signatures in model files as JSON: in an attribute of an HDF5 file or in the metadata of a
// .keras archive. Keras ignores both.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

inline constexpr const char* kSignaturesKey = "keel_signatures";

// Returns the names of the features that feed the model's inputs, in the order of the inputs.
// Throws the errors of Signature.
std::vector<std::string> check_signature(const Model& model, const ExampleFeatures& features);
// Checks all signatures before a file is written. Also throws ValueError for values that cannot be
// stored: names and default values that are not UTF-8. Errors name the signature.
void check_signatures(const Model& model, const SignatureSpecs& specs);

// Returns the config that stores the signatures.
Config to_config(const SignatureSpecs& specs);
// Reads the result of to_config. Throws TypeError or ValueError for any other config.
SignatureSpecs signature_specs_from(const Config& config);

// Add the signatures to a file that is being written; nothing is added if there are none.
void add_signatures(const SignatureSpecs& specs, Hdf5Contents& contents);
void add_signatures(const SignatureSpecs& specs, Config& archive_metadata);

// Reads the signatures of a whole-model file; the result is empty if the file has none. Throws
// IoError, TypeError or ValueError, naming the file, if the file cannot be read or contains invalid
// signatures.
SignatureSpecs read_signature_specs(const std::string& path);

}  // namespace keel
