// Reads TensorBoard event files. Implements the format independently of the writer and shares no
// code with it.
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

struct ReadImage {
  int64_t height = 0, width = 0, channels = 0;
  std::string file;  // as encoded
};

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;  // empty if absent
  // The summary values that have a scalar, a histogram or an image.
  struct Value {
    std::string tag;
    bool is_scalar = false, is_histogram = false, is_image = false;
    float scalar = 0;
    ReadHistogram histogram;
    ReadImage image;
  };
  std::vector<Value> values;
};

// Returns the events of a file. Throws std::runtime_error if the file is not an event file; checks
// framing, checksums and wire format.
std::vector<ReadEvent> read_events(const std::filesystem::path& file);

}  // namespace keel
