#include <keel/savedmodel/id_limit_files.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/savedmodel/keras/internal/zip_file.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::id_limit_files_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;
using Limits = std::map<std::string, IdLimits>;

TEST(IdLimitFilesTest, WrittenLimitsAreRead) {
  const Limits limits = {{"a_b", {.max_ids_per_partition = 12, .max_unique_ids_per_partition = 3}},
                         {"items", {.max_ids_per_partition = 1 << 30}}};
  for (const char* format : {"csv", "npz"}) {
    const TemporaryFolder folder;
    const std::string path = write_id_limits(folder / "new", limits, {.format = format});
    EXPECT_THAT(path, testing::MatchesRegex(str(".*/fdo_stats_0_[0-9]+\\.", format)));
    EXPECT_EQ(read_id_limits(folder / "new"), limits) << format;
  }
}

TEST(IdLimitFilesTest, TheFormsOfBothFilesAreFixed) {
  const TemporaryFolder folder;
  const Limits limits = {{"t", {.max_ids_per_partition = 7, .max_unique_ids_per_partition = 5}}};
  EXPECT_EQ(read_bytes(write_id_limits(folder / "a", limits)),
            "key,values\nt_max_ids,7\nt_max_unique_ids,5\n");
  const ZipFile file(write_id_limits(folder / "a", limits, {.format = "npz", .process = 2}));
  EXPECT_THAT(file.entries(), testing::ElementsAre("t_max_ids.npy", "t_max_unique_ids.npy"));
  const std::string array = file.read("t_max_ids.npy", 1000);
  EXPECT_EQ(array.size(), 136U);
  EXPECT_THAT(array,
              testing::StartsWith(std::string("\x93NUMPY\x01\x00\x76\x00{'descr': '<i8'", 25)));
}

// A matrix has a number for each pair of partitions, and one line for each row.
TEST(IdLimitFilesTest, TheLatestFileOfEachProcessCountsAndMaximaAreTaken) {
  const TemporaryFolder folder;
  write_bytes(folder / "fdo_stats_0_100.csv", "key,values\nt_max_ids,900\n");
  write_bytes(folder / "fdo_stats_0_1000.csv",
              "key,values\r\nt_max_ids,\"1 2 3\n4 50 6\"\r\nt_max_unique_ids,8\r\n"
              "t_required_buffer_size,99999\r\n");
  write_bytes(folder / "fdo_stats_1_20.csv",
              "key,values\nt_max_ids,40\nt_max_unique_ids,[9. 2.]\nu_max_ids,3\nu_max_ids,4\n");
  write_bytes(folder / "fdo_stats_x_20.csv", "damaged");
  write_bytes(folder / "other.csv", "damaged");
  EXPECT_EQ(read_id_limits(folder / "."),
            (Limits{{"t", {.max_ids_per_partition = 50, .max_unique_ids_per_partition = 9}},
                    {"u", {.max_ids_per_partition = 4}}}));
}

// An array as numpy.save writes it: int32 [2, 2], and a float of version 2.
TEST(IdLimitFilesTest, ArraysOfNumPyAreRead) {
  const TemporaryFolder folder;
  const auto array = [](const char* type, const std::string& values, bool wide) {
    std::string header =
        str("{'descr': '", type, "', 'fortran_order': False, 'shape': (2, 2), }\n");
    std::string out =
        wide ? std::string("\x93NUMPY\x02\x00", 8) : std::string("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(header.size());
    out += std::string(wide ? 3 : 1, '\0');
    return out + header + values;
  };
  const std::vector<int32_t> ids = {3, 70000, 2, 1};
  const std::vector<double> unique = {1, 2, 5, 4};
  {
    ZipWriter file(folder / "fdo_stats_3_1.npz");
    file.add("t_max_ids.npy",
             array("<i4", std::string(reinterpret_cast<const char*>(ids.data()), 16), false));
    file.add("t_max_unique_ids.npy",
             array("<f8", std::string(reinterpret_cast<const char*>(unique.data()), 32), true));
    file.finish();
  }
  EXPECT_EQ(read_id_limits(folder / "."),
            (Limits{{"t", {.max_ids_per_partition = 70000, .max_unique_ids_per_partition = 5}}}));
}

TEST(IdLimitFilesTest, ErrorsNameTheFileOrTheArgument) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<IoError>([&] { read_id_limits(folder / "."); }), HasSubstr("no file"));
  EXPECT_THAT(message_of<IoError>([&] { read_id_limits(folder / "missing"); }),
              HasSubstr("missing"));
  for (const char* text : {"", "keys\n", "key,values\nt_max_ids\n", "key,values\nt_max_ids,x\n",
                           "key,values\nt_max_ids,-4\n", "key,values\nt_max_ids,nan\n"}) {
    write_bytes(folder / "fdo_stats_0_1.csv", text);
    EXPECT_THAT(message_of<IoError>([&] { read_id_limits(folder / "."); }),
                HasSubstr("fdo_stats_0_1.csv"))
        << text;
  }
  write_bytes(folder / "fdo_stats_0_2.npz", "damaged");
  EXPECT_THROW(read_id_limits(folder / "."), IoError);
  const Limits limits = {{"t", {}}};
  EXPECT_THROW(write_id_limits(folder / "a", limits, {.format = "json"}), ValueError);
  EXPECT_THROW(write_id_limits(folder / "a", limits, {.process = -1}), ValueError);
  EXPECT_THAT(message_of<ValueError>([&] { write_id_limits(folder / "a", {{"a,b", {}}}); }),
              HasSubstr("'a,b'"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

}  // namespace keel::id_limit_files_test
