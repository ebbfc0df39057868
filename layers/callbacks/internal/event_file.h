// EventFile: writes scalars and histograms by step to a file that TensorBoard reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <keel/framework/data/tfrecord.h>
#include <keel/framework/tensor.h>

namespace keel {

// Creates a new file "events.out.tfevents.<seconds>.<host>.<process>.<number>". It consists of
// TFRecord records that hold Event messages (event.proto); the first record contains the version of
// the format.
class EventFile {
 public:
  // Creates the folder if needed. Throws IoError if the file or folder cannot be created. All
  // members throw IoError if writing fails.
  explicit EventFile(const std::filesystem::path& folder);

  void add_scalar(const std::string& tag, double value, int64_t step);  // stored as float32
  // Adds the counts of the values in buckets whose limits grow by 10 %, from 1e-12 to 1e20 on both
  // sides of 0. Values that are not finite are ignored. Throws TypeError for strings.
  void add_histogram(const std::string& tag, const Tensor& values, int64_t step);
  // Adds a picture of float values [height, width, channels] with 1, 3 or 4 channels, in which 0 is
  // black and 1 is white. Other values are clipped.
  void add_image(const std::string& tag, const Tensor& values, int64_t step);
  void flush();  // makes all values added so far visible to TensorBoard
  // Flushes and syncs the file to disk. Throws IoError if that fails.
  void close();

  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
  data::TFRecordWriter records_;
};

}  // namespace keel
