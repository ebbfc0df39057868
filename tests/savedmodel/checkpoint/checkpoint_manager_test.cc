#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <keel/framework/base/internal/temporary_file.h>
#include <keel/framework/config/config.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::checkpoint_manager_test {

using testing_support::message_of;
using testing_support::names_in;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

using Paths = std::vector<std::string>;

// One counter, as the only item of a checkpoint.
struct Counter {
  Variable value{Tensor::scalar<int64_t>(0), {.name = "value", .trainable = false}};
  Checkpoint checkpoint() const { return Checkpoint({.variables = {{"value", value}}}); }
  void set(int64_t to) const { value.assign(Tensor::scalar(to)); }
  int64_t get() const { return value.read().item<int64_t>(); }
};

TEST(CheckpointManagerTest, KeepsTheNewestFew) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager manager(counter.checkpoint(), folder / "run", {.max_to_keep = 2});
  EXPECT_EQ(manager.latest_checkpoint(), std::nullopt);
  for (int64_t step : {10, 20, 30})
    EXPECT_EQ(manager.save(step), folder / str("run/ckpt-", step, ".h5"));
  EXPECT_EQ(manager.checkpoints(), (Paths{folder / "run/ckpt-20.h5", folder / "run/ckpt-30.h5"}));
  EXPECT_EQ(manager.latest_checkpoint(), folder / "run/ckpt-30.h5");
  EXPECT_EQ(latest_checkpoint(folder / "run"), folder / "run/ckpt-30.h5");
  EXPECT_FALSE(std::filesystem::exists(folder / "run/ckpt-10.h5"));
  const Config index = parse_json(read_bytes(folder / "run/checkpoint"));
  EXPECT_EQ(index["latest"].string(), "ckpt-30.h5");
  EXPECT_EQ(index["all"], Config::list({"ckpt-20.h5", "ckpt-30.h5"}));
}

TEST(CheckpointManagerTest, ZeroKeepsAll) {
  const TemporaryFolder folder;
  CheckpointManager manager(Counter().checkpoint(), folder.path(),
                            {.max_to_keep = 0, .checkpoint_name = "c"});
  for (int64_t step = 0; step < 7; ++step) manager.save(step);
  EXPECT_EQ(manager.checkpoints().size(), 7U);
  EXPECT_EQ(manager.checkpoints()[0], folder / "c-0.h5");
}

TEST(CheckpointManagerTest, ANewProcessContinuesFromTheNewest) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager first(counter.checkpoint(), folder.path(), {.max_to_keep = 2});
  EXPECT_FALSE(first.restore_or_initialize().has_value());
  for (int64_t step : {1, 2}) {
    counter.set(step * 100);
    first.save(step);
  }
  counter.set(-1);
  CheckpointManager second(counter.checkpoint(), folder.path(), {.max_to_keep = 2});
  const std::optional<RestoreStatus> status = second.restore_or_initialize();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->step, 2);
  EXPECT_EQ(counter.get(), 200);
  EXPECT_EQ(second.restore(second.checkpoints()[0]).step, 1);
  EXPECT_EQ(counter.get(), 100);
  second.save(3);
  EXPECT_EQ(second.checkpoints(), (Paths{folder / "ckpt-2.h5", folder / "ckpt-3.h5"}));
}

TEST(CheckpointManagerTest, AStepThatIsSavedAgainIsTheNewest) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager manager(counter.checkpoint(), folder.path());
  manager.save(1);
  manager.save(2);
  counter.set(5);
  manager.save(1);
  EXPECT_EQ(manager.checkpoints(), (Paths{folder / "ckpt-2.h5", folder / "ckpt-1.h5"}));
  counter.set(0);
  manager.restore_or_initialize();
  EXPECT_EQ(counter.get(), 5);
}

