// TFRecord files: sequences of records, which are arbitrary byte strings, each with its length and
// checksums.
//
//   auto clicks = data::TFRecordDataset({"clicks-0.gz", "clicks-1.gz"},
//                                       {.compression_type = "GZIP"})
//                     .batch(256)
//                     .map(data::ExampleParser(features));
//
// Files are not trusted: a length is used only if its checksum is correct and if the file can hold
// that many bytes. Memory is bounded by the longest record and a buffer.
//
// tf.Example: values by feature name, serialized to a byte string. serialize_example() writes
// examples; ExampleParser and parse_example() read batches of them into tensors
// (tf.io.parse_example).
//
//   const data::ExampleParser parse({{"age", data::FixedLenFeature{.dtype = DType::kInt64}},
//                                    {"watched", data::RaggedFeature{.dtype = DType::kInt64}}});
//   auto rows = data::TFRecordDataset("users.tfrecord").batch(256).map(parse);
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <keel/framework/data/dataset.h>
#include <keel/framework/tensor_like.h>

namespace keel::data {

// Serializes an example. The values of a feature are those of its tensor, flattened: strings as
// bytes, float32 and float64 as float, integers and bool as int64. An empty tensor (Tensor()) makes
// a feature without a list of values. Equal features give equal bytes. Throws ValueError for a
// symbolic tensor.
std::string serialize_example(const std::map<std::string, Tensor>& features);

// The dtype of a feature must be float32, int64 or string, the types that examples can hold.

// A feature with the same number of values in every example. Parsed to a dense tensor with the
// dimensions [batch] + shape.
struct FixedLenFeature {
  Shape shape = {};               // the shape of the values of one example; default: a scalar
  DType dtype = DType::kFloat32;  // dtype of the values
  // The value for examples in which the feature is missing: a scalar or a tensor of `shape`. If
  // empty, a missing feature is an error.
  Tensor default_value = {};
};

// A feature with any number of values. Parsed to a sparse tensor [batch, n], where n is the largest
// number of values of an example in the batch.
struct VarLenFeature {
  DType dtype = DType::kInt64;  // dtype of the values
};

// A feature with any number of values. Parsed to a ragged tensor, whose row i holds the values of
// example i.
struct RaggedFeature {
  DType dtype = DType::kInt64;  // dtype of the values
};

// The specification of one feature.
using FeatureSpec = std::variant<FixedLenFeature, VarLenFeature, RaggedFeature>;
// The specifications of all features by name.
using FeatureSpecs = std::map<std::string, FeatureSpec>;

// Returns "FixedLenFeature", "VarLenFeature" or "RaggedFeature".
const char* name_of(const FeatureSpec& spec);
// Returns the dtype of the feature.
DType dtype_of(const FeatureSpec& spec);
// Returns the spec of the parsed tensor; its batch dimension is unknown.
TensorSpec parsed_spec(const FeatureSpec& spec);

// Parses batches of examples with specs that are validated once. Copies share the specs. Thread
// safe.
class ExampleParser {
 public:
  // Throws TypeError for a dtype that examples cannot hold, and for a default value that does not
  // have the feature's dtype. Throws ValueError if there are no features, if a shape has unknown
  // dimensions, and if a default value is neither a scalar nor of the feature's shape.
  explicit ExampleParser(FeatureSpecs specs);

  // Parses serialized examples, strings of shape [batch], into {feature name: values}. Features
  // without a spec are skipped. If an example contains a name twice, the last one applies. A
  // feature without a list of values counts as missing.
  //
  // Throws TypeError if `serialized` is not a dense string tensor, and if the values of a feature
  // do not have the dtype of its spec.
  //
  // Throws ValueError in these cases:
  // - `serialized` does not have shape [batch];
  // - an example is not a valid tf.Example;
  // - a feature without a default value is missing;
  // - the number of values does not match the shape of a FixedLenFeature.
  // Messages contain the position of the example, the feature, and the expected and received
  // values.
  Tensors operator()(const Tensors& serialized) const;

  // Returns the specs.
  const FeatureSpecs& specs() const;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

// Returns ExampleParser(specs)(serialized).
Tensors parse_example(const Tensor& serialized, const FeatureSpecs& specs);

class CompressedReader;
class CompressedWriter;

// Options for reading.
struct TFRecordOptions {
  std::string compression_type = {};  // compression of all files: "", "GZIP" or "ZLIB"
  int64_t buffer_size = 256 * 1024;   // bytes read at once
};

// Reads the records of one file in order.
class TFRecordReader {
 public:
  // Throws IoError if the file cannot be opened and ValueError for invalid options.
  explicit TFRecordReader(const std::filesystem::path& file, const TFRecordOptions& options = {});
  ~TFRecordReader();

  // Reads the next record into `record` and returns true, or returns false at the end. Throws
  // IoError, with the file and the (uncompressed) offset, if the record is damaged or truncated.
  // Reading cannot continue after an error.
  bool next(std::string& record);

 private:
  const std::unique_ptr<CompressedReader> bytes_;
};

// Options for writing.
struct TFRecordWriterOptions {
  std::string compression_type = {};  // "", "GZIP" or "ZLIB"
};

// Writes records to one file.
class TFRecordWriter {
 public:
  // Creates the file or truncates an existing one. Throws ValueError for invalid options. The
  // constructor and all members throw IoError if writing fails.
  explicit TFRecordWriter(const std::filesystem::path& file,
                          const TFRecordWriterOptions& options = {});
  // Closes the file and ignores errors; call close() to detect them.
  ~TFRecordWriter();

  // Appends a record. Throws RuntimeError if the file is closed.
  void write(std::string_view record);
  // Makes all records written so far readable by other processes.
  void flush();
  // Writes all records to the disk and closes the file.
  void close();

 private:
  const std::unique_ptr<CompressedWriter> bytes_;
};

// A dataset of string scalars: the records of the files, one file after another. A file is opened
// when its first record is needed. Errors are those of TFRecordReader, thrown at their position in
// the order. Throws ValueError if `files` is empty.
class TFRecordDataset : public Dataset {
 public:
  // Reads several files, or one file.
  explicit TFRecordDataset(std::vector<std::filesystem::path> files,
                           const TFRecordOptions& options = {});
  explicit TFRecordDataset(const std::filesystem::path& file, const TFRecordOptions& options = {})
      : TFRecordDataset(std::vector<std::filesystem::path>{file}, options) {}
};

}  // namespace keel::data
