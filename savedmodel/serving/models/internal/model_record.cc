#include <keel/savedmodel/serving/models/internal/model_record.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/models/version_folder.h>

namespace keel::serving {
namespace {

constexpr size_t kMostEnded = 16;

}  // namespace

void FolderScan::read() {
  folders = list_versions(config.base_path, warnings);
  if (!folders) return;
  for (auto& [number, fingerprint] : fingerprints) {
    const auto folder = folders->find(number);
    if (folder != folders->end()) fingerprint = state_of_folder(folder->second).fingerprint;
  }
}

bool watches_files(const VersionRecord& record) {
  const bool failed = record.status.state == VersionState::kEnd && record.status.code != Code::kOk;
  return failed || record.waiting || (record.version != nullptr && !record.warned);
}

void apply_scan(const FolderScan& scan, ModelRecord& model) {
  for (const std::string& warning : scan.warnings) log_warning(warning);
  if (!scan.folders) {
    if (!std::exchange(model.unlisted, true)) {
      log_warning("model ", model.config.name, ": folder ", model.config.base_path,
                  " cannot be listed; nothing changes until it can");
    }
    return;
  }
  if (std::exchange(model.unlisted, false)) {
    log_info("model ", model.config.name, ": folder ", model.config.base_path, " can be listed");
  }
  for (auto& [_, record] : model.records) record.listed = false;
  for (const auto& [number, folder] : *scan.folders) {
    auto [at, added] = model.records.try_emplace(number);
    VersionRecord& record = at->second;
    record.listed = true;
    record.folder = folder;
    record.status.number = number;
    const auto fingerprint = scan.fingerprints.find(number);
    if (added || fingerprint == scan.fingerprints.end() || !watches_files(record)) continue;
    if (fingerprint->second == record.fingerprint) continue;
    if (record.version != nullptr) {
      record.warned = true;
      log_warning("model ", model.config.name, " version ", number,
                  ": its files have changed; the server continues with what it has loaded");
    } else if (record.waiting) {
      record.next_try = {};
      record.failures = 0;
    } else {
      record = {.status = {.number = number}, .folder = folder};
    }
  }
  if (model.config.policy.kind != VersionPolicy::Kind::kSpecific) return;
  std::set<int64_t> missing;
  for (int64_t number : model.config.policy.versions) {
    if (!scan.folders->contains(number)) missing.insert(number);
  }
  if (missing != model.missing) {
    for (int64_t number : missing) {
      log_warning("model ", model.config.name, ": version ", number,
                  " of the policy has no folder");
    }
    model.missing = std::move(missing);
  }
}

void leave_base_path(ModelRecord& model) {
  for (auto& [number, record] : model.records) {
    if (record.version != nullptr) model.previous[number] = std::move(record.version);
  }
  model.records.clear();
  model.missing.clear();
  model.unlisted = false;
}

void forget_old(ModelRecord& model) {
  std::vector<std::pair<uint64_t, int64_t>> gone;
  for (const auto& [number, record] : model.records) {
    if (record.status.state == VersionState::kEnd && !record.listed) {
      gone.emplace_back(record.ended, number);
    }
  }
  std::ranges::sort(gone);
  for (size_t i = 0; i + kMostEnded < gone.size(); ++i) model.records.erase(gone[i].second);
}

std::vector<const VersionRecord*> listed_records(const ModelRecord& model) {
  std::vector<uint64_t> ended;
  for (const auto& [_, record] : model.records) {
    if (record.status.state == VersionState::kEnd) ended.push_back(record.ended);
  }
  std::ranges::sort(ended, std::greater());
  const uint64_t oldest = ended.size() > kMostEnded ? ended[kMostEnded - 1] : 0;
  std::vector<const VersionRecord*> out;
  for (auto at = model.records.rbegin(); at != model.records.rend(); ++at) {
    const VersionRecord& record = at->second;
    if (record.status.state == VersionState::kStart && !record.wanted) continue;
    if (record.status.state == VersionState::kEnd && record.ended < oldest) continue;
    out.push_back(&record);
  }
  return out;
}

ModelStatus status_of(const ModelRecord& model) {
  ModelStatus out = {.name = model.config.name};
  for (const VersionRecord* record : listed_records(model)) out.versions.push_back(record->status);
  return out;
}

}  // namespace keel::serving
