#include <keel/savedmodel/hdf5/hdf5_file.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <hdf5.h>
#include <optional>

#include <keel/framework/base/internal/unpack_limit.h>
#include <keel/savedmodel/hdf5/hdf5_check.h>
#include <keel/savedmodel/hdf5/hdf5_input_internal.h>
#include <keel/savedmodel/hdf5/hdf5_internal.h>

namespace keel {

using hdf5_internal::Id;
using hdf5_internal::LibraryScope;
using hdf5_internal::Place;

namespace hdf5_internal {
namespace {

static_assert(std::is_same_v<hid_t, int64_t> && std::is_same_v<herr_t, int>);

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;  // guards the HDF5 library, which is not thread safe
  return mutex;
}

// The walk goes downward, so the last description is that of the place where the error occurred.
herr_t keep_description(unsigned, const H5E_error2_t* error, void* out) {
  if (error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

}  // namespace

LibraryScope::LibraryScope() : lock_(library_mutex()) {
  // At exit the library would close datasets a second time that it failed to close on a full disk,
  // and crash on memory that it has already freed.
  [[maybe_unused]] static const herr_t kNeverAtExit = H5dont_atexit();
  H5Eget_auto2(H5E_DEFAULT, &handler_, &handler_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

LibraryScope::~LibraryScope() { H5Eset_auto2(H5E_DEFAULT, handler_, handler_data_); }

std::string library_message() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_description, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? text : " (" + text + ")";
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace hdf5_internal

namespace hdf5_internal {

void select_rows(const Place& place, hid_t space, int64_t first, const Shape& rows) {
  std::vector<hsize_t> dims(H5Sget_simple_extent_ndims(space));
  place.check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "has no shape");
  const std::vector<hsize_t> count(rows.dims().begin(), rows.dims().end());
  bool fits = !dims.empty() && dims.size() == count.size() && first >= 0 &&
              static_cast<hsize_t>(first) + count[0] <= dims[0];
  for (size_t i = 1; fits && i < dims.size(); ++i) fits = dims[i] == count[i];
  if (!fits) place.fail("does not have rows ", first, " to ", first + rows[0], " of shape ", rows);
  std::vector<hsize_t> start(dims.size());
  start[0] = first;
  place.check(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
      "rows cannot be selected");
}

}  // namespace hdf5_internal

namespace {

constexpr size_t kMaxDepth = 64;  // depth of groups in groups
constexpr int64_t kMaxStrings = int64_t{1} << 28;

std::optional<DType> integer_dtype(size_t size, bool is_signed) {
  if (size == 1) return is_signed ? DType::kInt8 : DType::kUint8;
  if (size < 4 || (size == 4 && is_signed)) return DType::kInt32;
  if (size == 4 || size == 8) return DType::kInt64;
  return std::nullopt;
}

bool is_number(DType d) { return is_floating(d) || is_integer(d) || d == DType::kInt8; }

std::optional<DType> dtype_of(hid_t type) {
  const size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      if (size == 2 || size == 4) return DType::kFloat32;
      return size == 8 ? std::optional(DType::kFloat64) : std::nullopt;
    case H5T_INTEGER:
      return integer_dtype(size, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_ENUM:
      return size == 1 && H5Tget_nmembers(type) == 2 ? std::optional(DType::kBool) : std::nullopt;
    case H5T_STRING:
      return DType::kString;
    default:
      return std::nullopt;
  }
}

// Returns the library's type for elements in memory. Booleans keep the file's type of one byte.
Id memory_type(const Place& place, DType dtype, hid_t file_type) {
  const hid_t source = dtype == DType::kFloat32   ? H5T_NATIVE_FLOAT
                       : dtype == DType::kFloat64 ? H5T_NATIVE_DOUBLE
                       : dtype == DType::kInt32   ? H5T_NATIVE_INT32
                       : dtype == DType::kInt64   ? H5T_NATIVE_INT64
                       : dtype == DType::kUint8   ? H5T_NATIVE_UINT8
                       : dtype == DType::kInt8    ? H5T_NATIVE_INT8
                                                  : file_type;
  return place.check(H5Tcopy(source), H5Tclose, "type cannot be copied");
}

std::string trimmed(const char* text, size_t size, H5T_str_t padding) {
  std::string out(text, padding == H5T_STR_NULLTERM ? strnlen(text, size) : size);
  const char fill = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
  while (!out.empty() && out.back() == fill) out.pop_back();
  return out;
}

// Reads `count` strings of fixed or variable length with `read(memory type, buffer)`.
template <class Read>
std::vector<std::string> read_strings(const Place& place, hid_t type, hid_t space, int64_t count,
                                      uint64_t file_bytes, Read read) {
  const size_t size = H5Tget_size(type);
  // Memory is reserved for `count` strings, so a damaged count must be found first.
  if (count > kMaxStrings || size == 0 || static_cast<uint64_t>(count) > file_bytes / size) {
    place.fail("declares ", count, " strings of ", size, " bytes, more than the file holds");
  }
  std::vector<std::string> out;
  out.reserve(count);
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> strings(count, nullptr);
    const herr_t status = read(type, strings.data());
    for (const char* s : strings) out.emplace_back(s == nullptr ? "" : s);
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, strings.data());
    place.check(status, "strings cannot be read");
    return out;
  }
  const H5T_str_t padding = H5Tget_strpad(type);
  std::vector<char> bytes(count * size);
  place.check(read(type, bytes.data()), "strings cannot be read");
  for (int64_t i = 0; i < count; ++i) out.push_back(trimmed(&bytes[i * size], size, padding));
  return out;
}

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  auto& names = *static_cast<std::vector<std::string>*>(out);
  try {
    names.emplace_back(name);
  } catch (const std::bad_alloc&) {  // must not pass through a C library
    return -1;
  }
  return 0;
}

}  // namespace

struct Hdf5File::Impl {
  std::string path;    // or the name that errors use
  int64_t offset = 0;  // offset of the HDF5 file in its file
  uint64_t bytes = 0;
  std::string real_path;  // path of the file that contains the HDF5 file
  std::optional<Id> file;
  std::shared_ptr<MappedTables> tables;  // null if values are always copied

