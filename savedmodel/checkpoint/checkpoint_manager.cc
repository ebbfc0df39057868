#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/temporary_file.h>
#include <keel/framework/config/config.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>

namespace keel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestIndex = 64 << 20;

std::string index_path(const std::string& directory) { return fs::path(directory) / "checkpoint"; }

// Returns the step of a file "<name>-<step>.h5". An empty `name` matches any name.
std::optional<int64_t> step_of(const std::string& file, const std::string& name) {
  constexpr std::string_view kSuffix = ".h5";
  if (!file.ends_with(kSuffix)) return std::nullopt;
  const size_t end = file.size() - kSuffix.size();
  const size_t dash = file.rfind('-', end);
  if (dash == std::string::npos || (!name.empty() && file.substr(0, dash) != name)) {
    return std::nullopt;
  }
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(&file[dash] + 1, &file[end], step);
  if (error != std::errc() || stop != &file[end] || step < 0) return std::nullopt;
  return step;
}

// Returns the complete checkpoints of a folder in ascending order of step.
std::vector<std::string> list_checkpoints(const std::string& directory, const std::string& name) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& file : file_names(directory)) {
    const std::optional<int64_t> step = step_of(file, name);
    if (!step) continue;
    const std::string path = fs::path(directory) / file;
    try {
      const CheckpointReader reader(path);
      found.emplace_back(*step, path);
    } catch (const Error&) {  // incomplete, damaged, or a file of another kind
    }
  }
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (auto& [step, path] : found) out.push_back(std::move(path));
  return out;
}

// The names in the index of a folder.
struct CheckpointIndex {
  std::vector<std::string> found;    // paths of the files that exist
  std::vector<std::string> missing;  // names of those that do not
};

CheckpointIndex read_index(const std::string& directory) {
  constexpr const char* kRemedy = "; remove this file to search the folder for checkpoints instead";
  const std::string path = index_path(directory);
  if (!path_exists(path)) return {};
  CheckpointIndex out;
  try {
    const Config index = parse_json(read_text_file(path, kLongestIndex));
    for (const Config& name : index["all"].items()) {
      const fs::path file = fs::path(directory) / fs::path(name.string()).filename();
      if (path_exists(file)) {
        out.found.push_back(file);
      } else {
        out.missing.push_back(file.filename());
      }
    }
  } catch (const ValueError& error) {
    throw IoError(path, ": not an index of checkpoints: ", error.what(), kRemedy);
  } catch (const TypeError& error) {
    throw IoError(path, ": not an index of checkpoints: ", error.what(), kRemedy);
  }
  return out;
}

std::vector<std::string> find_checkpoints(const std::string& directory, const std::string& name) {
  const CheckpointIndex index = read_index(directory);
  if (!index.found.empty()) return index.found;
  std::vector<std::string> out = list_checkpoints(directory, name);
  // Without this error, the job would start anew and later replace what may still be restored.
  if (out.empty() && !index.missing.empty()) {
    throw IoError(index_path(directory), ": names ", index.missing.back(),
                  ", which is missing, and there is no other checkpoint; restore the file from a "
                  "copy, or remove the index to start anew");
  }
  return out;
}

// Returns the contents of the index, or an empty text if there is none.
std::string index_text(const std::string& directory) {
  const std::string path = index_path(directory);
  return path_exists(path) ? read_text_file(path, kLongestIndex) : std::string();
}

// Returns the newest of the checkpoints before the last one that is complete.
std::optional<std::string> last_good(const std::vector<std::string>& checkpoints) {
  for (auto at = checkpoints.rbegin() + 1; at < checkpoints.rend(); ++at) {
    try {
      const CheckpointReader reader(*at);
      return *at;
    } catch (const Error&) {  // damaged, too
    }
  }
  return std::nullopt;
}

// Removes files that are not needed; a failure is ignored.
void try_remove_checkpoint(const std::string& path) {
  try {
    remove_checkpoint(path);
  } catch (const IoError&) {  // the next job removes them
  }
}

