// Tests framework/data/internal/compressed_file.cc.
#include <keel/framework/data/tfrecord.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/crc32c.h>
#include <keel/framework/data/internal/compressed_file.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::data::tfrecord_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

using Strings = std::vector<std::string>;

const Strings kTypes = {"", "GZIP", "ZLIB"};

Strings some_records() {
  std::string every_byte, long_one(100'000, 'x');
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  for (size_t i = 0; i < long_one.size(); ++i) long_one[i] = static_cast<char>(i * i >> 5);
  return {"first", "", every_byte, long_one, "last"};
}

void write_records(const std::string& file, const Strings& records, const std::string& type = "") {
  TFRecordWriter writer(file, {.compression_type = type});
  for (const std::string& record : records) writer.write(record);
  writer.close();
}

Strings read_records(const std::string& file, const TFRecordOptions& options = {}) {
  TFRecordReader reader(file, options);
  Strings out;
  std::string record;
  while (reader.next(record)) out.push_back(record);
  return out;
}

Strings elements(const Dataset& dataset) {
  Strings out;
  for (const Tensors& element : dataset) out.push_back(element.tensor().item<std::string>());
  return out;
}

// Returns the message of the error of reading the file and the number of records before it.
std::pair<std::string, int> error_of(const std::string& file, const std::string& type = "") {
  TFRecordReader reader(file, {.compression_type = type});
  std::string record;
  int before = 0;
  const std::string message = message_of<IoError>([&] {
    for (; reader.next(record); ++before) continue;
  });
  return {message, before};
}

// The header and the checksum, written by hand.
std::string framed(const std::string& record, uint64_t claimed_length) {
  const auto bytes_of = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const std::string length = bytes_of(claimed_length);
  return length + bytes_of(masked_crc32c(length)) + record + bytes_of(masked_crc32c(record));
}

TEST(TFRecordTest, RecordsAreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  for (const std::string& type : kTypes) {
    write_records(folder / "a", some_records(), type);
    EXPECT_EQ(read_records(folder / "a", {.compression_type = type}), some_records()) << type;
    EXPECT_EQ(read_records(folder / "a", {.compression_type = type, .buffer_size = 1}),
              some_records());
  }
}

TEST(TFRecordTest, FramesRecordsWithLengthAndChecksums) {
  const TemporaryFolder folder;
  write_records(folder / "a", {"abc", ""});
  EXPECT_EQ(read_bytes(folder / "a"), framed("abc", 3) + framed("", 0));
}

TEST(TFRecordTest, AFileWithoutRecordsHasNone) {
  const TemporaryFolder folder;
  for (const std::string& type : kTypes) {
    write_records(folder / "none", {}, type);
    EXPECT_TRUE(read_records(folder / "none", {.compression_type = type}).empty());
  }
  write_bytes(folder / "empty", "");
  EXPECT_TRUE(read_records(folder / "empty").empty());
  EXPECT_TRUE(read_records(folder / "empty", {.compression_type = "GZIP"}).empty());
}

TEST(TFRecordTest, SeveralGzipStreamsInAFileAreOne) {
  const TemporaryFolder folder;
  write_records(folder / "a", {"one"}, "GZIP");
  write_records(folder / "b", {"two", "three"}, "GZIP");
  write_bytes(folder / "both", read_bytes(folder / "a") + read_bytes(folder / "b"));
  EXPECT_EQ(read_records(folder / "both", {.compression_type = "GZIP"}),
            Strings({"one", "two", "three"}));
}

TEST(TFRecordTest, FlushedRecordsCanBeRead) {
  const TemporaryFolder folder;
  for (const std::string& type : kTypes) {
    TFRecordWriter writer(folder / "a", {.compression_type = type});
    writer.write("now");
    writer.flush();
    TFRecordReader reader(folder / "a", {.compression_type = type});
    std::string record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(record, "now");
    writer.close();
    EXPECT_THROW(writer.write("late"), RuntimeError);
  }
}

TEST(TFRecordTest, ATruncatedFileIsAnErrorThatNamesFileAndOffset) {
  const TemporaryFolder folder;
  write_records(folder / "whole", {"0123456789", "abc"});
  const std::string whole = read_bytes(folder / "whole");
  constexpr size_t kSecond = 8 + 4 + 10 + 4;
  for (size_t size = 0; size < whole.size(); ++size) {
    if (size == 0 || size == kSecond) continue;
    write_bytes(folder / "cut", whole.substr(0, size));
    const auto [message, before] = error_of(folder / "cut");
    EXPECT_EQ(before, size < kSecond ? 0 : 1);
    EXPECT_THAT(message, HasSubstr(folder / "cut"));
    EXPECT_THAT(message, HasSubstr(size < kSecond ? "offset 0:" : "offset 26:"));
    EXPECT_THAT(message, HasSubstr("is truncated"));
  }
}

TEST(TFRecordTest, ATruncatedCompressedFileIsAnError) {
  const TemporaryFolder folder;
  for (const std::string type : {"GZIP", "ZLIB"}) {
    write_records(folder / "whole", some_records(), type);
    const std::string whole = read_bytes(folder / "whole");
    for (size_t size = 1; size < whole.size(); size += 1 + whole.size() / 20) {
      write_bytes(folder / "cut", whole.substr(0, size));
      EXPECT_THAT(error_of(folder / "cut", type).first, HasSubstr(folder / "cut"));
    }
    write_bytes(folder / "cut", whole.substr(0, whole.size() - 1));
    EXPECT_THAT(error_of(folder / "cut", type).first, HasSubstr("is truncated"));
  }
}

TEST(TFRecordTest, AnyChangedByteIsDetected) {
  const TemporaryFolder folder;
  write_records(folder / "whole", {"0123456789", "abc"});
  const std::string whole = read_bytes(folder / "whole");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 4;
    write_bytes(folder / "damaged", damaged);
    EXPECT_THAT(error_of(folder / "damaged").first, HasSubstr("does not match its checksum")) << i;
  }
}