  Id open_object(const std::string& object) const;
  bool exists(const std::string& object) const;
  Id open_attribute(const Place& place, hid_t object) const;
  std::vector<std::string> attribute_strings(const Place& place, hid_t object) const;

  struct Dataset {
    Id id, type, space;
    TensorSpec spec;
  };
  Dataset open_dataset(const std::string& name) const;
  void check_storage(const Place& place, const Dataset& dataset) const;
};

Hdf5File::Hdf5File(const std::string& path, const std::string& name)
    : Hdf5File(FilePart{.path = path}, name) {}

Hdf5File::Hdf5File(const FilePart& part, const std::string& name)
    : impl_([&] {
        auto impl = std::make_unique<Impl>();
        const std::string& path = part.path;
        impl->path = name.empty() ? path : name;
        std::error_code error;
        if (!std::filesystem::is_regular_file(path, error)) {
          throw IoError(impl->path, ": ", error ? error.message() : "is not a regular file");
        }
        impl->real_path = path;
        impl->offset = part.offset;
        impl->bytes = part.bytes < 0 ? std::filesystem::file_size(path) : part.bytes;
        check_hdf5_structure(part, impl->path);
        const LibraryScope library;
        const std::string root = "/";
        const Place place{impl->path, root};
        const char* const refused = "cannot be opened: not an HDF5 file, or truncated";
        if (part.bytes >= 0) {
          impl->file.emplace(place.check(hdf5_internal::open_part(path, part.offset, part.bytes),
                                         H5Fclose, refused));
          return impl;
        }
        const Id access = place.check(H5Pcreate(H5P_FILE_ACCESS), H5Pclose,
                                      "the access property list cannot be created");
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
        impl->file.emplace(
            place.check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose, refused));
        return impl;
      }()) {}

Hdf5File::~Hdf5File() {
  const LibraryScope library;
  impl_->file.reset();
}

void Hdf5File::map_tables(std::shared_ptr<MappedTables> tables) {
  impl_->tables = std::move(tables);
}

const std::string& Hdf5File::path() const { return impl_->path; }

// Follows hard links only.
bool Hdf5File::Impl::exists(const std::string& object) const {
  const Place place{path, object};
  std::string so_far;
  const std::vector<std::string> parts = hdf5_internal::parts_of(object);
  if (parts.size() > kMaxDepth) place.fail("is nested too deeply for a model file");
  for (const std::string& part : parts) {
    so_far += "/" + part;
    const htri_t found = H5Lexists(*file, so_far.c_str(), H5P_DEFAULT);
    place.check(found, "cannot be looked up");
    if (found == 0) return false;
    H5L_info_t info = {};
    place.check(H5Lget_info(*file, so_far.c_str(), &info, H5P_DEFAULT), "link cannot be read");
    if (info.type != H5L_TYPE_HARD) place.fail(so_far, " is a soft or external link");
  }
  return true;
}

