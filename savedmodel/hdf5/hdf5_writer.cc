#include <algorithm>
#include <array>
#include <hdf5.h>
#include <optional>
#include <utility>

#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/hdf5/hdf5_internal.h>
#include <keel/savedmodel/hdf5/hdf5_output_internal.h>
#include <keel/savedmodel/hdf5/hdf5_record.h>

namespace keel {

using hdf5_internal::Hdf5Output;
using hdf5_internal::Id;
using hdf5_internal::LibraryScope;
using hdf5_internal::Place;

namespace {

// Size limit of an attribute in an object header, as in Keras.
constexpr size_t kHeaderLimit = 64512;
constexpr size_t kVariableStringBytes = 16;  // size of an element of variable length in the header

Id variable_string_type(const Place& place, bool utf8) {
  Id type = place.check(H5Tcopy(H5T_C_S1), H5Tclose, "the string type cannot be created");
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
  return type;
}

// The type by which h5py stores a numpy bool.
Id bool_type(const Place& place) {
  Id type =
      place.check(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "the enumeration type cannot be created");
  constexpr std::array<int8_t, 2> kValues = {0, 1};
  H5Tenum_insert(type, "FALSE", &kValues[0]);
  H5Tenum_insert(type, "TRUE", &kValues[1]);
  return type;
}

Id file_type(const Place& place, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return bool_type(place);
    case DType::kString:
      return variable_string_type(place, true);
    case DType::kFloat32:
      return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
    case DType::kFloat64:
      return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose};
    case DType::kInt32:
      return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    case DType::kInt64:
      return {H5Tcopy(H5T_STD_I64LE), H5Tclose};
    case DType::kInt8:
      return {H5Tcopy(H5T_STD_I8LE), H5Tclose};
    case DType::kUint8:
      break;
  }
  return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
}

Id space_of(const Place& place, const Shape& shape) {
  if (shape.rank() == 0)
    return place.check(H5Screate(H5S_SCALAR), H5Sclose, "the scalar dataspace cannot be created");
  const std::vector<hsize_t> dims(shape.dims().begin(), shape.dims().end());
  return place.check(H5Screate_simple(shape.rank(), dims.data(), nullptr), H5Sclose,
                     "the dataspace cannot be created");
}

void check_no_nul(const Place& place, std::string_view text) {
  if (text.find('\0') == std::string_view::npos) return;
  throw ValueError("Hdf5Writer: ", place.object, " ", place.attribute,
                   ": strings must not contain a NUL character");
}

// Returns the sizes of the smallest number of parts of at most `largest` elements. The sizes differ
// by at most 1.
std::vector<size_t> near_equal_parts(size_t count, size_t largest) {
  const size_t parts = (count + largest - 1) / largest;
  std::vector<size_t> sizes(parts, count / parts);
  for (size_t i = 0; i < count % parts; ++i) ++sizes[i];
  return sizes;
}

}  // namespace

struct Hdf5Writer::Impl {
  explicit Impl(const std::string& path) : target(std::in_place, path), output(target->file()) {}
  explicit Impl(const TemporaryFile& to) : scratch(&to), output(to) {}

  std::optional<AtomicFile> target;
  const TemporaryFile* scratch = nullptr;
  Hdf5Output output;
  std::optional<Id> file;
  Hdf5Record record;

  const TemporaryFile& temporary() const { return target ? target->file() : *scratch; }
  const std::string& path() const { return temporary().target(); }

  void create_file();
  Id open(const Place& place) const {
    return place.check(H5Oopen(*file, place.object.empty() ? "/" : place.object.c_str(), 0),
                       H5Oclose, "is not in the file");
  }
  Id create(const Place& place, const TensorSpec& spec) const;
  // Closes an object. Small values reach the file only here, so errors of the disk are checked.
  void close(const Place& place, Id& id) const {
    const bool closed = id.close();
    output.check();
    if (!closed) place.fail("cannot be written");
  }
  // Throws the error of the disk if there is one, which is more precise than the library's.
  void check(const Place& place, int status) const {
    output.check();
    place.check(status, "cannot be written");
  }
  void write_attribute(const Place& place, hid_t type, hid_t space, const void* value) const;
  void write_fixed_strings(const Place& place, const std::string* first, size_t count,
                           size_t longest) const;
};