TEST(TFRecordTest, DamagedCompressedDataIsAnError) {
  const TemporaryFolder folder;
  write_records(folder / "whole", some_records(), "GZIP");
  const std::string whole = read_bytes(folder / "whole");
  for (size_t i = 0; i < whole.size(); i += 1 + whole.size() / 40) {
    std::string damaged = whole;
    damaged[i] ^= 0x10;
    write_bytes(folder / "damaged", damaged);
    try {  // some bits of the gzip header, such as the time, have no effect
      EXPECT_EQ(read_records(folder / "damaged", {.compression_type = "GZIP"}), some_records());
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr(folder / "damaged"));
    }
  }
}

// The length has a valid checksum, so only a malicious file contains it.
TEST(TFRecordTest, AnImpossibleLengthIsRejectedBeforeAllocation) {
  const TemporaryFolder folder;
  for (const uint64_t length : {uint64_t{1} << 20, uint64_t{1} << 50, ~uint64_t{0}}) {
    write_bytes(folder / "plain", framed("abc", length));
    EXPECT_THAT(error_of(folder / "plain").first, HasSubstr("bytes is truncated"));
    CompressedWriter gzip(folder / "gzip", Compression::kGzip, "test");
    gzip.write(framed("abc", length));
    gzip.close();
    EXPECT_THAT(error_of(folder / "gzip", "GZIP").first, HasSubstr("bytes is truncated"));
  }
}

TEST(TFRecordTest, AFileOfAnotherKindIsAnErrorWithAHint) {
  const TemporaryFolder folder;
  write_records(folder / "gzip", {"a"}, "GZIP");
  EXPECT_THAT(error_of(folder / "gzip").first, HasSubstr("compression_type 'GZIP'"));
  write_bytes(folder / "text", "no records, but a text\n");
  EXPECT_THAT(error_of(folder / "text").first, HasSubstr("not a TFRecord file"));
  EXPECT_THAT(error_of(folder / "text", "GZIP").first, HasSubstr("is damaged"));
}

