// Decompresses request bodies.
#pragma once

#include <string>
#include <string_view>

namespace keel::serving {

// Decompresses a whole body in the format of gzip (`gzip` true) or zlib. A gzip body may have
// several members (RFC 1952, 2.2), which are joined. Throws ServeError 400 if it is damaged or
// incomplete or has bytes after its end, and 413 if it has more than `limit` bytes.
std::string inflate_body(std::string_view body, bool gzip, size_t limit);

}  // namespace keel::serving
