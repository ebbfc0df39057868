// Tests savedmodel/hdf5/.
#include <keel/savedmodel/hdf5/hdf5_file.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <hdf5.h>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::hdf5_file_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

using Charset = Hdf5Writer::Charset;

template <class T>
void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.spec(), b.spec());
  EXPECT_EQ(a.to_vector<T>(), b.to_vector<T>());
}

TEST(Hdf5FileTest, KeepsTensorsOfEveryDtype) {
  const TemporaryFolder folder;
  const Tensor f32 = Tensor::from<float>({1.5f, -2, 3}, {3, 1});
  const Tensor f64 = Tensor::from<double>({0.1, 1e300}, {2});
  const Tensor i32 = Tensor::from<int32_t>({-1, 2147483647}, {1, 2});
  const Tensor i64 = Tensor::from<int64_t>({int64_t{1} << 60, -5}, {2});
  const Tensor flags = Tensor::from<bool>({true, false, true}, {3});
  const Tensor bytes = Tensor::from<uint8_t>({0, 255}, {2});
  const Tensor codes = Tensor::from<int8_t>({-128, 127}, {2});
  const Tensor words = Tensor::from<std::string>({"", "a", "h\xC3\xA9"}, {3});
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("f32", f32);
    file.write("deep/down/f64", f64);
    file.write("i32", i32);
    file.write("i64", i64);
    file.write("flags", flags);
    file.write("bytes", bytes);
    file.write("codes", codes);
    file.write("words", words);
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  expect_same<float>(file.read("f32"), f32);
  expect_same<double>(file.read("/deep/down/f64"), f64);
  expect_same<int32_t>(file.read("i32"), i32);
  expect_same<int64_t>(file.read("i64"), i64);
  expect_same<bool>(file.read("flags"), flags);
  expect_same<uint8_t>(file.read("bytes"), bytes);
  expect_same<int8_t>(file.read("codes"), codes);
  expect_same<int8_t>(file.read_rows("codes", 1, 1), Tensor::from<int8_t>({127}, {1}));
  expect_same<float>(file.read("codes", DType::kFloat32), Tensor::from<float>({-128, 127}, {2}));
  expect_same<std::string>(file.read("words"), words);
}

// During its lifetime, files of this process cannot grow beyond `bytes`.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_ = {};
};

void write_many(const std::string& path, int64_t values) {
  Hdf5Writer file(path);
  for (int i = 0; i < 8; ++i) {
    file.write(str("group/", i), Tensor::full({values}, 1.5F * static_cast<float>(i)));
    file.write_attribute(str("group/", i), "name", "value");
  }
  file.create_dataset("rows", {.shape = {2, values}, .dtype = DType::kFloat32});
  for (int i = 0; i < 2; ++i) {
    file.write_rows("rows", i, Tensor::full({1, values}, 0.5F * static_cast<float>(i)));
  }
  file.commit({.seal = true});
}

// Values under 64 KiB are written to the disk when their dataset or the file is closed.
TEST(Hdf5FileTest, AFullDiskAtAnyByteIsAnErrorThatNamesTheFile) {
  for (const int64_t values : {100, 20000}) {
    const TemporaryFolder folder;
    write_many(folder / "right.h5", values);
    const std::string right = read_bytes(folder / "right.h5");
    for (size_t limit = 0; limit < right.size(); limit += right.size() / 97) {
      const FullDisk full(limit);
      const std::string message = message_of<IoError>([&] { write_many(folder / "a.h5", values); });
      EXPECT_THAT(message, HasSubstr(folder / "a.h5"));
      EXPECT_FALSE(std::filesystem::exists(folder / "a.h5")) << limit;
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
    write_many(folder / "a.h5", values);
    EXPECT_EQ(read_bytes(folder / "a.h5"), right);
  }
}

TEST(Hdf5FileTest, ChangedBytesAreDetectedBeforeTheFileIsRenamed) {
  const TemporaryFolder folder;
  for (const bool rows : {false, true}) {
    Hdf5Writer file(folder / "a.h5");
    const Tensor values = Tensor::full({40, 1000}, 1.5F);  // too large to be buffered
    if (rows) {
      file.create_dataset("table", values.spec());
      file.write_rows("table", 0, values);
    } else {
      file.write("table", values);
    }
    const std::string path = std::filesystem::directory_iterator(folder.path())->path();
    std::string bytes = read_bytes(path);
    const size_t at = bytes.find(std::string("\0\0\xC0\x3F\0\0\xC0\x3F", 8));
    ASSERT_NE(at, std::string::npos);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(at + 100000) << 'x';
    const std::string message = message_of<IoError>([&] { file.commit(); });
    EXPECT_THAT(message, HasSubstr((folder / "a.h5") + ", table: the bytes read back differ"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
  }
}

TEST(Hdf5FileTest, RowsOfAnotherDtypeAreRejected) {
  const TemporaryFolder folder;
  Hdf5Writer file(folder / "a.h5");
  file.create_dataset("rows", {.shape = {2, 3}, .dtype = DType::kFloat32});
  EXPECT_THROW(file.write_rows("rows", 0, Tensor::zeros({1, 3}, DType::kInt32)), IoError);
}

TEST(Hdf5FileTest, KeepsScalarsAndTensorsWithoutElements) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("scalar", Tensor::scalar<int64_t>(7));
    file.write("empty", Tensor::zeros({0, 3}));
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.spec("scalar"), (TensorSpec{.shape = {}, .dtype = DType::kInt64}));
  EXPECT_EQ(file.read("scalar").item<int64_t>(), 7);
  EXPECT_EQ(file.read("empty").shape(), Shape({0, 3}));
}

TEST(Hdf5FileTest, ReadsNumbersAsAnotherDtype) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("x", Tensor::from<double>({0.5, 2}, {2}));
    file.write("words", Tensor::from<std::string>({"a"}, {1}));
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  expect_same<float>(file.read("x", DType::kFloat32), Tensor::from<float>({0.5, 2}, {2}));
  EXPECT_THROW(file.read("words", DType::kFloat32), IoError);
}

