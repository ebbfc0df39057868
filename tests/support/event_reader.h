// Reads event files as the format is described, and shares no code with what writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace keel {

struct ReadHistogram {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;
};

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;  // if it has one
  // Of the summary's values: tag and what it has, of those that have a scalar or a histogram.
  struct Value {
    std::string tag;
    bool is_scalar = false, is_histogram = false;
    float scalar = 0;
    ReadHistogram histogram;
  };
  std::vector<Value> values;
};

// Throws std::runtime_error for a file that is no event file: framing, checksums and wire format
// are checked.
std::vector<ReadEvent> read_events(const std::filesystem::path& file);

}  // namespace keel
