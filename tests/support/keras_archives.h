// Reads parts of .keras files.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel::testing_support {

// Returns the config.json of a .keras file.
Config config_in(const std::string& path);

}  // namespace keel::testing_support