TEST(Hdf5FileTest, RowsAreWrittenAndReadInPieces) {
  const TemporaryFolder folder;
  const Tensor whole = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2});
  {
    Hdf5Writer file(folder / "rows.h5");
    file.create_dataset("/a/b", whole.spec());
    file.write_rows("/a/b", 3, Tensor::from<float>({7, 8, 9, 10}, {2, 2}));
    file.write_rows("/a/b", 0, Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
    EXPECT_THROW(file.write_rows("/a/b", 4, Tensor::zeros({2, 2})), IoError);
    EXPECT_THROW(file.write_rows("/a/b", 0, Tensor::zeros({2, 3})), IoError);
    file.commit();
  }
  const Hdf5File file(folder / "rows.h5");
  EXPECT_EQ(file.read("/a/b").to_vector<float>(), whole.to_vector<float>());
  EXPECT_EQ(file.read_rows("/a/b", 1, 2).to_vector<float>(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(file.read_rows("/a/b", 5, 0).shape(), (Shape{0, 2}));
  EXPECT_THROW(file.read_rows("/a/b", 4, 2), IoError);
  EXPECT_THROW(file.read_rows("/a/b", -1, 2), IoError);
}

TEST(Hdf5FileTest, KeepsAttributes) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.create_group("g");
    file.write_attribute("/", "ascii", "text");
    file.write_attribute("/", "utf8", "h\xC3\xA9", Charset::kUtf8);
    file.write_attribute("/", "empty", "");
    file.write_attribute("g", "number", int64_t{-3});
    file.write_attribute("g", "long", std::string(200000, 'x'));
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.string_attribute("/", "ascii"), "text");
  EXPECT_EQ(file.string_attribute("/", "utf8"), "h\xC3\xA9");
  EXPECT_EQ(file.string_attribute("/", "empty"), "");
  EXPECT_EQ(file.integer_attribute("g", "number"), -3);
  EXPECT_EQ(file.string_attribute("g", "long"), std::string(200000, 'x'));
  EXPECT_TRUE(file.has_attribute("g", "number"));
  EXPECT_FALSE(file.has_attribute("g", "none"));
}

TEST(Hdf5FileTest, ListsOfNamesAreReadAsWritten) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"dense", "", "dense_1"};
  {
    Hdf5Writer file(folder / "a.h5");
    file.write_string_list("/", "names", names);
    file.write_string_list("/", "none", {});
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.string_list("/", "names"), names);
  EXPECT_TRUE(file.has_attribute("/", "none"));
  EXPECT_TRUE(file.string_list("/", "none").empty());
  EXPECT_TRUE(file.string_list("/", "absent").empty());
}

