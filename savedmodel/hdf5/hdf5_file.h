// HDF5 files: groups, datasets and attributes as h5py and Keras write them.
//
// Paths are absolute or relative to the root, parts separated by '/'. Every error that comes from
// a file is an IoError that names the file and the object in it. Files are not trusted: links
// other than hard ones, groups with two names (which may be in themselves), external and virtual
// datasets and filters other than deflate, shuffle and fletcher32 are refused, and no size is
// believed that the file's own length does not allow.
//
// Thread safety: objects belong to one thread at a time; different ones may be used at once (the
// HDF5 library allows one call at a time, which a lock sees to).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/tensor.h>

namespace keel {

class Hdf5File {
 public:
  // Opens for reading. IoError if the file is missing, unreadable, truncated or not HDF5. Errors
  // call it `name` if there is one, else by its path.
  explicit Hdf5File(const std::string& path, const std::string& name = {});
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  const std::string& path() const;
  bool has(const std::string& object) const;
  bool is_group(const std::string& object) const;
  std::vector<std::string> children(const std::string& group) const;  // ascending by name

  bool has_attribute(const std::string& object, const std::string& name) const;
  // One string, of fixed or variable length, ASCII or UTF-8.
  std::string string_attribute(const std::string& object, const std::string& name) const;
  int64_t integer_attribute(const std::string& object, const std::string& name) const;
  // A list of strings in any of the forms of Keras files: fixed or variable length; an empty
  // array of whatever type; or split over "<name>0", "<name>1", ... Empty if there is none.
  std::vector<std::string> string_list(const std::string& object, const std::string& name) const;

  // What read() returns. float16 counts as float32, integers of 16 bits as int32.
  TensorSpec spec(const std::string& dataset) const;
  Tensor read(const std::string& dataset) const;
  // Converted to another numeric dtype while reading.
  Tensor read(const std::string& dataset, DType dtype) const;
  // Rows [first, first + count) of a dataset of numbers, of rank 1 or more. IoError if it has
  // fewer.
  Tensor read_rows(const std::string& dataset, int64_t first, int64_t count) const;

 private:
  struct Impl;
  const std::unique_ptr<const Impl> impl_;
};

class Hdf5Writer {
 public:
  enum class Charset { kAscii, kUtf8 };

  // The file appears under `path` when commit() returns, and not at all without it.
  // IoError if it cannot be made.
  explicit Hdf5Writer(const std::string& path);
  // Writes to a temporary file, which must outlive the object. commit() does not rename it.
  explicit Hdf5Writer(const TemporaryFile& to);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // Groups on the way are made too; one that exists stays.
  void create_group(const std::string& group);
  // Little-endian and contiguous; bool as h5py's enum, strings of variable length in UTF-8.
  void write(const std::string& dataset, const Tensor& value);
  // The same in pieces: a dataset of numbers, then rows of it, from row `first` on.
  void create_dataset(const std::string& dataset, const TensorSpec& spec);
  void write_rows(const std::string& dataset, int64_t first, const Tensor& rows);

  // The object must exist; an attribute is written once. ValueError for a string with a NUL.
  void write_attribute(const std::string& object, const std::string& name, std::string_view text,
                       Charset charset = Charset::kAscii);
  void write_attribute(const std::string& object, const std::string& name, int64_t value);
  // ASCII of variable length; an empty list is an empty array of doubles, and one that an object
  // header cannot hold is split over "<name>0", "<name>1", ..., all as Keras does.
  void write_string_list(const std::string& object, const std::string& name,
                         const std::vector<std::string>& values);

  // Closes the file, seals it if asked (atomic_file.h), reads back every group, dataset and
  // attribute and compares their checksums with those of the values that were written, and puts
  // the file in place. IoError if the disk refuses or returns other bytes.
  struct CommitOptions {
    bool seal;
  };
  void commit(const CommitOptions& options = {.seal = false});

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel
