// How files of models hold signatures: as JSON, in an attribute of an HDF5 file and in the metadata
// of a .keras archive, where Keras does not look.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

inline constexpr const char* kSignaturesKey = "keel_signatures";

// Features that feed the model's inputs, in their order. ValueError and TypeError as of Signature.
std::vector<std::string> check_signature(const Model& model, const ExampleFeatures& features);
// The same for all of them, before a file is written; ValueError too for what no file can hold:
// names and default values that are no UTF-8. Errors name the signature.
void check_signatures(const Model& model, const SignatureSpecs& specs);

Config to_config(const SignatureSpecs& specs);
// TypeError or ValueError for a config that is none of to_config.
SignatureSpecs signature_specs_from(const Config& config);

// For writers; nothing is added if there are none.
void add_signatures(const SignatureSpecs& specs, Hdf5Contents& contents);
void add_signatures(const SignatureSpecs& specs, Config& archive_metadata);

// Of a file of a whole model; none if it has none. IoError, TypeError and ValueError, naming the
// file, for one that cannot be read or holds something else.
SignatureSpecs read_signature_specs(const std::string& path);

}  // namespace keel
