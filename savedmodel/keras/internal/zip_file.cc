#include <keel/savedmodel/keras/internal/zip_file.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string_view>
#include <vector>
#include <zip.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/function_ref.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/unpack_limit.h>

namespace keel {
namespace {

// 1980-01-01 00:00, the first date of the format. A constant, so that equal models give equal
// files.
constexpr uint16_t kDosDate = 1 << 5 | 1;

// Sizes and signatures of the format (PKWARE's APPNOTE.TXT, sections 4.3 and 4.5).
constexpr uint64_t kLocalHeaderBytes = 30, kCentralHeaderBytes = 46, kEndBytes = 22,
                   kEnd64Bytes = 56, kLocatorBytes = 20, kFieldHeaderBytes = 4,
                   kZip64FieldBytes = 20;
constexpr uint64_t kZip64Bytes = 0xFFFFFFFF;  // entries of this size and more have 64-bit sizes
constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator = 0x07064b50;
constexpr uint16_t kZip64Field = 1, kAlignmentField = 0xD935;
constexpr uint16_t kAlignment = 4096;

struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

std::string message_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string out = zip_error_strerror(&error);
  zip_error_fini(&error);
  return out;
}

}  // namespace

struct ZipFile::Impl {
  std::string location;
  std::string path;  // or its name in errors
  uint64_t bytes = 0;
  zip_t* archive = nullptr;
  ~Impl() {
    if (archive != nullptr) zip_discard(archive);
  }

  template <class... Args>
  [[noreturn]] void fail(const std::string& entry, const Args&... what) const {
    throw IoError(path, ", ", entry, ": ", what...);
  }
  uint64_t index_of(const std::string& entry) const;
  uint64_t size_of(const std::string& entry, uint64_t index) const;
  void read(const std::string& entry, uint64_t index, uint64_t size,
            FunctionRef<void(const char*, size_t)> take) const;
};

ZipFile::ZipFile(const std::string& path, const std::string& name)
    : impl_([&] {
        auto impl = std::make_unique<Impl>();
        impl->location = path;
        impl->path = name.empty() ? path : name;
        std::error_code status;
        if (!std::filesystem::is_regular_file(path, status)) {
          throw IoError(impl->path, ": ", status ? status.message() : "is not a regular file");
        }
        impl->bytes = std::filesystem::file_size(path);
        int error = 0;
        impl->archive = zip_open(path.c_str(), ZIP_RDONLY, &error);
        if (impl->archive == nullptr) {
          throw IoError(impl->path, ": the file cannot be opened as a zip archive (",
                        message_of(error), "); pass a .keras file, or restore it from a copy");
        }
        return impl;
      }()) {}

ZipFile::~ZipFile() = default;

std::vector<std::string> ZipFile::entries() const {
  std::vector<std::string> out;
  const int64_t count = zip_get_num_entries(impl_->archive, 0);
  for (int64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(impl_->archive, static_cast<uint64_t>(i), 0);
    if (name != nullptr) out.emplace_back(name);
  }
  return out;
}

bool ZipFile::has(const std::string& entry) const {
  return zip_name_locate(impl_->archive, entry.c_str(), 0) >= 0;
}

uint64_t ZipFile::Impl::index_of(const std::string& entry) const {
  const int64_t index = zip_name_locate(archive, entry.c_str(), 0);
  if (index < 0) fail(entry, "is not in the archive");
  return index;
}

uint64_t ZipFile::Impl::size_of(const std::string& entry, uint64_t index) const {
  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
    fail(entry, "has no size (", zip_strerror(archive), ")");
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    fail(entry, "is packed by method ", stat.comp_method, ", and 0 and 8 are read");
  }
  if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && stat.encryption_method != ZIP_EM_NONE) {
    fail(entry, "is encrypted");
  }
  const uint64_t held = std::min<uint64_t>(stat.comp_size, bytes);
  if (stat.comp_method == ZIP_CM_STORE && stat.size > held) {
    fail(entry, "claims ", stat.size, " bytes, more than its ", held, " in the archive can hold");
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.size > most_unpacked_bytes(held)) {
    fail(entry, "unpacks from ", held, " to ", stat.size,
         " bytes; entries may grow by a factor of ", kMaxUnpackRatio, " or to ", kAlwaysUnpacked,
         " bytes; if the archive is trusted, store the entry uncompressed");
  }
  return stat.size;
}