void Hdf5Writer::Impl::create_file() {
  const std::string root = "/";
  const Place place{path(), root};
  file.emplace(place.check(output.create(), H5Fclose, "cannot be created"));
  output.check();
}

Id Hdf5Writer::Impl::create(const Place& place, const TensorSpec& spec) const {
  const Id type = file_type(place, spec.dtype);
  const Id space = space_of(place, spec.shape);
  const Id links =
      place.check(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "the link property list cannot be created");
  H5Pset_create_intermediate_group(links, 1);
  const Id creation = place.check(H5Pcreate(H5P_DATASET_CREATE), H5Pclose,
                                  "the dataset property list cannot be created");
  H5Pset_obj_track_times(creation, false);  // for reproducible files
  Id out = place.check(
      H5Dcreate2(*file, place.object.c_str(), type, space, links, creation, H5P_DEFAULT), H5Dclose,
      "dataset cannot be created");
  output.check();
  return out;
}

Hdf5Writer::Hdf5Writer(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  const LibraryScope library;
  impl_->create_file();
}

Hdf5Writer::Hdf5Writer(const TemporaryFile& to) : impl_(std::make_unique<Impl>(to)) {
  const LibraryScope library;
  impl_->create_file();
}

Hdf5Writer::~Hdf5Writer() {
  const LibraryScope library;
  // Without commit() the file is discarded, so buffered values need not be written.
  impl_->output.abandon();
  impl_->file.reset();
}

void Hdf5Writer::create_group(const std::string& group) {
  const LibraryScope library;
  const Place place{impl_->path(), group};
  std::string so_far;
  for (const std::string& part : hdf5_internal::parts_of(group)) {
    so_far += "/" + part;
    if (H5Lexists(*impl_->file, so_far.c_str(), H5P_DEFAULT) > 0) continue;
    Id id =
        place.check(H5Gcreate2(*impl_->file, so_far.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                    H5Gclose, "group cannot be created");
    impl_->close(place, id);
  }
  impl_->record.add_group(group);
}

void Hdf5Writer::write(const std::string& dataset, const Tensor& value) {
  const LibraryScope library;
  const Place place{impl_->path(), dataset};
  const bool strings = value.dtype() == DType::kString;
  std::vector<const char*> pointers;
  if (strings) {
    for (const std::string& s : value.data<std::string>()) {
      check_no_nul(place, s);
      pointers.push_back(s.c_str());
    }
  }
  Id id = impl_->create(place, value.spec());
  if (value.size() > 0) {
    const void* source = strings ? static_cast<const void*>(pointers.data()) : value.raw().data();
    // Numbers are little-endian in memory too, so the file's type also describes the memory.
    const Id type = file_type(place, value.dtype());
    impl_->check(place, H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, source));
  }
  impl_->close(place, id);
  impl_->record.add_values(dataset, value);
}

void Hdf5Writer::create_dataset(const std::string& dataset, const TensorSpec& spec) {
  const LibraryScope library;
  const Place place{impl_->path(), dataset};
  Id id = impl_->create(place, spec);
  impl_->close(place, id);
  impl_->record.add_dataset(dataset, spec);
}

void Hdf5Writer::write_rows(const std::string& dataset, int64_t first, const Tensor& rows) {
  if (rows.size() == 0) return;
  const LibraryScope library;
  const Place place{impl_->path(), dataset};
  Id id = impl_->open(place);
  const Id space = place.check(H5Dget_space(id), H5Sclose, "has no shape");
  hdf5_internal::select_rows(place, space, first, rows.shape());
  const Id memory = space_of(place, rows.shape());
  const Id type = file_type(place, rows.dtype());
  const Id stored = place.check(H5Dget_type(id), H5Tclose, "has no type");
  if (H5Tequal(type, stored) <= 0)
    place.fail("rows must have the dtype of the dataset, received ", rows.dtype());
  impl_->check(place, H5Dwrite(id, type, memory, space, H5P_DEFAULT, rows.raw().data()));
  impl_->close(place, id);
  impl_->record.add_rows(dataset, first, rows);
}

