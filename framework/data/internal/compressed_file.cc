#include <keel/framework/data/internal/compressed_file.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <zlib.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/unpack_limit.h>

namespace keel::data {
namespace {

constexpr size_t kCompressedBytes = size_t{1} << 16;
constexpr std::string_view kGzipMagic = "\x1F\x8B";

std::string reason() { return std::generic_category().message(errno); }

// Returns zlib's windowBits, which also selects the format.
int window_bits(Compression compression) {
  return compression == Compression::kGzip ? MAX_WBITS + 16 : MAX_WBITS;
}

std::FILE* opened(const std::string& name, const char* mode, const std::string& caller) {
  std::FILE* const file = std::fopen(name.c_str(), mode);
  if (file == nullptr) throw IoError(caller, ": cannot open '", name, "': ", reason());
  return file;
}

}  // namespace

Compression compression_from_name(const std::string& caller, const std::string& name) {
  if (name.empty()) return Compression::kNone;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "ZLIB") return Compression::kZlib;
  throw ValueError(caller, ": compression_type must be '', 'GZIP' or 'ZLIB', received '", name,
                   "'");
}

struct CompressedReader::Inflater {
  explicit Inflater(Compression c) : compression(c), input(kCompressedBytes) {
    if (inflateInit2(&stream, window_bits(c)) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }

  const Compression compression;
  std::vector<char> input;
  z_stream stream = {};
  bool inside = false;  // true within a compressed stream, whose end has not been reached
};

CompressedReader::CompressedReader(const std::filesystem::path& file, Compression compression,
                                   int64_t buffer_size, std::string caller)
    : name_(file.string()), caller_(std::move(caller)), file_(opened(name_, "rb", caller_)) {
  if (buffer_size < 1) {
    throw ValueError(caller_, ": buffer_size must be at least 1 byte, received ", buffer_size);
  }
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  buffer_.resize(static_cast<size_t>(buffer_size));
  if (compression != Compression::kNone) inflater_ = std::make_unique<Inflater>(compression);
}

CompressedReader::~CompressedReader() = default;

std::string CompressedReader::place(uint64_t offset) const {
  return absl::StrCat(caller_, ": file '", name_, "', offset ", offset);
}

size_t CompressedReader::read(char* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (begin_ == end_) refill();
    if (begin_ == end_) break;
    const size_t count = std::min(size - done, end_ - begin_);
    std::memcpy(out + done, buffer_.data() + begin_, count);
    begin_ += count;
    done += count;
    offset_ += count;
  }
  return done;
}

uint64_t CompressedReader::most_remaining() const {
  struct stat status = {};
  if (::fstat(::fileno(file_.get()), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::numeric_limits<uint64_t>::max();
  }
  const uint64_t buffered = end_ - begin_;
  const auto size = static_cast<uint64_t>(status.st_size);
  const uint64_t unread = size - std::min(size, file_bytes_);
  if (inflater_ == nullptr) return buffered + unread;
  return buffered + most_unpacked_bytes(unread + inflater_->stream.avail_in);
}

void CompressedReader::refill() {
  begin_ = end_ = 0;
  while (!ended_ && end_ == 0) {
    const bool first = file_bytes_ == 0;
    if (inflater_ != nullptr) {
      end_ = inflate_some(buffer_.data(), buffer_.size());
      continue;
    }
    end_ = read_file(buffer_.data(), buffer_.size());
    ended_ = end_ == 0;
    if (first) looks_gzipped_ = std::string_view(buffer_.data(), end_).starts_with(kGzipMagic);
  }
}

size_t CompressedReader::read_file(char* out, size_t size) {
  const size_t received = std::fread(out, 1, size, file_.get());
  if (received < size && std::ferror(file_.get()) != 0) {
    throw IoError(caller_, ": cannot read '", name_, "': ", reason());
  }
  file_bytes_ += received;
  return received;
}

size_t CompressedReader::inflate_some(char* out, size_t size) {
  z_stream& stream = inflater_->stream;
  bool file_ended = false;
  if (stream.avail_in == 0) {
    std::vector<char>& input = inflater_->input;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(read_file(input.data(), input.size()));
    file_ended = stream.avail_in == 0;
    if (file_ended && !inflater_->inside) {
      ended_ = true;
      return 0;
    }
  }
  inflater_->inside = true;
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
  const uInt room = stream.avail_out;
  const int status = inflate(&stream, Z_NO_FLUSH);
  const size_t produced = room - stream.avail_out;
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  if (status == Z_STREAM_END) {
    // A gzip file may consist of several concatenated streams.
    inflater_->inside = false;
    inflateReset(&stream);
  } else if (status != Z_OK && status != Z_BUF_ERROR) {
    throw IoError(place(offset_), ": the compressed data is damaged (",
                  stream.msg == nullptr ? "unknown reason" : stream.msg,
                  "); restore the file from a copy");
  } else if (file_ended && produced == 0) {
    throw IoError(place(offset_),
                  ": the compressed data is truncated; restore the file from a copy");
  }
  return produced;
}

struct CompressedWriter::Deflater {
  explicit Deflater(Compression compression) {
    constexpr int kMemoryLevel = 8;  // zlib's default
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits(compression),
                     kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Deflater() { deflateEnd(&stream); }

  z_stream stream = {};
  std::vector<char> output = std::vector<char>(kCompressedBytes);
};

CompressedWriter::CompressedWriter(const std::filesystem::path& file, Compression compression,
                                   std::string caller)
    : name_(file.string()), caller_(std::move(caller)), file_(opened(name_, "wb", caller_)) {
  if (compression != Compression::kNone) deflater_ = std::make_unique<Deflater>(compression);
}

CompressedWriter::~CompressedWriter() {
  try {
    close();
  } catch (const Error&) {  // errors are ignored; call close() to detect them
  }
}

void CompressedWriter::fail() const {
  throw IoError(caller_, ": cannot write '", name_, "': ", reason());
}

void CompressedWriter::write_file(const char* bytes, size_t size) {
  if (std::fwrite(bytes, 1, size, file_.get()) != size) fail();
}

void CompressedWriter::deflate_all(std::string_view bytes, int mode) {
  z_stream& stream = deflater_->stream;
  std::vector<char>& output = deflater_->output;
  do {
    const size_t some = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(some);
    bytes.remove_prefix(some);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(output.data());
      stream.avail_out = static_cast<uInt>(output.size());
      deflate(&stream, bytes.empty() ? mode : Z_NO_FLUSH);
      write_file(output.data(), output.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (!bytes.empty());
}

void CompressedWriter::write(std::string_view bytes) {
  if (closed()) throw RuntimeError(caller_, ": '", name_, "' is closed; write before close()");
  if (deflater_ == nullptr) return write_file(bytes.data(), bytes.size());
  deflate_all(bytes, Z_NO_FLUSH);
}

void CompressedWriter::flush() {
  if (closed()) return;
  if (deflater_ != nullptr) deflate_all({}, Z_SYNC_FLUSH);
  if (std::fflush(file_.get()) != 0) fail();
}

void CompressedWriter::close() {
  if (closed()) return;
  if (deflater_ != nullptr) deflate_all({}, Z_FINISH);
  deflater_ = nullptr;
  // Some file systems report a failed write only on close. fsync() fails with EINVAL for pipes,
  // which cannot be synced.
  const bool flushed = std::fflush(file_.get()) == 0;
  const bool synced = flushed && (::fsync(::fileno(file_.get())) == 0 || errno == EINVAL);
  const int error = errno;
  const bool closed = std::fclose(file_.release()) == 0;
  if (!synced) errno = error;
  if (!synced || !closed) fail();
}

}  // namespace keel::data