// Parts as a job of several processes leaves them.
TEST(CheckpointManagerTest, PartsAreRemovedWithTheirCheckpoint) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager manager(counter.checkpoint(), folder.path(), {.max_to_keep = 1});
  const auto leave = [&](const std::string& name) { write_bytes(folder / name, "rows"); };
  const auto is_there = [&](const std::string& name) {
    return std::filesystem::exists(folder / name);
  };
  leave("ckpt-1.h5.part-1-0123");
  leave("ckpt-12.h5.part-1-0123");
  manager.save(1);
  EXPECT_FALSE(is_there("ckpt-1.h5.part-1-0123")) << "a part of an older file is left";
  leave("ckpt-1.h5.part-2-4567");
  manager.save(2);
  EXPECT_FALSE(is_there("ckpt-1.h5"));
  EXPECT_FALSE(is_there("ckpt-1.h5.part-2-4567"));
  EXPECT_TRUE(is_there("ckpt-12.h5.part-1-0123"));
}

// The state after a process is killed between writing the two files.
TEST(CheckpointManagerTest, AFileThatTheIndexDoesNotNameIsNotTakenForTheNewest) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager manager(counter.checkpoint(), folder.path());
  manager.save(1);
  counter.checkpoint().write(folder / "ckpt-2.h5", 2);
  write_bytes(folder / "ckpt-3.h5.tmp-1-0", "half a file");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ckpt-1.h5");
}

// Leaves a temporary file of `path`, like a process that is killed.
void leave_temporary(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    new TemporaryFile(path);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST(CheckpointManagerTest, TheNextJobRemovesFilesOfAnInterruptedSave) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager(counter.checkpoint(), folder.path()).save(1);
  counter.checkpoint().write(folder / "ckpt-2.h5", 2);  // complete, but not in the index yet
  leave_temporary(folder / "ckpt-2.h5");
  leave_temporary(folder / "checkpoint");
  leave_temporary(folder / "ckpt-3.h5");
  write_bytes(folder / "ckpt-3.h5.part-1-0123", "rows");
  write_bytes(folder / "ckpt-4.h5.part-1", "rows");
  counter.checkpoint().write(folder / "ckpt-9.h5", 9);  // added by the user
  counter.checkpoint().write(folder / "best-2.h5", 2);
  const CheckpointManager next(counter.checkpoint(), folder.path());
  EXPECT_EQ(names_in(folder.path()), (Paths{"best-2.h5", "checkpoint", "ckpt-1.h5", "ckpt-9.h5"}));
  EXPECT_EQ(next.checkpoints(), (Paths{folder / "ckpt-1.h5"}));
}

TEST(CheckpointManagerTest, FilesOfARunningSaveAreKept) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager(counter.checkpoint(), folder.path()).save(1);
  const TemporaryFile running(folder / "ckpt-2.h5");
  counter.checkpoint().write(folder / "ckpt-2.h5", 2);
  write_bytes(folder / "ckpt-2.h5.part-1-0123", "rows");
  const Paths before = names_in(folder.path());
  const CheckpointManager other(counter.checkpoint(), folder.path());
  EXPECT_EQ(names_in(folder.path()), before);
}

TEST(CheckpointManagerTest, AFolderWithoutIndexIsListed) {
  const TemporaryFolder folder;
  const Counter counter;
  {
    CheckpointManager manager(counter.checkpoint(), folder.path());
    for (int64_t step : {9, 10, 11}) {
      counter.set(step * 100);
      manager.save(step);
    }
  }
  std::filesystem::remove(folder / "checkpoint");
  const std::string last = read_bytes(folder / "ckpt-11.h5");
  write_bytes(folder / "ckpt-11.h5", last.substr(0, last.size() - 1));
  write_bytes(folder / "ckpt-12.h5", "no checkpoint");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ckpt-10.h5");
  CheckpointManager manager(counter.checkpoint(), folder.path());
  EXPECT_EQ(manager.checkpoints(), (Paths{folder / "ckpt-9.h5", folder / "ckpt-10.h5"}));
  manager.restore_or_initialize();
  EXPECT_EQ(counter.get(), 1000);
  manager.save(20);
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ckpt-20.h5");
}

TEST(CheckpointManagerTest, AnIndexOfMissingFilesDoesNotHideOthers) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager(counter.checkpoint(), folder.path()).save(1);
  std::filesystem::rename(folder / "ckpt-1.h5", folder / "ckpt-5.h5");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ckpt-5.h5");
}