Id Hdf5File::Impl::open_object(const std::string& object) const {
  const Place place{path, object};
  if (!exists(object)) place.fail("is not in the file");
  const std::string full = object.empty() ? "/" : object;
  return place.check(H5Oopen(*file, full.c_str(), H5P_DEFAULT), H5Oclose, "cannot be opened");
}

bool Hdf5File::has(const std::string& object) const {
  const LibraryScope library;
  return impl_->exists(object);
}

bool Hdf5File::is_group(const std::string& object) const {
  const LibraryScope library;
  return H5Iget_type(impl_->open_object(object)) == H5I_GROUP;
}

std::vector<std::string> Hdf5File::children(const std::string& group) const {
  const LibraryScope library;
  const Place place{path(), group};
  const Id id = impl_->open_object(group);
  if (H5Iget_type(id) != H5I_GROUP) place.fail("is not a group");
  H5O_info_t info = {};
  place.check(H5Oget_info2(id, &info, H5O_INFO_BASIC), "cannot be inspected");
  if (info.rc > 1) place.fail("has several names, so it may contain itself");
  std::vector<std::string> names;
  place.check(H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_name, &names),
              "members cannot be listed");
  for (const std::string& name : names) {
    // Such names would resolve to another object, for example to the group itself.
    if (name.empty() || name == "." || absl::StrContains(name, '/')) {
      place.fail("has a member with the invalid name '", name, "'");
    }
  }
  return names;
}

bool Hdf5File::has_attribute(const std::string& object, const std::string& name) const {
  const LibraryScope library;
  const Id id = impl_->open_object(object);
  const htri_t found = H5Aexists(id, name.c_str());
  Place{path(), object, name}.check(found, "cannot be looked up");
  return found > 0;
}

Id Hdf5File::Impl::open_attribute(const Place& place, hid_t object) const {
  const htri_t found = H5Aexists(object, place.attribute.c_str());
  if (found == 0) place.fail("is not in the file");
  return place.check(H5Aopen(object, place.attribute.c_str(), H5P_DEFAULT), H5Aclose,
                     "cannot be opened");
}

std::vector<std::string> Hdf5File::Impl::attribute_strings(const Place& place, hid_t object) const {
  const Id attribute = open_attribute(place, object);
  const Id type = place.check(H5Aget_type(attribute), H5Tclose, "has no type");
  const Id space = place.check(H5Aget_space(attribute), H5Sclose, "has no shape");
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0) place.fail("has no shape");
  if (count == 0) return {};
  if (H5Tget_class(type) != H5T_STRING) place.fail("must hold strings, but has another type");
  return read_strings(place, type, space, count, bytes,
                      [&](hid_t memory, void* to) { return H5Aread(attribute, memory, to); });
}

std::string Hdf5File::string_attribute(const std::string& object, const std::string& name) const {
  const LibraryScope library;
  const Place place{path(), object, name};
  std::vector<std::string> all = impl_->attribute_strings(place, impl_->open_object(object));
  if (all.size() != 1) place.fail("must hold one string, but holds ", all.size());
  return std::move(all[0]);
}

int64_t Hdf5File::integer_attribute(const std::string& object, const std::string& name) const {
  const LibraryScope library;
  const Place place{path(), object, name};
  const Id id = impl_->open_object(object);
  const Id attribute = impl_->open_attribute(place, id);
  const Id type = place.check(H5Aget_type(attribute), H5Tclose, "has no type");
  const Id space = place.check(H5Aget_space(attribute), H5Sclose, "has no shape");
  if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1) {
    place.fail("must hold one integer");
  }
  int64_t value = 0;
  place.check(H5Aread(attribute, H5T_NATIVE_INT64, &value), "cannot be read");
  return value;
}

std::vector<std::string> Hdf5File::string_list(const std::string& object,
                                               const std::string& name) const {
  const LibraryScope library;
  const Id id = impl_->open_object(object);
  const auto append_if_there = [&](const std::string& attribute, std::vector<std::string>& all) {
    const Place place{path(), object, attribute};
    const htri_t found = H5Aexists(id, attribute.c_str());
    place.check(found, "cannot be looked up");
    if (found == 0) return false;
    const std::vector<std::string> more = impl_->attribute_strings(place, id);
    all.insert(all.end(), more.begin(), more.end());
    return true;
  };
  std::vector<std::string> all;
  if (append_if_there(name, all)) return all;
  // Keras divides a list that exceeds the limit of an object header into `name`0, `name`1, ...
  for (int part = 0; append_if_there(name + std::to_string(part), all); ++part) {
  }
  return all;
}

Hdf5File::Impl::Dataset Hdf5File::Impl::open_dataset(const std::string& name) const {
  const Place place{path, name};
  Id id = open_object(name);
  if (H5Iget_type(id) != H5I_DATASET) place.fail("is not a dataset");
  Id type = place.check(H5Dget_type(id), H5Tclose, "has no type");
  Id space = place.check(H5Dget_space(id), H5Sclose, "has no shape");
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype) place.fail("has elements of a type that tensors do not support");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (H5Sget_simple_extent_type(space) == H5S_NULL || rank < 0 || rank > Shape::kMaxRank) {
    place.fail("must have a shape of at most ", Shape::kMaxRank, " dimensions, but has rank ",
               rank);
  }
  std::vector<hsize_t> dims(rank);
  place.check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "has no shape");
  uint64_t elements = 1;
  for (hsize_t dim : dims) {
    if (dim > INT64_MAX / 16 || __builtin_mul_overflow(elements, dim, &elements) ||
        elements > INT64_MAX / 16) {
      place.fail("declares more elements than any file can hold");
    }
  }
  const Shape shape(std::vector<int64_t>(dims.begin(), dims.end()));
  Dataset out{std::move(id), std::move(type), std::move(space), {.shape = shape, .dtype = *dtype}};
  check_storage(place, out);
  return out;
}

void Hdf5File::Impl::check_storage(const Place& place, const Dataset& dataset) const {
  const Id made = place.check(H5Dget_create_plist(dataset.id), H5Pclose, "has no layout");
  const H5D_layout_t layout = H5Pget_layout(made);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(made) > 0) {
    place.fail("stores its values in another file, which is not supported");
  }
  bool deflated = false;
  for (int i = 0; i < H5Pget_nfilters(made); ++i) {
    unsigned flags = 0, settings = 0;
    size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(made, i, &flags, &values, nullptr, 0, nullptr, &settings);
    deflated = deflated || filter == H5Z_FILTER_DEFLATE;
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      place.fail("is compressed by filter ", filter, ", which is not supported");
    }
  }
  const uint64_t stored = std::min<uint64_t>(H5Dget_storage_size(dataset.id), bytes);
  const uint64_t limit = deflated ? most_unpacked_bytes(stored) : stored;
  const uint64_t size = H5Tget_size(dataset.type);
  uint64_t claimed = dataset.spec.shape.size() * size;
  if (layout == H5D_CHUNKED && claimed > 0) {
    std::vector<hsize_t> chunk(dataset.spec.shape.rank());
    place.check(H5Pget_chunk(made, static_cast<int>(chunk.size()), chunk.data()), "has no chunks");
    uint64_t chunk_bytes = size;
    for (hsize_t dim : chunk) {
      if (__builtin_mul_overflow(chunk_bytes, dim, &chunk_bytes)) chunk_bytes = UINT64_MAX;
    }
    claimed = std::max(claimed, chunk_bytes);
  }
  if (claimed > limit) {
    if (!deflated) place.fail("declares ", claimed, " bytes, but the file holds ", stored);
    place.fail("unpacks from ", stored, " to ", claimed,
               " bytes; datasets may grow by a factor of ", kMaxUnpackRatio, " or to ",
               kAlwaysUnpacked, " bytes; if the file is trusted, store the dataset uncompressed");
  }
}

TensorSpec Hdf5File::spec(const std::string& dataset) const {
  const LibraryScope library;
  return impl_->open_dataset(dataset).spec;
}

Hdf5File::Location Hdf5File::locate(const std::string& dataset, DType dtype) const {
  const LibraryScope library;
  const Place place{path(), dataset};
  const Impl::Dataset source = impl_->open_dataset(dataset);
  const auto obstacle = [](const std::string& what) { return Location{.obstacle = what}; };
  const hid_t needed = dtype == DType::kFloat32 ? H5T_IEEE_F32LE : H5T_STD_I8LE;
  if (dtype != DType::kFloat32 && dtype != DType::kInt8) {
    return obstacle(str("values of ", dtype, " are not read in place"));
  }
  if (H5Tequal(source.type, needed) <= 0) {
    return obstacle(str("the values are not stored as little-endian ", dtype));
  }
  const Id made = place.check(H5Dget_create_plist(source.id), H5Pclose, "has no layout");
  if (H5Pget_nfilters(made) > 0) return obstacle("the dataset is compressed");
  if (H5Pget_layout(made) == H5D_CHUNKED) return obstacle("the dataset is chunked");
  if (H5Pget_layout(made) != H5D_CONTIGUOUS) return obstacle("the dataset is not contiguous");
  const haddr_t address = H5Dget_offset(source.id);
  const auto size = static_cast<uint64_t>(source.spec.shape.size()) * size_of(dtype);
  if (address == HADDR_UNDEF) return obstacle("the dataset has no values in the file");
  if (address > impl_->bytes || size > impl_->bytes - address) {
    place.fail("its values end beyond the end of the file");
  }
  const int64_t offset = impl_->offset + static_cast<int64_t>(address);
  if (offset % static_cast<int64_t>(size_of(dtype)) != 0) {
    return obstacle(absl::StrCat("its address ", offset, " is not a multiple of ", size_of(dtype)));
  }
  return {.offset = offset};
}