void ZipFile::Impl::read(const std::string& entry, uint64_t index, uint64_t size,
                         FunctionRef<void(const char*, size_t)> take) const {
  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) fail(entry, "cannot be opened (", zip_strerror(archive), ")");
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t done = 0;
  while (true) {
    const int64_t count = zip_fread(file.get(), buffer.data(), buffer.size());
    if (count < 0) {
      fail(entry, "is damaged (", zip_error_strerror(zip_file_get_error(file.get())), ")");
    }
    if (count == 0) break;
    done += count;
    if (done > size) fail(entry, "is longer than it claims");
    take(buffer.data(), count);
  }
  if (done != size) fail(entry, "is shorter than it claims");
}

std::string ZipFile::read(const std::string& entry, int64_t limit) const {
  const uint64_t index = impl_->index_of(entry);
  const uint64_t size = impl_->size_of(entry, index);
  if (size > static_cast<uint64_t>(limit)) {
    impl_->fail(entry, "has ", size, " bytes, at most ", limit, " are read");
  }
  std::string out;
  impl_->read(entry, index, size, [&](const char* bytes, size_t n) { out.append(bytes, n); });
  return out;
}

void ZipFile::extract(const std::string& entry, const TemporaryFile& to) const {
  const uint64_t index = impl_->index_of(entry);
  const uint64_t size = impl_->size_of(entry, index);
  std::error_code error;
  const auto space = std::filesystem::space(std::filesystem::path(to.path()).parent_path(), error);
  if (!error && space.available < size) {
    impl_->fail(entry, "requires ", size, " bytes beside ", to.path(), ", where ", space.available,
                " are free; set TMPDIR to a folder with more room");
  }
  int64_t offset = 0;
  impl_->read(entry, index, size, [&](const char* bytes, size_t n) {
    to.write(offset, {bytes, n});
    offset += static_cast<int64_t>(n);
  });
}

void ZipFile::extract(const std::string& entry, const std::string& to) const {
  TemporaryFile file(to);
  extract(entry, file);
  file.rename_to_target();
}

void ZipFile::check(const std::vector<std::string>& entries) const {
  int error = 0;
  zip_t* const consistent = zip_open(impl_->location.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error);
  if (consistent == nullptr)
    throw IoError(impl_->path, ": the archive is damaged (", message_of(error),
                  "); restore the file from a copy");
  zip_discard(consistent);
  const int64_t count = zip_get_num_entries(impl_->archive, 0);
  if (count != static_cast<int64_t>(entries.size())) {
    throw IoError(impl_->path, ": the archive has ", count, " entries, expected ", entries.size());
  }
  for (int64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(impl_->archive, i, 0);
    if (name == nullptr || name != entries[i]) impl_->fail(entries[i], "is not in its place");
    impl_->read(entries[i], i, impl_->size_of(entries[i], i), [](const char*, size_t) {});
  }
}

namespace {

// Reads little-endian numbers of a file that is not trusted. A read outside of the file gives
// nothing.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : file_(path, std::ios::binary | std::ios::ate) {
    if (file_) size_ = static_cast<uint64_t>(file_.tellg());
  }
  uint64_t size() const { return size_; }
  std::optional<std::string> read(uint64_t at, uint64_t count) {
    if (at > size_ || count > size_ - at) return std::nullopt;
    std::string out(count, '\0');
    file_.seekg(static_cast<std::streamoff>(at));
    if (!file_.read(out.data(), static_cast<std::streamsize>(count))) return std::nullopt;
    return out;
  }

 private:
  std::ifstream file_;
  uint64_t size_ = 0;
};

uint64_t number_at(std::string_view bytes, size_t at, int count) {
  uint64_t out = 0;
  for (int i = count - 1; i >= 0; --i) {
    out = out << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
  }
  return out;
}