// 53 names of 1300 bytes: 49 fit into 64512 bytes, so there are two parts, of which the first is
// longer.
TEST(Hdf5FileTest, LongListsAreSplitIntoNearEqualParts) {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 53; ++i) {
    names.push_back(std::to_string(100 + i) + std::string(1297, 'n'));
  }
  {
    Hdf5Writer file(folder / "a.h5");
    file.write_string_list("/", "names", names);
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_FALSE(file.has_attribute("/", "names"));
  EXPECT_EQ(file.string_list("/", "names0").size(), 27U);
  EXPECT_EQ(file.string_list("/", "names1").size(), 26U);
  EXPECT_FALSE(file.has_attribute("/", "names2"));
  EXPECT_EQ(file.string_list("/", "names"), names);
}

TEST(Hdf5FileTest, ListsOfManyShortNamesAreKept) {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 10000; ++i) names.push_back("n" + std::to_string(i));
  {
    Hdf5Writer file(folder / "a.h5");
    file.write_string_list("/", "names", names);
    file.commit();
  }
  EXPECT_EQ(Hdf5File(folder / "a.h5").string_list("/", "names"), names);
}

TEST(Hdf5FileTest, ChildrenAreSortedByName) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.create_group("g/b");
    file.create_group("g/a");
    file.write("g/c", Tensor::scalar<float>(1));
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.children("g"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(file.is_group("g/a"));
  EXPECT_FALSE(file.is_group("g/c"));
  EXPECT_TRUE(file.has("g/c"));
  EXPECT_FALSE(file.has("g/d"));
  EXPECT_THROW(file.children("g/c"), IoError);
}

TEST(Hdf5FileTest, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.h5", "old");
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("x", Tensor::scalar<float>(1));
  }
  EXPECT_EQ(read_bytes(folder / "a.h5"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_THROW(Hdf5Writer(folder / "none/a.h5"), IoError);
}

TEST(Hdf5FileTest, EqualContentsMakeEqualBytes) {
  const TemporaryFolder folder;
  for (const char* name : {"a.h5", "b.h5"}) {
    Hdf5Writer file(folder / name);
    file.write("g/x", Tensor::from<float>({1, 2}, {2}));
    file.write_string_list("g", "names", {"x"});
    file.commit();
  }
  EXPECT_EQ(read_bytes(folder / "a.h5"), read_bytes(folder / "b.h5"));
}

TEST(Hdf5FileTest, ANulInAStringIsAnError) {
  const TemporaryFolder folder;
  Hdf5Writer file(folder / "a.h5");
  const std::string nul("a\0b", 3);
  EXPECT_THROW(file.write_attribute("/", "a", nul), ValueError);
  EXPECT_THROW(file.write_string_list("/", "b", {nul}), ValueError);
  EXPECT_THROW(file.write("c", Tensor::from<std::string>({nul}, {1})), ValueError);
}

TEST(Hdf5FileTest, ErrorsNameFileAndObject) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("g/x", Tensor::from<float>({1, 2}, {2}));
    file.write_attribute("g", "n", int64_t{1});
    file.write_attribute("g", "text", "words");
    file.commit();
  }
  const Hdf5File file(folder / "a.h5");
  for (const std::string& message : {
           message_of<IoError>([&] { file.read("g/y"); }),
           message_of<IoError>([&] { file.read("g"); }),
           message_of<IoError>([&] { file.string_attribute("g", "n"); }),
           message_of<IoError>([&] { file.string_attribute("g", "none"); }),
           message_of<IoError>([&] { file.integer_attribute("g", "text"); }),
           message_of<IoError>([&] { file.string_list("g", "n"); }),
           message_of<IoError>([&] { file.children("g/none"); }),
       }) {
    EXPECT_THAT(message, HasSubstr(folder / "a.h5"));
    EXPECT_THAT(message, HasSubstr(", g"));
  }
}

TEST(Hdf5FileTest, InvalidFilesAreErrors) {
  const TemporaryFolder folder;
  write_bytes(folder / "text", "no HDF5");
  write_bytes(folder / "empty", "");
  EXPECT_THROW(Hdf5File(folder / "none"), IoError);
  EXPECT_THROW(Hdf5File(folder / "text"), IoError);
  EXPECT_THROW(Hdf5File(folder / "empty"), IoError);
  EXPECT_THROW(Hdf5File(folder.path()), IoError);
}

// Returns the eight little-endian bytes of a number.
std::string eight_bytes(uint64_t value) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &value, 8);
  return out;
}

TEST(Hdf5FileTest, AnImpossibleSizeIsAnError) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("x", Tensor::zeros({12347}));
    file.commit();
  }
  std::string bytes = read_bytes(folder / "a.h5");
  // The dimension is followed by its limit.
  const size_t at = bytes.find(eight_bytes(12347));
  ASSERT_NE(at, std::string::npos);
  for (const uint64_t claimed : {uint64_t{12348}, uint64_t{1} << 40, ~uint64_t{0}}) {
    for (const size_t place : {at, at + 8}) bytes.replace(place, 8, eight_bytes(claimed));
    write_bytes(folder / "b.h5", bytes);
    EXPECT_THROW(Hdf5File(folder / "b.h5").read("x"), IoError) << claimed;
  }
}

