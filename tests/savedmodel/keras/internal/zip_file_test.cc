#include <keel/savedmodel/keras/internal/zip_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::zip_file_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

constexpr int64_t kLimit = 1 << 20;

std::string archive(const TemporaryFolder& folder) {
  write_bytes(folder / "b.txt", std::string(3000, 'b'));
  ZipWriter zip(folder / "a.zip");
  zip.add("a", "hello");
  zip.add_file("dir/b", folder / "b.txt");
  zip.finish();
  return folder / "a.zip";
}

TEST(ZipFileTest, EntriesAreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const ZipFile zip(archive(folder));
  EXPECT_TRUE(zip.has("a"));
  EXPECT_FALSE(zip.has("c"));
  EXPECT_EQ(zip.read("a", kLimit), "hello");
  zip.extract("dir/b", folder / "out");
  EXPECT_EQ(read_bytes(folder / "out"), std::string(3000, 'b'));
}

TEST(ZipFileTest, EntriesAreStoredWithoutDescriptorsInTheirOrder) {
  const TemporaryFolder folder;
  const std::string bytes = read_bytes(archive(folder));
  EXPECT_EQ(bytes.substr(0, 4), "PK\3\4");
  EXPECT_EQ(bytes.substr(6, 4), std::string(4, '\0'));  // no flags, method 0
  EXPECT_EQ(bytes.substr(30, 6), "ahello");
}

// Bit 11 of the flags says that the name is UTF-8 (APPNOTE.TXT 4.4.4 and D).
TEST(ZipFileTest, NamesThatAreNotAsciiAreMarkedAsUtf8) {
  const TemporaryFolder folder;
  ZipWriter zip(folder / "a.zip");
  zip.add("\u00e4", "hello");
  zip.finish();
  EXPECT_EQ(read_bytes(folder / "a.zip").substr(6, 2), std::string("\0\x08", 2));
  EXPECT_EQ(ZipFile(folder / "a.zip").read("\u00e4", kLimit), "hello");
}

TEST(ZipFileTest, EqualEntriesMakeEqualBytes) {
  const TemporaryFolder folder;
  const std::string first = read_bytes(archive(folder));
  EXPECT_EQ(read_bytes(archive(folder)), first);
}

// An archive written by another program: "a" deflated, 4096 times 'x'.
constexpr unsigned char kDeflated[] = {
    0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xc1,
    0x77, 0x10, 0x3e, 0x14, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x61, 0xed, 0xc1, 0x01, 0x0d, 0x00, 0x00, 0x00, 0xc2, 0xa0, 0xda, 0x8f, 0x6f, 0x0f, 0x07,
    0x14, 0x00, 0x00, 0x00, 0xf0, 0x6e, 0x50, 0x4b, 0x01, 0x02, 0x14, 0x03, 0x14, 0x00, 0x00,
    0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xc1, 0x77, 0x10, 0x3e, 0x14, 0x00, 0x00, 0x00,
    0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x61, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00,
    0x00, 0x01, 0x00, 0x01, 0x00, 0x2f, 0x00, 0x00, 0x00, 0x33, 0x00, 0x00, 0x00, 0x00, 0x00};

TEST(ZipFileTest, DeflatedEntriesAreRead) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.zip",
              std::string(reinterpret_cast<const char*>(kDeflated), sizeof(kDeflated)));
  EXPECT_EQ(ZipFile(folder / "a.zip").read("a", kLimit), std::string(4096, 'x'));
}

// 6 MB would expand to 6 GB.
TEST(ZipFileTest, ADecompressionBombIsRejected) {
  const TemporaryFolder folder;
  std::string bytes(reinterpret_cast<const char*>(kDeflated), sizeof(kDeflated));
  bytes.replace(bytes.find("PK\1\2") + 24, 4, std::string("\1\0\0\4", 4));  // 64 MiB and 1 byte
  write_bytes(folder / "bomb.zip", bytes);
  const ZipFile zip(folder / "bomb.zip");
  const std::string message = message_of<IoError>([&] { zip.extract("a", folder / "out"); });
  EXPECT_THAT(message, HasSubstr("bomb.zip, a: unpacks from 20 to 67108865 bytes"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(ZipFileTest, AnEntryThatIsTooLongIsRejected) {
  const TemporaryFolder folder;
  EXPECT_THROW(ZipFile(archive(folder)).read("a", 4), IoError);
}

TEST(ZipFileTest, AnEntryWithAnImpossibleSizeIsRejected) {
  const TemporaryFolder folder;
  std::string bytes = read_bytes(archive(folder));
  const size_t central = bytes.find("PK\1\2");
  bytes.replace(central + 24, 4, std::string("\xff\xff\xff\x7f", 4));
  write_bytes(folder / "bomb.zip", bytes);
  EXPECT_THROW(ZipFile(folder / "bomb.zip").read("a", int64_t{1} << 40), IoError);
}

TEST(ZipFileTest, DamageIsDetected) {
  const TemporaryFolder folder;
  std::string bytes = read_bytes(archive(folder));
  bytes[33] ^= 1;  // corrupts "hello", so its checksum does not match
  write_bytes(folder / "damaged.zip", bytes);
  EXPECT_THROW(ZipFile(folder / "damaged.zip").read("a", kLimit), IoError);
}

TEST(ZipFileTest, InvalidArchivesAreErrorsThatNameTheFile) {
  const TemporaryFolder folder;
  write_bytes(folder / "text", "text");
  for (const char* name : {"text", "none"}) {
    const std::string message = message_of<IoError>([&] { ZipFile zip(folder / name); });
    EXPECT_THAT(message, HasSubstr(folder / name));
  }
  const std::string missing =
      message_of<IoError>([&] { ZipFile(archive(folder)).read("c", kLimit); });
  EXPECT_THAT(missing, HasSubstr("c: is not in the archive"));
}

TEST(ZipFileTest, AFolderThatDoesNotExistIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(
      {
        ZipWriter zip(folder / "none/a.zip");
        zip.add("a", "text");
        zip.finish();
      },
      IoError);
}

}  // namespace keel::zip_file_test