TEST(CheckpointManagerTest, AMissingFileIsForgotten) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager manager(counter.checkpoint(), folder.path());
  manager.save(1);
  manager.save(2);
  std::filesystem::remove(folder / "ckpt-2.h5");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ckpt-1.h5");
}

TEST(CheckpointManagerTest, AnIndexWithoutAnyCheckpointIsAnError) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager(counter.checkpoint(), folder.path()).save(7);
  std::filesystem::remove(folder / "ckpt-7.h5");
  const std::string error = message_of<IoError>([&] { latest_checkpoint(folder.path()); });
  EXPECT_NE(error.find("ckpt-7.h5"), std::string::npos) << error;
  EXPECT_THROW(CheckpointManager(counter.checkpoint(), folder.path()), IoError);
}

TEST(CheckpointManagerTest, ADamagedNewestCheckpointNamesTheNewestGoodOne) {
  const TemporaryFolder folder;
  const Counter counter;
  {
    CheckpointManager manager(counter.checkpoint(), folder.path());
    for (int64_t step = 1; step <= 3; ++step) {
      counter.set(step);
      manager.save(step);
    }
  }
  for (const char* file : {"ckpt-2.h5", "ckpt-3.h5"}) write_bytes(folder / file, "damaged");
  const auto restored = [&] {
    return CheckpointManager(counter.checkpoint(), folder.path()).restore_or_initialize();
  };
  const std::string error = message_of<IoError>([&] { restored(); });
  EXPECT_NE(error.find(folder / "ckpt-1.h5"), std::string::npos) << error;
  EXPECT_NE(error.find("remove " + (folder / "ckpt-3.h5")), std::string::npos) << error;
  for (const char* file : {"ckpt-2.h5", "ckpt-3.h5"}) std::filesystem::remove(folder / file);
  EXPECT_EQ(restored()->step, 1);
  EXPECT_EQ(counter.get(), 1);
}

TEST(CheckpointManagerTest, TwoJobsInOneFolderAreNoticed) {
  const TemporaryFolder folder;
  const Counter counter;
  CheckpointManager first(counter.checkpoint(), folder.path());
  CheckpointManager second(counter.checkpoint(), folder.path());
  first.save(1);
  first.save(2);
  const std::string error = message_of<IoError>([&] { second.save(1); });
  EXPECT_NE(error.find("another job"), std::string::npos) << error;
  EXPECT_EQ(second.checkpoints(), Paths());
  first.save(3);
  std::filesystem::remove(folder / "checkpoint");
  first.save(4);
  EXPECT_EQ(first.checkpoints().size(), 4U);
}

TEST(CheckpointManagerTest, ErrorsOfTheFileSystemAreIoErrors) {
  const TemporaryFolder folder;
  const std::string too_long = folder / std::string(300, 'x');
  EXPECT_THROW(latest_checkpoint(too_long), IoError);
  EXPECT_THROW(CheckpointManager(Counter().checkpoint(), too_long), IoError);
}

TEST(CheckpointManagerTest, ABrokenIndexIsAnError) {
  const TemporaryFolder folder;
  for (const char* text : {"", "{", "[]", "{\"all\": 3}", "{\"latest\": \"x\"}"}) {
    write_bytes(folder / "checkpoint", text);
    EXPECT_THROW(latest_checkpoint(folder.path()), IoError) << text;
    EXPECT_THROW(CheckpointManager(Counter().checkpoint(), folder.path()), IoError) << text;
  }
}

TEST(CheckpointManagerTest, InvalidOptionsAreErrors) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = Counter().checkpoint();
  EXPECT_THROW(CheckpointManager(checkpoint, folder.path(), {.max_to_keep = -1}), ValueError);
  EXPECT_THROW(CheckpointManager(checkpoint, folder.path(), {.checkpoint_name = ""}), ValueError);
  EXPECT_THROW(CheckpointManager(checkpoint, folder.path(), {.checkpoint_name = "a/b"}),
               ValueError);
  write_bytes(folder / "file", "x");
  EXPECT_THROW(CheckpointManager(checkpoint, folder / "file"), IoError);
}

}  // namespace keel::checkpoint_manager_test
