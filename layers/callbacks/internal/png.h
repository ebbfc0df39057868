// png_of(): encodes a picture as a PNG file.
#pragma once

#include <cstdint>
#include <string>

namespace keel {

// Returns the PNG file of a picture: its bytes row by row, with 1 (grey), 3 (red, green, blue) or 4
// channels (and opacity) for each pixel. The file is not compressed.
std::string png_of(const std::string& pixels, int64_t width, int64_t height, int64_t channels);

}  // namespace keel
