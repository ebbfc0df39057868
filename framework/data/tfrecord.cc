#include <keel/framework/data/tfrecord.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/crc32c.h>
#include <keel/framework/base/internal/unpack_limit.h>
#include <keel/framework/data/internal/compressed_file.h>

namespace keel::data {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

constexpr const char* kReader = "TFRecordDataset";
constexpr const char* kWriter = "TFRecordWriter";
constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kHeaderBytes = kLengthBytes + sizeof(uint32_t);
constexpr size_t kChecksumBytes = sizeof(uint32_t);
// For records up to this length the file's size is not checked. For longer ones memory is allocated
// piece by piece, as their bytes arrive, because the length is not trusted.
constexpr uint64_t kShortRecord = uint64_t{1} << 16;

template <class T>
T load(const char* p) {
  T value = {};
  std::memcpy(&value, p, sizeof(value));
  return value;
}

template <class T>
void store(T value, char* p) {
  std::memcpy(p, &value, sizeof(value));
}

}  // namespace

TFRecordReader::TFRecordReader(const std::filesystem::path& file, const TFRecordOptions& options)
    : bytes_(std::make_unique<CompressedReader>(
          file, compression_from_name(kReader, options.compression_type), options.buffer_size,
          kReader)) {}

TFRecordReader::~TFRecordReader() = default;

bool TFRecordReader::next(std::string& record) {
  const uint64_t start = bytes_->offset();
  const auto fail = [&](const auto&... what) {
    throw IoError(bytes_->place(start), ": ", what...);
  };
  std::array<char, kHeaderBytes> header;
  const size_t received = bytes_->read(header.data(), header.size());
  if (received == 0) return false;
  if (received < header.size()) fail("the header of a record is truncated");
  const auto length = load<uint64_t>(header.data());
  if (masked_crc32c({header.data(), kLengthBytes}) != load<uint32_t>(&header[kLengthBytes])) {
    fail("the length of a record does not match its checksum: damaged, or not a TFRecord file",
         start == 0 && bytes_->looks_gzipped()
             ? " (the file is gzip-compressed; pass compression_type 'GZIP')"
             : "");
  }
  const auto cut_off = [&] { fail("a record of ", length, " bytes is truncated"); };
  if (length > kShortRecord) {
    const uint64_t most = bytes_->most_remaining();
    const bool fits = most >= kChecksumBytes && length <= most - kChecksumBytes;
    if (!fits && bytes_->is_compressed()) {
      fail("a record of ", length, " bytes is truncated, or expands by more than a factor of ",
           kMaxUnpackRatio, " (and to more than ", kAlwaysUnpacked,
           " bytes); if the file is trusted, decompress it first");
    }
    if (!fits) cut_off();
  }
  record.clear();
  while (record.size() < length) {
    const size_t begin = record.size();
    const size_t piece = std::min<uint64_t>(length - begin, std::max(kShortRecord, begin));
    record.resize(begin + piece);
    if (bytes_->read(&record[begin], piece) < piece) cut_off();
  }
  std::array<char, kChecksumBytes> checksum;
  if (bytes_->read(checksum.data(), checksum.size()) < checksum.size()) cut_off();
  if (masked_crc32c(record) != load<uint32_t>(checksum.data())) {
    fail("a record of ", length, " bytes does not match its checksum");
  }
  return true;
}

TFRecordWriter::TFRecordWriter(const std::filesystem::path& file,
                               const TFRecordWriterOptions& options)
    : bytes_(std::make_unique<CompressedWriter>(
          file, compression_from_name(kWriter, options.compression_type), kWriter)) {}

TFRecordWriter::~TFRecordWriter() = default;

void TFRecordWriter::write(std::string_view record) {
  std::array<char, kHeaderBytes> header;
  store<uint64_t>(record.size(), header.data());
  store<uint32_t>(masked_crc32c({header.data(), kLengthBytes}), &header[kLengthBytes]);
  std::array<char, kChecksumBytes> checksum;
  store<uint32_t>(masked_crc32c(record), checksum.data());
  bytes_->write({header.data(), header.size()});
  bytes_->write(record);
  bytes_->write({checksum.data(), checksum.size()});
}

void TFRecordWriter::flush() { bytes_->flush(); }
void TFRecordWriter::close() { bytes_->close(); }

namespace {

// Reads the records of several files in batches.
class RecordBatches {
 public:
  RecordBatches(std::vector<std::filesystem::path> files, TFRecordOptions options)
      : files_(std::move(files)), options_(std::move(options)) {}

  // Returns the next records as strings of shape [n], or nullopt at the end. An error is deferred
  // until the records before it have been returned.
  std::optional<Tensors> next() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    std::vector<std::string> records;
    try {
      read(records);
    } catch (const Error&) {
      if (records.empty()) throw;
      error_ = std::current_exception();
    }
    if (records.empty()) return std::nullopt;
    const auto count = static_cast<int64_t>(records.size());
    Tensor out = Tensor::uninitialized({count}, DType::kString);
    std::ranges::move(records, out.mutable_data<std::string>().begin());
    return out;
  }

 private:
  static constexpr size_t kMostRecords = 1024;
  static constexpr size_t kMostBytes = size_t{1} << 20;

  void read(std::vector<std::string>& records) {
    size_t bytes = 0;
    std::string record;
    while (records.size() < kMostRecords && bytes < kMostBytes) {
      if (reader_ == nullptr) {
        if (next_file_ == files_.size()) return;
        reader_ = std::make_unique<TFRecordReader>(files_[next_file_++], options_);
      }
      if (reader_->next(record)) {
        bytes += record.size();
        records.push_back(std::move(record));
      } else {
        reader_ = nullptr;
      }
    }
  }

  const std::vector<std::filesystem::path> files_;
  const TFRecordOptions options_;
  size_t next_file_ = 0;
  std::unique_ptr<TFRecordReader> reader_;
  std::exception_ptr error_;
};

Dataset records_of(std::vector<std::filesystem::path> files, const TFRecordOptions& options) {
  if (files.empty()) throw ValueError(kReader, ": the list of files is empty; pass at least one");
  compression_from_name(kReader, options.compression_type);
  if (options.buffer_size < 1) {
    throw ValueError(kReader, ": buffer_size must be at least 1 byte, received ",
                     options.buffer_size);
  }
  return Dataset::from_generator([files = std::move(files), options]() -> Dataset::Generator {
           // Shared, because std::function copies its target.
           auto batches = std::make_shared<RecordBatches>(files, options);
           return [batches] { return batches->next(); };
         })
      .unbatch();
}

}  // namespace

TFRecordDataset::TFRecordDataset(std::vector<std::filesystem::path> files,
                                 const TFRecordOptions& options)
    : Dataset(records_of(std::move(files), options)) {}

}  // namespace keel::data
