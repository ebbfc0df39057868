#include <keel/savedmodel/serving/models/version_folder.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sys/stat.h>

#include <keel/framework/base/errors.h>

namespace keel::serving {
namespace {

namespace fs = std::filesystem;

bool is_model_file(const std::string& name) {
  if (name.ends_with(".weights.h5")) return false;
  return name.ends_with(".keras") || name.ends_with(".h5") || name.ends_with(".hdf5");
}

}  // namespace

std::optional<int64_t> version_of(const std::string& name) {
  const bool digits =
      !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  int64_t out = 0;
  if (!digits || std::from_chars(name.data(), name.data() + name.size(), out).ec != std::errc()) {
    return {};
  }
  return out;
}

std::optional<std::map<int64_t, std::string>> list_versions(const std::string& base_path,
                                                            std::vector<std::string>& warnings) {
  std::error_code error;
  std::map<int64_t, std::string> out;
  fs::directory_iterator entries(base_path, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    const std::optional<int64_t> number = version_of(name);
    std::error_code ignored;
    if (!number || !entries->is_directory(ignored)) continue;
    const auto [at, added] = out.emplace(*number, name);
    if (added) continue;
    warnings.push_back(
        absl::StrCat(base_path, ": folders ", at->second, " and ", name,
                     " are the same version; the one without leading zeros is used"));
    at->second = std::min(at->second, name, [](const std::string& a, const std::string& b) {
      return a.size() < b.size();
    });
  }
  if (error) return {};
  for (auto& [_, name] : out) name = (fs::path(base_path) / name).string();
  return out;
}

std::string model_file_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code ignored;
    if (is_model_file(name) && entries->is_regular_file(ignored)) names.push_back(name);
  }
  if (error) throw IoError(folder, ": cannot be listed: ", error.message());
  std::ranges::sort(names);
  for (const char* preferred : {"model.keras", "model.h5", "model.hdf5"}) {
    if (std::ranges::find(names, preferred) != names.end()) return preferred;
  }
  if (names.size() == 1) return names[0];
  const std::string number = fs::path(folder).filename().string();
  if (names.empty()) {
    throw IoError("folder ", number, " has no model file; it needs model.keras, model.h5 or ",
                  "model.hdf5");
  }
  throw IoError("folder ", number, " has several model files: ", absl::StrJoin(names, ", "));
}

FolderState state_of_folder(const std::string& folder) {
  FolderState out = {.youngest_seconds = 1e9};
  std::vector<std::string> lines;
  std::error_code error;
  const absl::Time now = absl::Now();
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (entries.depth() > 0) entries.disable_recursion_pending();
    struct stat status = {};
    if (stat(entries->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const absl::Duration age = now - absl::TimeFromTimespec(status.st_mtim);
    out.youngest_seconds = std::min(out.youngest_seconds, absl::ToDoubleSeconds(age));
    lines.push_back(str(entries->path().string(), ' ', status.st_size, ' ', status.st_mtim.tv_sec,
                        '.', status.st_mtim.tv_nsec, ' ', status.st_ino));
  }
  std::ranges::sort(lines);
  for (const std::string& line : lines) out.fingerprint += line + "\n";
  return out;
}

}  // namespace keel::serving