TEST(TFRecordTest, WrongOptionsAndFilesAreErrors) {
  const TemporaryFolder folder;
  EXPECT_THROW(TFRecordReader(folder / "a", {.compression_type = "BZ2"}), ValueError);
  EXPECT_THROW(TFRecordWriter(folder / "a", {.compression_type = "BZ2"}), ValueError);
  EXPECT_THROW(TFRecordReader(folder / "missing"), IoError);
  EXPECT_THROW(TFRecordWriter(folder / "missing/a"), IoError);
  EXPECT_THROW(read_records(folder.path()), IoError);
  EXPECT_THROW(TFRecordDataset(std::vector<std::filesystem::path>{}), ValueError);
  EXPECT_THROW(TFRecordDataset(folder / "a", {.compression_type = "gzip"}), ValueError);
  EXPECT_THROW(TFRecordDataset(folder / "a", {.buffer_size = 0}), ValueError);
}

TEST(TFRecordDatasetTest, ReadsTheRecordsOfAllFilesInOrder) {
  const TemporaryFolder folder;
  Strings all;
  for (int file = 0; file < 3; ++file) {
    Strings records;
    for (int i = 0; i < 1000; ++i) records.push_back(std::to_string(file * 1000 + i));
    write_records(folder / std::to_string(file), records);
    all.insert(all.end(), records.begin(), records.end());
  }
  const TFRecordDataset dataset({folder / "0", folder / "1", folder / "2"});
  EXPECT_EQ(elements(dataset), all);
  EXPECT_EQ(elements(dataset), all) << "a second time";
  EXPECT_EQ(dataset.cardinality(), kUnknownCardinality);
  Strings batched;
  for (const Tensors& batch : dataset.batch(7)) {
    const Tensor records = batch.tensor();
    for (const std::string& record : records.data<std::string>()) batched.push_back(record);
  }
  EXPECT_EQ(batched, all);
}

TEST(TFRecordDatasetTest, RecordsBeforeAnErrorAreReturned) {
  const TemporaryFolder folder;
  write_records(folder / "good", {"a", "b"});
  write_bytes(folder / "bad", framed("c", 1) + framed("d", 1).substr(0, 10));
  const TFRecordDataset dataset({folder / "good", folder / "bad"});
  const auto iterator = dataset.iterator();
  for (const char* expected : {"a", "b", "c"}) {
    EXPECT_EQ(iterator->next()->tensor().item<std::string>(), expected);
  }
  EXPECT_THROW(iterator->next(), IoError);
  EXPECT_FALSE(iterator->next().has_value());
}

TEST(TFRecordDatasetTest, FilesAreOpenedLazily) {
  const TemporaryFolder folder;
  write_records(folder / "good", {"a"});
  const auto iterator = TFRecordDataset({folder / "good", folder / "missing"}).iterator();
  EXPECT_EQ(iterator->next()->tensor().item<std::string>(), "a");
  EXPECT_THROW(iterator->next(), IoError);
}

// 2 MB of gzip data would expand to 2 GB.
TEST(TFRecordTest, ADecompressionBombIsRejectedBeforeAllocation) {
  const TemporaryFolder folder;
  {
    TFRecordWriter writer(folder / "bomb", {.compression_type = "GZIP"});
    writer.write(std::string(size_t{65} << 20, '\0'));
  }
  TFRecordReader reader(folder / "bomb", {.compression_type = "GZIP"});
  std::string record;
  const std::string message = message_of<IoError>([&] { reader.next(record); });
  EXPECT_THAT(message, HasSubstr("a record of 68157440 bytes"));
  EXPECT_THAT(message, HasSubstr("decompress it first"));
  EXPECT_LT(record.capacity(), size_t{1} << 20);
}

TEST(TFRecordTest, ALongRecordIsReadFromACompressedFile) {
  const TemporaryFolder folder;
  std::string long_record(size_t{1} << 20, '\0');
  for (size_t i = 0; i < long_record.size(); ++i) {
    long_record[i] = static_cast<char>((i * i * 2654435761U) >> 13);
  }
  {
    TFRecordWriter writer(folder / "a", {.compression_type = "GZIP"});
    writer.write(long_record);
  }
  TFRecordReader reader(folder / "a", {.compression_type = "GZIP"});
  std::string record;
  ASSERT_TRUE(reader.next(record));
  EXPECT_TRUE(record == long_record);
}

}  // namespace keel::data::tfrecord_test
