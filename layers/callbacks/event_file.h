// EventFile: values by step in a file that TensorBoard reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <keel/framework/data/tfrecord.h>
#include <keel/framework/tensor.h>

namespace keel {

// A new file "events.out.tfevents.<seconds>.<host>.<process>.<number>", of TFRecord records that
// are Event messages; the first one names the version of the format.
class EventFile {
 public:
  // Makes the folder too. IoError if file or folder cannot be made, and if the disk refuses later.
  explicit EventFile(const std::filesystem::path& folder);

  void add_scalar(const std::string& tag, double value, int64_t step);  // kept as float32
  // How many of the values lie where: in buckets that grow by a tenth, from 1e-12 to 1e20 on both
  // sides of 0. Values that are not finite are left out. TypeError for strings.
  void add_histogram(const std::string& tag, const Tensor& values, int64_t step);
  void flush();  // TensorBoard can read what was added so far
  // Flushes, and makes the file durable. IoError if the disk refuses.
  void close();

  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
  data::TFRecordWriter records_;
};

}  // namespace keel
