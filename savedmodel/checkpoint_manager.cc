#include "savedmodel/checkpoint_manager.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "distribute/fail_together.h"
#include "framework/atomic_file.h"
#include "framework/config.h"
#include "savedmodel/checkpoint_file.h"

namespace keel {
namespace {

namespace fs = std::filesystem;

std::string index_path(const std::string& directory) { return fs::path(directory) / "checkpoint"; }

// Those of the index that are still there.
std::vector<std::string> read_index(const std::string& directory) {
  constexpr int64_t kLongestIndex = 64 << 20;
  const std::string path = index_path(directory);
  if (!fs::exists(path)) return {};
  std::vector<std::string> out;
  try {
    const Config index = parse_json(read_text_file(path, kLongestIndex));
    for (const Config& name : index["all"].items()) {
      const fs::path file = fs::path(directory) / fs::path(name.string()).filename();
      if (fs::exists(file)) out.push_back(file);
    }
  } catch (const ValueError& error) {
    throw IoError(path, ": no index of checkpoints: ", error.what());
  } catch (const TypeError& error) {
    throw IoError(path, ": no index of checkpoints: ", error.what());
  }
  return out;
}

CheckpointManagerOptions checked(CheckpointManagerOptions options) {
  if (options.max_to_keep < 0) {
    throw ValueError("CheckpointManager: max_to_keep must not be negative, received ",
                     options.max_to_keep);
  }
  if (options.checkpoint_name.empty() || options.checkpoint_name.find('/') != std::string::npos) {
    throw ValueError("CheckpointManager: checkpoint_name must be a file's name, received '",
                     options.checkpoint_name, "'");
  }
  return options;
}

}  // namespace

CheckpointManager::CheckpointManager(Checkpoint checkpoint, std::string directory,
                                     CheckpointManagerOptions options)
    : checkpoint_(std::move(checkpoint)),
      directory_(std::move(directory)),
      options_(checked(std::move(options))) {
  distribute::fail_together(distribute::processes(), "CheckpointManager", [&] {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (!fs::is_directory(directory_)) {
      throw IoError(directory_, ": no folder can be made: ", error.message());
    }
    checkpoints_ = read_index(directory_);
  });
  if (distribute::processes().size() > 1) take_up_the_index_of_rank_0();
}

// The folder of another process may look older, if a file system between them is slow.
void CheckpointManager::take_up_the_index_of_rank_0() {
  std::string lines;
  for (const std::string& path : checkpoints_) lines += path + '\n';
  std::istringstream first(
      distribute::gather_texts(distribute::processes(), "CheckpointManager", lines)[0]);
  checkpoints_.clear();
  for (std::string path; std::getline(first, path);) checkpoints_.push_back(path);
}

void CheckpointManager::write_index(const std::vector<std::string>& paths) const {
  Config::List names;
  for (const std::string& path : paths) names.push_back(fs::path(path).filename().string());
  const Config latest = names.back();
  write_file_atomically(
      index_path(directory_),
      to_json(Config::dict({{"latest", latest}, {"all", Config(std::move(names))}})) + "\n");
}

std::string CheckpointManager::save(int64_t step) {
  std::string path = fs::path(directory_) / str(options_.checkpoint_name, "-", step, ".h5");
  checkpoint_.write(path, step);
  std::vector<std::string> kept = checkpoints_;
  std::erase(kept, path);
  kept.push_back(path);
  const int64_t surplus =
      options_.max_to_keep == 0 ? 0 : static_cast<int64_t>(kept.size()) - options_.max_to_keep;
  const auto first = kept.begin() + std::max<int64_t>(0, surplus);
  const std::vector<std::string> dropped(kept.begin(), first);
  kept.erase(kept.begin(), first);
  distribute::fail_together(distribute::processes(), "CheckpointManager.save", [&] {
    if (distribute::processes().rank() != 0) return;
    write_index(kept);
    for (const std::string& old : dropped) remove_checkpoint(old);
  });
  checkpoints_ = std::move(kept);
  return path;
}

std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  if (checkpoints_.empty()) return std::nullopt;
  return checkpoints_.back();
}

RestoreStatus CheckpointManager::restore(const std::string& path,
                                         const RestoreOptions& options) const {
  return checkpoint_.restore(path, options);
}

std::optional<RestoreStatus> CheckpointManager::restore_or_initialize(
    const RestoreOptions& options) const {
  if (checkpoints_.empty()) return std::nullopt;
  return restore(checkpoints_.back(), options);
}

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const std::vector<std::string> all = read_index(directory);
  if (all.empty()) return std::nullopt;
  return all.back();
}

}  // namespace keel