CheckpointManagerOptions checked(CheckpointManagerOptions options) {
  if (options.max_to_keep < 0) {
    throw ValueError("CheckpointManager: max_to_keep must not be negative, received ",
                     options.max_to_keep);
  }
  if (options.checkpoint_name.empty() || absl::StrContains(options.checkpoint_name, '/')) {
    throw ValueError(
        "CheckpointManager: checkpoint_name must be a file name without '/', received '",
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
  distribute::run_collectively(distribute::processes(), "CheckpointManager", [&] {
    create_folder(directory_);
    if (distribute::processes().rank() != 0) return;  // other processes receive the list of rank 0
    index_text_ = index_text(directory_);
    checkpoints_ = find_checkpoints(directory_, options_.checkpoint_name);
    remove_temporary_files();
  });
  if (distribute::processes().size() > 1) adopt_index_of_rank_0();
}

// On a slow network file system, other processes may see an older state of the folder.
void CheckpointManager::adopt_index_of_rank_0() {
  std::string lines;
  for (const std::string& path : checkpoints_) lines += path + '\n';
  checkpoints_ = absl::StrSplit(
      distribute::gather_texts(distribute::processes(), "CheckpointManager", lines)[0], '\n',
      absl::SkipEmpty());
}

void CheckpointManager::write_index(const std::vector<std::string>& paths) {
  Config::List names;
  for (const std::string& path : paths) names.push_back(fs::path(path).filename().string());
  const Config latest = names.back();
  const std::string text =
      to_json(Config::dict({{"latest", latest}, {"all", Config(std::move(names))}})) + "\n";
  write_file_atomically(index_path(directory_), text);
  index_text_ = text;
}

// An index that this job has neither read nor written shows that another one saves here, too. Each
// of them would remove checkpoints of the other.
void CheckpointManager::check_only_job() const {
  const std::string text = index_text(directory_);
  if (text.empty() || text == index_text_) return;
  throw IoError(index_path(directory_),
                ": another job has saved into this folder meanwhile; end one of the jobs, or use a "
                "folder for each");
}

// A temporary file of a checkpoint that no process holds open shows that saving or removing the
// checkpoint was interrupted.
void CheckpointManager::remove_temporary_files() const {
  const auto is_kept = [&](const std::string& file) {
    return std::ranges::find(checkpoints_, (fs::path(directory_) / file).string()) !=
           checkpoints_.end();
  };
  std::set<std::string> in_use;
  for (const auto& [file, used] : temporary_targets(directory_)) {
    const std::string path = fs::path(directory_) / file;
    if (used) {
      in_use.insert(file);
      continue;
    }
    remove_stale_temporaries(path);
    if (step_of(file, options_.checkpoint_name) && !is_kept(file)) try_remove_checkpoint(path);
  }
  for (const std::string& file : file_names(directory_)) {
    const std::string owner = file.substr(0, file.find(".part-"));
    const bool is_part = owner.size() < file.size() && step_of(owner, options_.checkpoint_name);
    if (!is_part || in_use.contains(owner) || path_exists(fs::path(directory_) / owner)) continue;
    try_remove_checkpoint(fs::path(directory_) / owner);
  }
}

std::string CheckpointManager::save(int64_t step) {
  std::string path =
      fs::path(directory_) / absl::StrCat(options_.checkpoint_name, "-", step, ".h5");
  // Marks the files of this step for remove_temporary_files() until the index lists them.
  std::optional<TemporaryFile> marker;
  distribute::run_collectively(distribute::processes(), "CheckpointManager.save", [&] {
    if (distribute::processes().rank() == 0) check_only_job();
    marker.emplace(path);
  });
  checkpoint_.write(path, step);
  std::vector<std::string> kept = checkpoints_;
  std::erase(kept, path);
  kept.push_back(path);
  const int64_t surplus =
      options_.max_to_keep == 0 ? 0 : static_cast<int64_t>(kept.size()) - options_.max_to_keep;
  const auto first = kept.begin() + std::max<int64_t>(0, surplus);
  const std::vector<std::string> dropped(kept.begin(), first);
  kept.erase(kept.begin(), first);
  distribute::run_collectively(distribute::processes(), "CheckpointManager.save", [&] {
    if (distribute::processes().rank() != 0) return;
    std::vector<std::unique_ptr<const TemporaryFile>> markers;
    try {
      for (const std::string& old : dropped) {
        markers.push_back(std::make_unique<const TemporaryFile>(old));
      }
      write_index(kept);
    } catch (const Error&) {
      // The index still names a replaced checkpoint, so it must not be removed.
      const bool was_there = std::ranges::find(checkpoints_, path) != checkpoints_.end();
      if (!was_there) try_remove_checkpoint(path);
      throw;
    }
    // Files are removed only after the index no longer names them.
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
  try {
    return restore(checkpoints_.back(), options);
  } catch (const IoError& error) {
    const std::optional<std::string> good = last_good(checkpoints_);
    if (!good) throw;
    throw IoError(error.what(), "; the newest good checkpoint is ", *good, ": remove ",
                  checkpoints_.back(), " to continue from it");
  }
}

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const std::vector<std::string> all = find_checkpoints(directory, "");
  if (all.empty()) return std::nullopt;
  return all.back();
}

}  // namespace keel
