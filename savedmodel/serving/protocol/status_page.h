// The page that a browser shows at "/".
#pragma once

#include <string>

namespace keel::serving {

// Returns an HTML page that shows models, versions, states, request rates and latencies, and has a
// form for predictions. Its script reads the server's own APIs.
std::string status_page();

}  // namespace keel::serving
