#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <hdf5.h>
#include <new>
#include <unistd.h>

#include <keel/savedmodel/hdf5/hdf5_driver_internal.h>
#include <keel/savedmodel/hdf5/hdf5_input_internal.h>
#include <keel/savedmodel/hdf5/hdf5_internal.h>

namespace keel::hdf5_internal {
namespace {

// The driver's part of a file access list; the library copies it byte by byte.
struct PartInfo {
  int64_t offset;
  int64_t size;
};

// The library requires that its own part of an open file comes first.
struct OpenPart {
  H5FD_t shared = {};
  PartInfo part = {};
  int file = -1;
  int64_t number = 0;
  haddr_t end_of_addresses = 0;
};

OpenPart& open_part_of(H5FD_t* file) { return *reinterpret_cast<OpenPart*>(file); }
const OpenPart& open_part_of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenPart*>(file);
}

H5FD_t* part_open(const char* path, unsigned, hid_t access, haddr_t) {
  static std::atomic<int64_t> opened = 0;
  const auto* info = static_cast<const PartInfo*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  auto* out = new (std::nothrow) OpenPart;
  if (out == nullptr) {
    close(file);
    return nullptr;
  }
  out->part = *info;
  out->file = file;
  out->number = ++opened;
  return &out->shared;
}

herr_t part_close(H5FD_t* file) {
  close(open_part_of(file).file);
  delete &open_part_of(file);
  return 0;
}

int part_compare(const H5FD_t* a, const H5FD_t* b) {
  const int64_t x = open_part_of(a).number, y = open_part_of(b).number;
  return x == y ? 0 : x < y ? -1 : 1;
}

herr_t part_query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

haddr_t part_get_eoa(const H5FD_t* file, H5FD_mem_t) { return open_part_of(file).end_of_addresses; }

herr_t part_set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  open_part_of(file).end_of_addresses = address;
  return 0;
}

haddr_t part_get_eof(const H5FD_t* file, H5FD_mem_t) { return open_part_of(file).part.size; }

// Bytes beyond the end of the part are zeros; the library reads a little past the end.
herr_t part_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) {
  const OpenPart& part = open_part_of(file);
  auto* out = static_cast<char*>(to);
  const auto end = static_cast<haddr_t>(part.part.size);
  size_t left = offset >= end ? 0 : std::min<haddr_t>(size, end - offset);
  std::memset(out + left, 0, size - left);
  auto at = static_cast<off_t>(part.part.offset + static_cast<int64_t>(offset));
  while (left > 0) {
    const ssize_t count = pread(part.file, out, left, at);
    if (count <= 0) return -1;
    out += count;
    at += count;
    left -= static_cast<size_t>(count);
  }
  return 0;
}

// HDF5 does not register a driver that cannot write.
herr_t part_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

H5FD_class_t part_class() {
  constexpr int kPrivateValue = 0x4B66;
  H5FD_class_t out = driver_class("keel_part", kPrivateValue, sizeof(PartInfo));
  out.open = part_open;
  out.close = part_close;
  out.cmp = part_compare;
  out.query = part_query;
  out.get_eoa = part_get_eoa;
  out.set_eoa = part_set_eoa;
  out.get_eof = part_get_eof;
  out.read = part_read;
  out.write = part_write;
  return out;
}

// Registered once per process, because HDF5 is never unloaded.
hid_t part_driver() {
  static const H5FD_class_t kClass = part_class();
  static const hid_t kId = H5FDregister(&kClass);
  return kId;
}

}  // namespace

int64_t open_part(const std::string& path, int64_t offset, int64_t size) {
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const PartInfo info = {.offset = offset, .size = size};
  if (!access.valid() || H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
      H5Pset_driver(access, part_driver(), &info) < 0) {
    return -1;
  }
  return H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
}

}  // namespace keel::hdf5_internal