// The list of entries at the end of an archive.
struct CentralDirectory {
  uint64_t offset = 0;
  std::string bytes = {};
};

std::optional<CentralDirectory> central_directory(HeaderReader& in) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 24;  // model archives have three entries
  const uint64_t tail = std::min<uint64_t>(in.size(), kEndBytes + 0xFFFF);
  const auto end = in.read(in.size() - tail, tail);
  if (!end || tail < kEndBytes) return std::nullopt;
  size_t at = tail - kEndBytes;
  while (at > 0 && number_at(*end, at, 4) != kEnd) --at;
  if (number_at(*end, at, 4) != kEnd) return std::nullopt;
  uint64_t bytes = number_at(*end, at + 12, 4), offset = number_at(*end, at + 16, 4);
  if (bytes == kZip64Bytes || offset == kZip64Bytes) {
    if (at < kLocatorBytes || number_at(*end, at - kLocatorBytes, 4) != kLocator) {
      return std::nullopt;
    }
    const auto end64 = in.read(number_at(*end, at - kLocatorBytes + 8, 8), kEnd64Bytes);
    if (!end64 || number_at(*end64, 0, 4) != kEnd64) return std::nullopt;
    bytes = number_at(*end64, 40, 8);
    offset = number_at(*end64, 48, 8);
  }
  if (bytes > kMaxBytes) return std::nullopt;
  const auto all = in.read(offset, bytes);
  if (!all) return std::nullopt;
  return CentralDirectory{.offset = offset, .bytes = *all};
}

// The fields of an entry in the central directory.
struct CentralEntry {
  uint16_t flags = 0, method = 0;
  uint64_t packed = 0, size = 0, header = 0;
};

// Replaces the sizes that did not fit into 32 bits by those of the zip64 field. Returns false if
// one is missing.
bool read_zip64(std::string_view fields, CentralEntry& entry) {
  std::vector<uint64_t*> missing;
  for (uint64_t* const value : {&entry.size, &entry.packed, &entry.header}) {
    if (*value == kZip64Bytes) missing.push_back(value);
  }
  while (!missing.empty() && fields.size() >= kFieldHeaderBytes) {
    const uint64_t length = number_at(fields, 2, 2);
    if (length > fields.size() - kFieldHeaderBytes) return false;
    if (number_at(fields, 0, 2) == kZip64Field) {
      if (length < 8 * missing.size()) return false;
      for (size_t i = 0; i < missing.size(); ++i) {
        *missing[i] = number_at(fields, kFieldHeaderBytes + 8 * i, 8);
      }
      missing.clear();
    }
    fields.remove_prefix(kFieldHeaderBytes + length);
  }
  return missing.empty();
}

std::optional<CentralEntry> find_entry(std::string_view directory, const std::string& name) {
  while (directory.size() >= kCentralHeaderBytes) {
    if (number_at(directory, 0, 4) != kCentralHeader) return std::nullopt;
    const uint64_t name_bytes = number_at(directory, 28, 2);
    const uint64_t field_bytes = number_at(directory, 30, 2);
    const uint64_t all =
        kCentralHeaderBytes + name_bytes + field_bytes + number_at(directory, 32, 2);
    if (all > directory.size()) return std::nullopt;
    if (directory.substr(kCentralHeaderBytes, name_bytes) == name) {
      CentralEntry out = {.flags = static_cast<uint16_t>(number_at(directory, 8, 2)),
                          .method = static_cast<uint16_t>(number_at(directory, 10, 2)),
                          .packed = number_at(directory, 20, 4),
                          .size = number_at(directory, 24, 4),
                          .header = number_at(directory, 42, 4)};
      const bool complete =
          read_zip64(directory.substr(kCentralHeaderBytes + name_bytes, field_bytes), out);
      return complete ? std::optional(out) : std::nullopt;
    }
    directory.remove_prefix(all);
  }
  return std::nullopt;
}

}  // namespace