void Hdf5Writer::Impl::write_attribute(const Place& place, hid_t type, hid_t space,
                                       const void* value) const {
  Id object = open(place);
  Id attribute = place.check(
      H5Acreate2(object, place.attribute.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
      "cannot be created");
  if (value != nullptr) check(place, H5Awrite(attribute, type, value));
  close(place, attribute);
  close(place, object);
}

void Hdf5Writer::write_attribute(const std::string& object, const std::string& name,
                                 std::string_view text, Charset charset) {
  const LibraryScope library;
  const Place place{impl_->path(), object, name};
  check_no_nul(place, text);
  const Id type = variable_string_type(place, charset == Charset::kUtf8);
  const std::string terminated(text);
  const char* pointer = terminated.c_str();
  impl_->write_attribute(place, type, space_of(place, {}), &pointer);
  impl_->record.add_text(object, name, text);
}

void Hdf5Writer::write_attribute(const std::string& object, const std::string& name,
                                 int64_t value) {
  const LibraryScope library;
  const Place place{impl_->path(), object, name};
  impl_->write_attribute(place, H5T_STD_I64LE, space_of(place, {}), &value);
  impl_->record.add_integer(object, name, value);
}

void Hdf5Writer::Impl::write_fixed_strings(const Place& place, const std::string* first,
                                           size_t count, size_t longest) const {
  const Id type = place.check(H5Tcopy(H5T_C_S1), H5Tclose, "the string type cannot be created");
  H5Tset_size(type, longest);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  std::string bytes(count * longest, '\0');
  for (size_t i = 0; i < count; ++i) std::ranges::copy(first[i], &bytes[i * longest]);
  write_attribute(place, type, space_of(place, {static_cast<int64_t>(count)}), bytes.data());
}

void Hdf5Writer::write_string_list(const std::string& object, const std::string& name,
                                   const std::vector<std::string>& values) {
  const LibraryScope library;
  const Place place{impl_->path(), object, name};
  size_t longest = 1;
  for (const std::string& value : values) {
    check_no_nul(place, value);
    longest = std::max(longest, value.size());
  }
  if (longest > kHeaderLimit) {
    throw ValueError("Hdf5Writer: ", object, " ", name, ": names must have at most ", kHeaderLimit,
                     " bytes, received one of ", longest);
  }
  impl_->record.add_list(object, name, values);
  if (values.empty()) {
    impl_->write_attribute(place, H5T_IEEE_F64LE, space_of(place, {0}), nullptr);
    return;
  }
  if (values.size() * std::max(kVariableStringBytes, longest) <= kHeaderLimit) {
    std::vector<const char*> pointers;
    for (const std::string& value : values) pointers.push_back(value.c_str());
    const Id space = space_of(place, {static_cast<int64_t>(values.size())});
    impl_->write_attribute(place, variable_string_type(place, false), space, pointers.data());
    return;
  }
  const std::string* next = values.data();
  int part = 0;
  for (size_t count : near_equal_parts(values.size(), kHeaderLimit / longest)) {
    const Place here{place.file, object, name + std::to_string(part++)};
    impl_->write_fixed_strings(here, next, count, longest);
    next += count;
  }
}

void Hdf5Writer::commit(const CommitOptions& options) {
  const std::string root = "/";
  {
    const LibraryScope library;
    const Place place{impl_->path(), root};
    impl_->close(place, *impl_->file);
  }
  const TemporaryFile& written = impl_->temporary();
  // Starts writing to the disk now, so that it overlaps with reading back.
  if (impl_->target) written.start_sync();
  if (options.seal) seal_file(written.path());
  impl_->record.check(Hdf5File(written.path(), impl_->path()));
  if (impl_->target) impl_->target->commit();
}

}  // namespace keel
