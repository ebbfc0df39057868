// HDF5 files: groups, datasets and attributes in the form that h5py and Keras write.
//
// Paths are absolute or relative to the root, with '/' between their parts. Errors caused by a file
// are IoErrors that name the file and the object. Files are not trusted. The following are
// rejected: links other than hard links, groups with two names (a group could contain itself),
// external and virtual datasets, filters other than deflate, shuffle and fletcher32, and sizes that
// are impossible for the length of the file.
//
// Thread safety: an object must not be used by several threads at once. Different objects may be;
// the HDF5 library allows one call at a time, which a lock ensures.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/file_part.h>
#include <keel/framework/tensor.h>
#include <keel/savedmodel/mapped/mapped_tables.h>

namespace keel {

// An HDF5 file that is open for reading.
class Hdf5File {
 public:
  // Opens the file. Throws IoError if it is missing, unreadable, truncated or not HDF5. Errors call
  // the file `name`, or by its path if `name` is empty.
  explicit Hdf5File(const std::string& path, const std::string& name = {});
  // Opens a part of a file that is an HDF5 file itself.
  Hdf5File(const FilePart& part, const std::string& name);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // From now on read() maps large datasets of float32 and int8 that lie in the file as they are
  // needed, instead of copying them, and records in `tables` what it does.
  void map_tables(std::shared_ptr<MappedTables> tables);

  const std::string& path() const;
  // Returns true if the file has this group or dataset.
  bool has(const std::string& object) const;
  // Returns true if the object is a group. Throws IoError if it does not exist.
  bool is_group(const std::string& object) const;
  std::vector<std::string> children(const std::string& group) const;  // ascending by name

  // Returns true if the object has this attribute. Throws IoError if the object does not exist.
  bool has_attribute(const std::string& object, const std::string& name) const;
  // Returns an attribute that holds one string, of fixed or variable length, ASCII or UTF-8.
  std::string string_attribute(const std::string& object, const std::string& name) const;
  // Returns an attribute that holds one integer.
  int64_t integer_attribute(const std::string& object, const std::string& name) const;
  // Returns a list of strings in any form that Keras files use: strings of fixed or variable
  // length, an empty array of any type, or a list split over "<name>0", "<name>1", ... Returns an
  // empty list if the attribute does not exist.
  std::vector<std::string> string_list(const std::string& object, const std::string& name) const;

  // Returns the shape and dtype of read(): float16 is read as float32, and 16-bit integers as
  // int32.
  TensorSpec spec(const std::string& dataset) const;
  // The values of a dataset in the file, if they can be read in place.
  struct Location {
    int64_t offset = -1;        // bytes from the start of the file; -1 if there is an obstacle
    std::string obstacle = {};  // why they must be copied, such as "the dataset is chunked"
  };
  // Finds where the values lie as contiguous little-endian elements of `dtype`, float32 or int8, at
  // an address that is a multiple of their size.
  Location locate(const std::string& dataset, DType dtype) const;

  // Reads a whole dataset.
  Tensor read(const std::string& dataset) const;
  // Reads a whole dataset and converts it to another numeric dtype.
  Tensor read(const std::string& dataset, DType dtype) const;
  // Reads rows [first, first + count) of a dataset of numbers or strings of rank 1 or more. Throws
  // IoError if the dataset has fewer rows.
  Tensor read_rows(const std::string& dataset, int64_t first, int64_t count) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Writes an HDF5 file.
class Hdf5Writer {
 public:
  enum class Charset { kAscii, kUtf8 };

  // Starts a file that appears under `path` when commit() returns, and not at all without commit().
  // Throws IoError if it cannot be created.
  explicit Hdf5Writer(const std::string& path);
  // Writes to a temporary file, which must outlive the object. commit() does not rename it.
  explicit Hdf5Writer(const TemporaryFile& to);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // Creates a group and its missing parents. Has no effect if the group exists.
  void create_group(const std::string& group);
  // Writes a dataset, little-endian and contiguous. bool is stored as h5py's enumeration, strings
  // as UTF-8 of variable length.
  void write(const std::string& dataset, const Tensor& value);
  // Writes a numeric dataset in pieces: create_dataset() creates it, and write_rows() writes rows
  // from row `first` on.
  void create_dataset(const std::string& dataset, const TensorSpec& spec);
  void write_rows(const std::string& dataset, int64_t first, const Tensor& rows);

  // Writes an attribute. The object must exist, and each attribute can be written only once. Throws
  // ValueError for a string that contains a NUL character.
  void write_attribute(const std::string& object, const std::string& name, std::string_view text,
                       Charset charset = Charset::kAscii);
  void write_attribute(const std::string& object, const std::string& name, int64_t value);
  // Writes a list of strings as Keras does: as ASCII strings of variable length; an empty list as
  // an empty array of doubles; and a list that does not fit into an object header split over
  // "<name>0", "<name>1", ...
  void write_string_list(const std::string& object, const std::string& name,
                         const std::vector<std::string>& values);

  // Closes the file, seals it if `seal` is set (atomic_file.h), reads back every group, dataset and
  // attribute, compares their checksums with those of the written values, and moves the file to its
  // path. Throws IoError if the file cannot be written or reads back other bytes.
  struct CommitOptions {
    bool seal;
  };
  void commit(const CommitOptions& options = {.seal = false});

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel
