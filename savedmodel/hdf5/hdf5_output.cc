#include <algorithm>
#include <atomic>
#include <cstring>
#include <hdf5.h>
#include <new>

#include <keel/savedmodel/hdf5/hdf5_driver_internal.h>
#include <keel/savedmodel/hdf5/hdf5_internal.h>
#include <keel/savedmodel/hdf5/hdf5_output_internal.h>

namespace keel::hdf5_internal {
namespace {

constexpr herr_t kDone = 0, kFailed = -1;
constexpr hsize_t kAlignedBytes = hsize_t{1} << 20, kPage = 4096;

// The driver's part of a file access list; the library copies it byte by byte.
struct DriverInfo {
  Hdf5Output* output;
};

// The library requires that its own part of an open file comes first.
struct OpenFile {
  H5FD_t shared = {};
  Hdf5Output* output = nullptr;
  int64_t number = 0;
  haddr_t end_of_addresses = 0;
};

OpenFile& open_file(H5FD_t* file) { return *reinterpret_cast<OpenFile*>(file); }
const OpenFile& open_file(const H5FD_t* file) { return *reinterpret_cast<const OpenFile*>(file); }

H5FD_t* driver_open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) OpenFile;
  if (file == nullptr) return nullptr;
  file->output = info->output;
  file->number = info->output->number();
  return &file->shared;
}

herr_t driver_close(H5FD_t* file) {
  delete &open_file(file);
  return kDone;
}

int driver_compare(const H5FD_t* a, const H5FD_t* b) {
  const int64_t x = open_file(a).number, y = open_file(b).number;
  return x == y ? 0 : x < y ? -1 : 1;
}

// The flags of the library's default driver, so that files have the same layout.
herr_t driver_query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return kDone;
}

haddr_t driver_get_eoa(const H5FD_t* file, H5FD_mem_t) { return open_file(file).end_of_addresses; }

herr_t driver_set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  open_file(file).end_of_addresses = address;
  return kDone;
}

haddr_t driver_get_eof(const H5FD_t* file, H5FD_mem_t) { return open_file(file).output->end(); }

herr_t driver_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) {
  open_file(file).output->read(static_cast<int64_t>(offset), static_cast<char*>(to), size);
  return kDone;
}

herr_t driver_write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size,
                    const void* from) {
  open_file(file).output->write(static_cast<int64_t>(offset),
                                {static_cast<const char*>(from), size});
  return kDone;
}

herr_t driver_truncate(H5FD_t* file, hid_t, hbool_t) {
  Hdf5Output& output = *open_file(file).output;
  const auto end = static_cast<int64_t>(open_file(file).end_of_addresses);
  if (end != output.end()) output.resize(end);
  return kDone;
}

H5FD_class_t output_class() {
  constexpr int kPrivateValue = 0x4B65;
  H5FD_class_t out = driver_class("keel", kPrivateValue, sizeof(DriverInfo));
  out.open = driver_open;
  out.close = driver_close;
  out.cmp = driver_compare;
  out.query = driver_query;
  out.get_eoa = driver_get_eoa;
  out.set_eoa = driver_set_eoa;
  out.get_eof = driver_get_eof;
  out.read = driver_read;
  out.write = driver_write;
  out.truncate = driver_truncate;
  return out;
}

// Registered once per process, because HDF5 is never unloaded.
hid_t driver() {
  static const H5FD_class_t kClass = output_class();
  static const hid_t kId = H5FDregister(&kClass);
  return kId;
}

}  // namespace

int64_t Hdf5Output::next_number() {
  static std::atomic<int64_t> next = 0;
  return ++next;
}

int64_t Hdf5Output::create() {
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const DriverInfo info = {.output = this};
  // Large datasets begin at a page, so that they can be mapped.
  if (!access.valid() || H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
      H5Pset_alignment(access, kAlignedBytes, kPage) < 0 ||
      H5Pset_driver(access, driver(), &info) < 0) {
    return kFailed;
  }
  return H5Fcreate(file_.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
}

void Hdf5Output::check() const {
  if (error_ != nullptr) std::rethrow_exception(error_);
}

template <class Fn>
void Hdf5Output::attempt(Fn fn) {
  try {
    fn();
  } catch (const std::exception&) {
    if (error_ == nullptr) error_ = std::current_exception();
  }
}

void Hdf5Output::write(int64_t offset, std::string_view bytes) {
  end_ = std::max(end_, offset + static_cast<int64_t>(bytes.size()));
  if (writes()) attempt([&] { file_.write(offset, bytes); });
}

void Hdf5Output::read(int64_t offset, char* to, size_t count) {
  size_t found = 0;
  attempt([&] { found = file_.read(offset, to, count); });
  std::memset(to + found, 0, count - found);  // the library reads past the end
}

void Hdf5Output::resize(int64_t size) {
  end_ = size;
  if (writes()) attempt([&] { file_.resize(size); });
}

}  // namespace keel::hdf5_internal
