#include <keel/savedmodel/serving/models/version_loader.h>

#include <absl/strings/match.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <keel/savedmodel/serving/models/version_folder.h>
#include <keel/savedmodel/serving/models/warm_up.h>

namespace keel::serving {
namespace {

// A version whose files are younger may still be being copied.
constexpr double kYoungSeconds = 10;

Code code_of_load_error() {
  try {
    throw;
  } catch (const NotImplementedError&) {
    return Code::kUnimplemented;
  } catch (const ValueError&) {
    return Code::kInvalidArgument;
  } catch (const TypeError&) {
    return Code::kInvalidArgument;
  } catch (...) {
    return Code::kInternal;
  }
}

// Removes the base path, which clients must not see, from a message.
std::string relative_to(const std::string& base_path, std::string message) {
  const std::string prefix = base_path.ends_with('/') ? base_path : base_path + "/";
  for (size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix, at)) {
    message.erase(at, prefix.size());
  }
  return message;
}

// Loads a model. With `resident`, no table stays in its file.
std::unique_ptr<ModelVersion> make_version(const VersionLoad& load, const std::string& path,
                                           bool resident) {
  const auto make = [&](const std::shared_ptr<MappedTables>& tables) {
    return std::make_unique<ModelVersion>(load.model, load.number, path, load.metrics, tables);
  };
  const auto tables = std::make_shared<MappedTables>();
  std::unique_ptr<ModelVersion> made = make(tables);
  if (!resident) return made;
  tables->promote();
  const bool moved = std::ranges::all_of(tables->tables(), [](const MappedTables::Table& table) {
    return table.promoted || !table.obstacle.empty();
  });
  // promote() leaves memory to spare. If there is too little, tables are read as other weights are.
  if (moved) return made;
  return make(nullptr);
}

}  // namespace

void load_version(VersionLoad& load, const RepositoryOptions& options,
                  const std::shared_ptr<VersionUnloader>& unloader) {
  const auto begin = std::chrono::steady_clock::now();
  const FolderState before = state_of_folder(load.folder);
  load.fingerprint = before.fingerprint;
  std::string file;
  try {
    file = model_file_in(load.folder);
    if (load.try_first && options.try_version) options.try_version(load.folder);
    const std::string path = (std::filesystem::path(load.folder) / file).string();
    auto* const made = make_version(load, path, options.tables == "resident").release();
    std::weak_ptr<VersionUnloader> frees = unloader;
    VersionHandle version(made, [frees](const ModelVersion* used) {
      if (const std::shared_ptr<VersionUnloader> there = frees.lock()) {
        there->free(used);
      } else {
        delete used;
      }
    });
    if (options.warm_up) {
      warm_up(*version, load.folder, options.run_warm_up, options.replay_warm_up);
    }
    made->set_batching(options.batching);
    // The file is opened several times, so a file that was replaced meanwhile may have given the
    // configuration of one model and the weights of another.
    if (state_of_folder(load.folder).fingerprint != before.fingerprint) {
      throw IoError("its files have changed while they were read");
    }
    load.version = std::move(version);
  } catch (...) {
    load.code = code_of_load_error();
    const std::string reason = relative_to(load.base_path, current_error().message);
    const std::string name = std::filesystem::path(load.folder).filename().string() + "/" + file;
    load.message =
        !absl::StrContains(reason, name) && !file.empty() ? one_line(name + ": " + reason) : reason;
    const FolderState after = state_of_folder(load.folder);
    load.young =
        std::abs(after.youngest_seconds) < kYoungSeconds || after.fingerprint != before.fingerprint;
    load.fingerprint = after.fingerprint;
  }
  load.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace keel::serving
