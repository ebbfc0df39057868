// The features of a FeatureSpace by kind, and from its config.
#pragma once

#include <string>

#include <keel/layers/utils/feature_space.h>

namespace keel::utils {

// Returns a feature of a kind with default options. Its preprocessor is empty for an unknown kind.
Feature feature_of_kind(const std::string& kind, int64_t hashing_dim,
                        int64_t num_discretization_bins);

// Reads a config of FeatureSpace. Throws ValueError for a missing key and TypeError for a value of
// a wrong type.
FeatureSpaceOptions feature_space_options(const Config& config);

}  // namespace keel::utils
