#include <limits>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/layers/callbacks/logging.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::csv_logger_test {

using testing_support::read_bytes;
using testing_support::TemporaryFolder;

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
  const TemporaryFolder folder;
  const std::string file = folder / "log.csv";
  run({.filename = file}, {{{"loss", 0.5}, {"auc", 0.1}}, {{"loss", 1.0 / 3}, {"auc", 1e-9}}});
  EXPECT_EQ(read_bytes(file), "epoch,auc,loss\n0,0.1,0.5\n1,1e-09,0.3333333333333333\n");
}

TEST(CSVLoggerTest, ColumnsAreThoseOfTheFirstEpoch) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.csv";
  run({.filename = file, .separator = ';'},
      {{{"loss", 1}}, {{"other", 2}}, {{"loss", std::numeric_limits<double>::quiet_NaN()}}});
  EXPECT_EQ(read_bytes(file), "epoch;loss\n0;1\n1;NA\n2;nan\n");
}

TEST(CSVLoggerTest, AppendsOnRequest) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.csv";
  run({.filename = file, .append = true}, {{{"loss", 1}}});
  run({.filename = file, .append = true}, {{{"loss", 2}}});
  EXPECT_EQ(read_bytes(file), "epoch,loss\n0,1\n0,2\n");
  run({.filename = file}, {{{"loss", 3}}});
  EXPECT_EQ(read_bytes(file), "epoch,loss\n0,3\n");
}

TEST(CSVLoggerTest, LinesAreFlushedImmediately) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.csv";
  const callbacks::CSVLogger logger({.filename = file});
  logger->on_train_begin();
  Logs logs = {{"loss", 1}};
  logger->on_epoch_end(0, logs);
  EXPECT_EQ(read_bytes(file), "epoch,loss\n0,1\n");
}

TEST(CSVLoggerTest, AFileThatCannotBeWrittenIsAnError) {
  const TemporaryFolder folder;
  const callbacks::CSVLogger logger({.filename = folder / "no_such_folder/log.csv"});
  EXPECT_THROW(logger->on_train_begin(), IoError);
}

}  // namespace keel::csv_logger_test
