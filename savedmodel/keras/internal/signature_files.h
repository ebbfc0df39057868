// Stores signatures in model files as JSON: in an attribute of an HDF5 file, and in the metadata of
// a .keras archive. Keras ignores both.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

inline constexpr const char* kSignaturesKey = "keel_signatures";

// Returns the names of the features that feed the model's inputs, in the order of the inputs.
// Throws the errors of the constructor of Signature.
std::vector<std::string> check_signature(const Model& model, const ExampleFeatures& features);
// Checks all signatures before a file is written. Also throws ValueError for names and default
// values that are not UTF-8, which files cannot store. Errors name the signature.
void check_signatures(const Model& model, const SignatureSpecs& specs);

// Converts signatures to a Config and back. The inverse throws TypeError or ValueError for a config
// that to_config() does not produce.
Config to_config(const SignatureSpecs& specs);
SignatureSpecs signature_specs_from(const Config& config);

// Add signatures to the contents of a file. Add nothing if there are none.
void add_signatures(const SignatureSpecs& specs, Hdf5Contents& contents);
void add_signatures(const SignatureSpecs& specs, Config& archive_metadata);

// Returns the signatures that the file of a whole model contains, possibly none. Throws IoError,
// TypeError or ValueError, naming the file, if it cannot be read or contains something else.
SignatureSpecs read_signature_specs(const std::string& path);

}  // namespace keel