std::optional<FilePart> ZipFile::stored(const std::string& entry) const {
  HeaderReader in(impl_->location);
  const auto directory = central_directory(in);
  if (!directory) return std::nullopt;
  const auto found = find_entry(directory->bytes, entry);
  constexpr uint16_t kEncrypted = 1;
  if (!found || found->method != ZIP_CM_STORE || (found->flags & kEncrypted) != 0 ||
      found->packed != found->size) {
    return std::nullopt;
  }
  const auto header = in.read(found->header, kLocalHeaderBytes);
  if (!header || number_at(*header, 0, 4) != kLocalHeader) return std::nullopt;
  const uint64_t data =
      found->header + kLocalHeaderBytes + number_at(*header, 26, 2) + number_at(*header, 28, 2);
  if (data > directory->offset || found->size > directory->offset - data) return std::nullopt;
  return FilePart{.path = impl_->location,
                  .offset = static_cast<int64_t>(data),
                  .bytes = static_cast<int64_t>(found->size)};
}

namespace {

// libzip source for a file that this library writes. libzip's own writer would create and rename
// another file, outside of the lock of a TemporaryFile.
class ZipOutput {
 public:
  explicit ZipOutput(const TemporaryFile& file) : file_(file) { zip_error_init(&error_); }
  ~ZipOutput() { zip_error_fini(&error_); }
  ZipOutput(const ZipOutput&) = delete;
  ZipOutput& operator=(const ZipOutput&) = delete;

  // Throws the first write error of the file.
  void check() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

  static zip_int64_t call(void* self, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    return static_cast<ZipOutput*>(self)->run(command, data, length);
  }

 private:
  zip_int64_t run(zip_source_cmd_t command, void* data, zip_uint64_t length);
  zip_int64_t fail(int code) {
    zip_error_set(&error_, code, 0);
    return -1;
  }
  template <class Fn>
  zip_int64_t attempt(Fn fn) {
    try {
      return fn();
    } catch (const std::exception&) {
      if (failure_ == nullptr) failure_ = std::current_exception();
      return fail(ZIP_ER_WRITE);
    }
  }
  zip_int64_t seek(int64_t& position, void* data, zip_uint64_t length, int64_t end) {
    const zip_int64_t to = zip_source_seek_compute_offset(position, end, data, length, &error_);
    if (to < 0) return -1;
    position = to;
    return 0;
  }

  const TemporaryFile& file_;
  int64_t read_at_ = 0, write_at_ = 0, end_ = 0;
  zip_error_t error_;
  std::exception_ptr failure_;
};

zip_int64_t ZipOutput::run(zip_source_cmd_t command, void* data, zip_uint64_t length) {
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(
          ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
          ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
          ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_WRITE,
          ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT: {
      auto* const stat = static_cast<zip_stat_t*>(data);
      zip_stat_init(stat);
      stat->valid = ZIP_STAT_SIZE;
      stat->size = end_;
      return sizeof(*stat);
    }
    case ZIP_SOURCE_OPEN:
      read_at_ = 0;
      return 0;
    case ZIP_SOURCE_READ:
      return attempt([&] {
        const size_t n = file_.read(read_at_, static_cast<char*>(data), length);
        read_at_ += static_cast<int64_t>(n);
        return static_cast<zip_int64_t>(n);
      });
    case ZIP_SOURCE_SEEK:
      return seek(read_at_, data, length, end_);
    case ZIP_SOURCE_TELL:
      return read_at_;
    case ZIP_SOURCE_BEGIN_WRITE:
      write_at_ = end_ = 0;
      return 0;
    case ZIP_SOURCE_WRITE:
      return attempt([&] {
        file_.write(write_at_, {static_cast<const char*>(data), length});
        write_at_ += static_cast<int64_t>(length);
        end_ = std::max(end_, write_at_);
        return static_cast<zip_int64_t>(length);
      });
    case ZIP_SOURCE_SEEK_WRITE:
      return seek(write_at_, data, length, end_);
    case ZIP_SOURCE_TELL_WRITE:
      return write_at_;
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&error_, data, length);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE:
      return 0;
    default:
      return fail(ZIP_ER_OPNOTSUPP);
  }
}

}  // namespace

