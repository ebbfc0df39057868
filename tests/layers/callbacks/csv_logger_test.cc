#include <keel/layers/callbacks/csv_logger.h>

#include <fstream>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

namespace keel::csv_logger_test {

std::filesystem::path fresh_file(const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove(file);
  return file;
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

void run(const CSVLoggerOptions& options, const std::vector<Logs>& epochs) {
  const callbacks::CSVLogger logger(options);
  logger->on_train_begin();
  for (size_t i = 0; i < epochs.size(); ++i) {
    Logs logs = epochs[i];
    logger->on_epoch_end(static_cast<int64_t>(i), logs);
  }
  logger->on_train_end({});
}

TEST(CSVLoggerTest, WritesALineForEachEpoch) {
  const auto file = fresh_file("csv_logger_lines.csv");
  run({.filename = file}, {{{"loss", 0.5}, {"auc", 0.1}}, {{"loss", 1.0 / 3}, {"auc", 1e-9}}});
  EXPECT_EQ(text_of(file), "epoch,auc,loss\n0,0.1,0.5\n1,1e-09,0.3333333333333333\n");
}

TEST(CSVLoggerTest, ColumnsAreThoseOfTheFirstEpoch) {
  const auto file = fresh_file("csv_logger_columns.csv");
  run({.filename = file, .separator = ';'},
      {{{"loss", 1}}, {{"other", 2}}, {{"loss", std::numeric_limits<double>::quiet_NaN()}}});
  EXPECT_EQ(text_of(file), "epoch;loss\n0;1\n1;NA\n2;nan\n");
}

TEST(CSVLoggerTest, AppendsOnRequest) {
  const auto file = fresh_file("csv_logger_append.csv");
  run({.filename = file, .append = true}, {{{"loss", 1}}});
  run({.filename = file, .append = true}, {{{"loss", 2}}});
  EXPECT_EQ(text_of(file), "epoch,loss\n0,1\n0,2\n");
  run({.filename = file}, {{{"loss", 3}}});
  EXPECT_EQ(text_of(file), "epoch,loss\n0,3\n");
}

TEST(CSVLoggerTest, LinesAreInTheFileAtOnce) {
  const auto file = fresh_file("csv_logger_flush.csv");
  const callbacks::CSVLogger logger({.filename = file});
  logger->on_train_begin();
  Logs logs = {{"loss", 1}};
  logger->on_epoch_end(0, logs);
  EXPECT_EQ(text_of(file), "epoch,loss\n0,1\n");
}

TEST(CSVLoggerTest, AFileThatCannotBeWrittenIsAnError) {
  const callbacks::CSVLogger logger({.filename = fresh_file("no_such_folder") / "log.csv"});
  EXPECT_THROW(logger->on_train_begin(), IoError);
}

}  // namespace keel::csv_logger_test