Tensor Hdf5File::read(const std::string& dataset) const {
  return read(dataset, spec(dataset).dtype);
}

Tensor Hdf5File::read_rows(const std::string& dataset, int64_t first, int64_t count) const {
  const LibraryScope library;
  const Place place{path(), dataset};
  const Impl::Dataset source = impl_->open_dataset(dataset);
  const DType dtype = source.spec.dtype;
  const bool strings = dtype == DType::kString;
  if (source.spec.shape.rank() == 0 || !(is_number(dtype) || strings)) {
    place.fail("must hold rows of numbers or strings, but holds ", dtype, source.spec.shape);
  }
  const int64_t rows = source.spec.shape[0];
  if (first < 0 || count < 0 || first > rows || count > rows - first) {
    place.fail("has ", rows, " rows, but rows ", first, " to ", first + count, " are requested");
  }
  Tensor out = Tensor::uninitialized(source.spec.shape.with(0, count), dtype);
  if (out.size() == 0) return out;
  hdf5_internal::select_rows(place, source.space, first, out.shape());
  const std::vector<hsize_t> dims(out.shape().dims().begin(), out.shape().dims().end());
  const Id memory_space = place.check(H5Screate_simple(out.shape().rank(), dims.data(), nullptr),
                                      H5Sclose, "the dataspace cannot be created");
  const auto read_into = [&](hid_t memory, void* to) {
    return H5Dread(source.id, memory, memory_space, source.space, H5P_DEFAULT, to);
  };
  if (strings) {
    std::vector<std::string> found =
        read_strings(place, source.type, memory_space, out.size(), impl_->bytes, read_into);
    std::ranges::move(found, out.mutable_data<std::string>().begin());
    return out;
  }
  const Id type = memory_type(place, dtype, source.type);
  place.check(read_into(type, out.mutable_raw().data()), "values cannot be read");
  return out;
}

Tensor Hdf5File::read(const std::string& dataset, DType dtype) const {
  const LibraryScope library;
  const Place place{path(), dataset};
  const Impl::Dataset source = impl_->open_dataset(dataset);
  const DType stored = source.spec.dtype;
  if (dtype != stored && !(is_number(dtype) && is_number(stored))) {
    place.fail("cannot be converted to ", dtype, " from ", stored);
  }
  const int64_t count = source.spec.shape.size();
  const int64_t wanted = count * static_cast<int64_t>(size_of(dtype));
  if (impl_->tables != nullptr && wanted >= MappedTables::kSmallestBytes) {
    Location at = locate(dataset, dtype);
    if (at.offset >= 0) {
      return impl_->tables->map(dataset, impl_->real_path, at.offset,
                                {.shape = source.spec.shape, .dtype = dtype});
    }
    impl_->tables->copied(dataset, wanted, std::move(at.obstacle));
  }
  const auto read_into = [&](hid_t memory, void* to) {
    return H5Dread(source.id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
  };
  Tensor out = Tensor::uninitialized(source.spec.shape, dtype);
  if (count == 0) return out;
  if (dtype == DType::kString) {
    const std::vector<std::string> strings =
        read_strings(place, source.type, source.space, count, impl_->bytes, read_into);
    std::ranges::copy(strings, out.mutable_data<std::string>().begin());
    return out;
  }
  const Id memory = memory_type(place, dtype, source.type);
  place.check(read_into(memory, out.mutable_raw().data()), "values cannot be read");
  // Any other byte than 0 and 1 would be an invalid bool.
  if (dtype == DType::kBool) {
    for (std::byte& b : out.mutable_raw()) b = b == std::byte{0} ? b : std::byte{1};
  }
  return out;
}

}  // namespace keel