struct ZipWriter::Impl {
  explicit Impl(const std::string& path) : target(path), output(target.file()) {}

  AtomicFile target;
  ZipOutput output;
  std::vector<std::string> entries;
  uint64_t next_header = 0;  // offset of the local header of the next entry
  zip_t* archive = nullptr;
  ~Impl() {
    if (archive != nullptr) zip_discard(archive);
  }

  [[noreturn]] void fail(const std::string& what) const {
    output.check();
    throw IoError(target.path(), ": ", what, " (", zip_strerror(archive), ")");
  }
  // Adds an entry of `size` bytes and takes ownership of the source.
  void add(const std::string& entry, zip_source_t* source, uint64_t size, bool aligned) {
    if (source == nullptr) fail("'" + entry + "' cannot be read");
    // Do not use ZIP_FL_ENC_UTF_8: libzip 1.11 also marks ASCII names as UTF-8, so the bytes would
    // depend on its version. ZIP_FL_ENC_GUESS marks exactly the names that are not ASCII.
    const int64_t index = zip_file_add(archive, entry.c_str(), source, ZIP_FL_ENC_GUESS);
    if (index < 0) {
      zip_source_free(source);
      fail("'" + entry + "' cannot be added");
    }
    if (zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive, index, 0, kDosDate, 0) != 0) {
      fail("'" + entry + "' cannot be added");
    }
    uint64_t data = next_header + kLocalHeaderBytes + entry.size();
    if (size >= kZip64Bytes) data += kZip64FieldBytes;
    if (aligned) {
      // Android's zipalign introduced this field: the alignment, then zeros.
      const uint64_t least = data + kFieldHeaderBytes + sizeof(kAlignment);
      const uint64_t padding = (kAlignment - least % kAlignment) % kAlignment;
      std::vector<zip_uint8_t> field(sizeof(kAlignment) + padding);
      field[0] = kAlignment & 0xFF;
      field[1] = kAlignment >> 8;
      if (zip_file_extra_field_set(archive, index, kAlignmentField, ZIP_EXTRA_FIELD_NEW,
                                   field.data(), static_cast<zip_uint16_t>(field.size()),
                                   ZIP_FL_LOCAL) != 0) {
        fail("'" + entry + "' cannot be aligned");
      }
      data = least + padding;
    }
    next_header = data + size;
    entries.push_back(entry);
  }
};

ZipWriter::ZipWriter(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_function_create(ZipOutput::call, &impl_->output, &error);
  if (source != nullptr) {
    impl_->archive = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error);
  }
  if (impl_->archive == nullptr) {
    const std::string message = zip_error_strerror(&error);
    zip_source_free(source);
    zip_error_fini(&error);
    throw IoError(path, ": the archive cannot be created (", message, ")");
  }
  zip_error_fini(&error);
}

ZipWriter::~ZipWriter() = default;

void ZipWriter::add(const std::string& entry, std::string text) {
  char* const copy =
      static_cast<char*>(malloc(std::max<size_t>(text.size(), 1)));  // libzip frees it
  if (copy == nullptr) throw std::bad_alloc();
  std::ranges::copy(text, copy);
  zip_source_t* source = zip_source_buffer(impl_->archive, copy, text.size(), 1);
  if (source == nullptr) free(copy);
  impl_->add(entry, source, text.size(), false);
}

void ZipWriter::add_file(const std::string& entry, const std::string& file) {
  impl_->add(entry, zip_source_file(impl_->archive, file.c_str(), 0, -1),
             std::filesystem::file_size(file), true);
}

void ZipWriter::finish() {
  if (zip_close(impl_->archive) != 0) impl_->fail("cannot be written");
  impl_->archive = nullptr;
  impl_->output.check();
  const TemporaryFile& written = impl_->target.file();
  written.start_sync();
  ZipFile(written.path(), impl_->target.path()).check(impl_->entries);
  impl_->target.commit();
}

bool begins_with_zip(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char start[2] = {};
  return file.read(start, sizeof start) && start[0] == 'P' && start[1] == 'K';
}

}  // namespace keel