TEST(Hdf5FileTest, AGroupInItselfIsAnError) {
  const TemporaryFolder folder;
  for (const H5F_libver_t oldest : {H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST}) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, oldest, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "g", group, "g", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    H5Fclose(file);
    H5Pclose(access);
    EXPECT_THROW(Hdf5File(folder / "a.h5").children("g"), IoError);
  }
}

TEST(Hdf5FileTest, AnInvalidMemberNameIsAnError) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.create_group("aname");
    file.commit();
  }
  const std::string bytes = read_bytes(folder / "a.h5");
  const size_t at = bytes.find("aname");
  ASSERT_NE(at, std::string::npos);
  for (const std::string& name :
       {std::string(5, '\0'), std::string(".\0", 2), std::string("a/a")}) {
    std::string damaged = bytes;
    damaged.replace(at, name.size(), name);
    write_bytes(folder / "b.h5", damaged);
    EXPECT_THROW(Hdf5File(folder / "b.h5").children("/"), IoError) << name;
  }
}

TEST(Hdf5FileTest, NothingIsReadBeyondTheDeclaredEnd) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("x", Tensor::zeros({1000}));
    file.commit();
  }
  std::string bytes = read_bytes(folder / "a.h5");
  constexpr size_t kEnd = 40;  // position of the end of the file in a superblock of version 0
  ASSERT_EQ(bytes.substr(kEnd, 8), eight_bytes(bytes.size()));
  bytes.replace(kEnd, 8, eight_bytes(bytes.size() - 2000));
  write_bytes(folder / "b.h5", bytes);
  EXPECT_THROW(Hdf5File(folder / "b.h5"), IoError);
}

TEST(Hdf5FileTest, WrongSizesInObjectHeadersAreErrors) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("x", Tensor::zeros({10}));
    file.commit();
  }
  const std::string bytes = read_bytes(folder / "a.h5");
  // The header of the root, whose address is in the superblock: the number of its messages, their
  // size, and the length of the first message.
  uint64_t header = 0;
  std::memcpy(&header, &bytes[64], 8);
  for (const size_t at : {2, 8, 18}) {
    for (const int change : {-1, 1, 8}) {
      std::string damaged = bytes;
      damaged[header + at] = static_cast<char>(damaged[header + at] + change);
      write_bytes(folder / "b.h5", damaged);
      EXPECT_THROW(Hdf5File(folder / "b.h5"), IoError) << at << ", " << change;
    }
  }
}

TEST(Hdf5FileTest, ADecompressionBombIsRejected) {
  const TemporaryFolder folder;
  const hid_t file =
      H5Fcreate((folder / "bomb.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t rows = 20, columns = 1 << 20;
  const std::array<hsize_t, 2> shape = {rows, columns}, chunk = {1, columns};
  const hid_t space = H5Screate_simple(2, shape.data(), nullptr);
  const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(made, 2, chunk.data());
  H5Pset_deflate(made, 9);
  const hid_t data =
      H5Dcreate2(file, "zeros", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
  const std::vector<float> zeros(rows * columns);
  H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
  H5Dclose(data);
  H5Pclose(made);
  H5Sclose(space);
  H5Fclose(file);
  const Hdf5File bomb(folder / "bomb.h5");
  const std::string message = message_of<IoError>([&] { bomb.read("zeros"); });
  EXPECT_THAT(message, HasSubstr("bomb.h5, zeros: unpacks from "));
}

TEST(Hdf5FileTest, SoftLinksAreNotFollowed) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write("x", Tensor::scalar<float>(1));
    file.commit();
  }
  std::string bytes = read_bytes(folder / "a.h5");
  // The first entry of a symbol table: the offset of its name, its object, and the kind of link.
  const size_t entry = bytes.find("SNOD") + 8;
  ASSERT_LT(entry, bytes.size());
  bytes[entry + 16] = 2;                                 // a soft link
  bytes.replace(entry + 24, 4, bytes.substr(entry, 4));  // to its own name
  write_bytes(folder / "b.h5", bytes);
  const Hdf5File file(folder / "b.h5");
  EXPECT_THAT(message_of<IoError>([&] { file.read("x"); }), HasSubstr("soft"));
}

}  // namespace keel::hdf5_file_test
