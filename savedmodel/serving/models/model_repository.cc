#include <keel/savedmodel/serving/models/model_repository.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include <keel/framework/base/parallel.h>
#include <keel/savedmodel/serving/base/log.h>
#include <keel/savedmodel/serving/models/internal/model_record.h>
#include <keel/savedmodel/serving/models/table_promoter.h>
#include <keel/savedmodel/serving/models/version_loader.h>
#include <keel/savedmodel/serving/models/version_policy.h>
#include <keel/savedmodel/serving/models/version_unloader.h>

namespace keel::serving {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRetryOfYoung = std::chrono::seconds(1);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns ", 1073741824 bytes mapped, 0 copied" and the reasons for copies, for the log.
std::string described(const MappedTables* tables) {
  if (tables == nullptr) return "";
  int64_t mapped = 0, resident = 0;
  std::string reasons;
  for (const MappedTables::Table& table : tables->tables()) {
    if (table.obstacle.empty()) (table.promoted ? resident : mapped) += table.bytes;
    if (!table.obstacle.empty())
      absl::StrAppend(&reasons, " (", table.name, ": ", table.obstacle, ")");
  }
  std::string out = absl::StrCat(", ", mapped, " bytes mapped, ");
  if (resident > 0) absl::StrAppend(&out, resident, " moved to memory, ");
  return out + absl::StrCat(tables->copied_bytes(), " copied") + reasons;
}

void lower_priority() {
  constexpr int kLowest = 19;
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest) != 0) {
    log_warning("cannot lower the priority of a loading thread");
  }
}

}  // namespace

const char* name_of(VersionState state) {
  switch (state) {
    case VersionState::kStart:
      return "START";
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kAvailable:
      return "AVAILABLE";
    case VersionState::kUnloading:
      return "UNLOADING";
    case VersionState::kEnd:
      return "END";
  }
  return "";
}

VersionHandle ServedModel::latest() const {
  return versions.empty() ? nullptr : versions.rbegin()->second;
}

VersionHandle ServedModel::version(int64_t number) const {
  const auto at = versions.find(number);
  return at == versions.end() ? nullptr : at->second;
}

VersionHandle ServedModel::labelled(std::string_view label) const {
  const auto at = labels.find(label);
  return at == labels.end() ? nullptr : version(at->second);
}

const ServedModel* Catalog::find(std::string_view name) const {
  const auto at = models.find(name);
  return at == models.end() ? nullptr : &at->second;
}

struct ModelRepository::State {
  State(const RepositoryOptions& given, ServerMetrics& server)
      : options(given), server_metrics(server), unloader(std::make_shared<VersionUnloader>()) {}

  const RepositoryOptions options;
  ServerMetrics& server_metrics;
  std::shared_ptr<VersionUnloader> unloader;

  // Guards the decisions. Never held while a model is loaded or freed.
  mutable std::mutex mutex;
  std::condition_variable wake;
  std::map<std::string, ModelRecord, std::less<>> entries;
  bool configured = false, scan_now = false, stopping = false, was_ready = false;
  uint64_t ended = 0;
  std::deque<VersionLoad> loaded;
  std::vector<std::pair<std::string, int64_t>> freed;
  const Clock::time_point start = Clock::now();

  // Guards only the pointer.
  mutable std::mutex catalog_mutex;
  std::shared_ptr<const Catalog> catalog = std::make_shared<const Catalog>();

  std::mutex queue_mutex;
  std::condition_variable queue_wake;
  std::deque<VersionLoad> queue;
  bool queue_stopping = false;

  std::optional<TablePromoter> promoter;  // with tables "auto"
  std::vector<std::thread> loaders;
  std::thread decider;

  bool any_available() {
    const std::lock_guard lock(catalog_mutex);
    return std::ranges::any_of(catalog->models,
                               [](const auto& model) { return !model.second.versions.empty(); });
  }
  void run();
  void run_loader();
  void scan_folders(std::unique_lock<std::mutex>& lock);
  void decide(ModelRecord& entry);
  void start_load(ModelRecord& entry, VersionRecord& record);
  void finish_load(VersionLoad& load);
  void finish_free(const std::string& model, int64_t number);
  void set_state(const ModelRecord& entry, VersionRecord& record, VersionState state,
                 const std::string& detail = {});
  void publish();
  Clock::time_point next_event() const;
};

ModelRepository::ModelRepository(const RepositoryOptions& options, ServerMetrics& metrics)
    : state_(std::make_unique<State>(options, metrics)) {
  State& s = *state_;
  s.unloader->on_free = [&s](const std::string& model, int64_t number) {
    {
      const std::lock_guard lock(s.mutex);
      s.freed.emplace_back(model, number);
    }
    s.wake.notify_one();
  };
  if (options.tables == "auto") s.promoter.emplace();
  for (int i = 0; i < options.load_threads; ++i) {
    s.loaders.emplace_back([&s] { s.run_loader(); });
  }
  s.decider = std::thread([&s] { s.run(); });
}

ModelRepository::~ModelRepository() {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.stopping = true;
  }
  s.wake.notify_one();
  s.decider.join();
  {
    const std::lock_guard lock(s.queue_mutex);
    s.queue_stopping = true;
  }
  s.queue_wake.notify_all();
  for (std::thread& loader : s.loaders) loader.join();
  s.promoter.reset();
  s.loaded.clear();
  s.queue.clear();
  s.catalog.reset();
  s.entries.clear();
  s.unloader.reset();  // frees what is left, before the state that it reports to
}

std::shared_ptr<const Catalog> ModelRepository::catalog() const {
  const std::lock_guard lock(state_->catalog_mutex);
  return state_->catalog;
}

// ---- configuration

std::vector<std::string> ModelRepository::configure(const std::vector<ModelConfig>& configs) {
  State& s = *state_;
  std::vector<std::string> errors;
  {
    const std::lock_guard lock(s.mutex);
    for (auto& [name, entry] : s.entries) {
      entry.removed = std::ranges::none_of(
          configs, [&](const ModelConfig& config) { return config.name == entry.config.name; });
    }
    for (const ModelConfig& config : configs) {
      const auto [at, added] = s.entries.try_emplace(config.name);
      ModelRecord& entry = at->second;
      ModelConfig next = config;
      for (const auto& [label, number] : config.labels) {
        const auto record = entry.records.find(number);
        const bool available = record != entry.records.end() && record->second.version != nullptr;
        const auto old = entry.config.labels.find(label);
        const bool same = old != entry.config.labels.end() && old->second == number;
        if (added || !s.configured || available || same || s.options.allow_labels_of_unavailable) {
          continue;
        }
        errors.push_back(absl::StrCat("model ", config.name, ": label '", label,
                                      "' is refused, because ", "version ", number,
                                      " is not available; the old labels stay"));
        next.labels = entry.config.labels;
        break;
      }
      if (!added && next.base_path != entry.config.base_path) {
        log_info("model ", config.name, ": the base path is now ", next.base_path);
        leave_base_path(entry);
      }
      entry.config = std::move(next);
    }
    s.configured = true;
    s.scan_now = true;
    s.publish();
  }
  s.wake.notify_one();
  return errors;
}

// ---- deciding

void ModelRepository::State::run() {
  std::unique_lock lock(mutex);
  Clock::time_point next_scan = Clock::time_point::max();
  while (!stopping) {
    const Clock::time_point until = std::min(next_scan, next_event());
    const auto awaited = [&] { return stopping || scan_now || !loaded.empty() || !freed.empty(); };
    if (until == Clock::time_point::max()) {
      wake.wait(lock, awaited);
    } else {
      wake.wait_until(lock, until, awaited);
    }
    if (stopping) return;
    while (!loaded.empty()) {
      VersionLoad done = std::move(loaded.front());
      loaded.pop_front();
      finish_load(done);
    }
    for (const auto& [model, number] : std::exchange(freed, {})) finish_free(model, number);
    if (scan_now || Clock::now() >= next_scan) {
      scan_now = false;
      const auto period = std::chrono::duration<double>(options.poll_seconds);
      next_scan = options.poll_seconds > 0
                      ? Clock::now() + std::chrono::duration_cast<Clock::duration>(period)
                      : Clock::time_point::max();
      scan_folders(lock);
    }
    for (auto& [_, entry] : entries) decide(entry);
    std::erase_if(entries, [](const auto& named) {
      const ModelRecord& entry = named.second;
      return entry.removed && std::ranges::all_of(entry.records, [](const auto& record) {
               const VersionState state = record.second.status.state;
               return state == VersionState::kEnd || state == VersionState::kStart;
             });
    });
  }
}

Clock::time_point ModelRepository::State::next_event() const {
  Clock::time_point out = Clock::time_point::max();
  for (const auto& [_, entry] : entries) {
    for (const auto& [number, record] : entry.records) {
      if (record.waiting && record.wanted) out = std::min(out, record.next_try);
    }
  }
  return out;
}

// Reads the folders of all models. The lock is not held meanwhile, because requests for the state
// of models and for metrics need it, and a file system may be slow.
void ModelRepository::State::scan_folders(std::unique_lock<std::mutex>& lock) {
  std::vector<FolderScan> scans;
  for (const auto& [name, entry] : entries) {
    if (entry.removed) continue;
    FolderScan& scan = scans.emplace_back(FolderScan{.model = name, .config = entry.config});
    for (const auto& [number, record] : entry.records) {
      if (watches_files(record)) scan.fingerprints[number];
    }
  }
  lock.unlock();
  for (FolderScan& scan : scans) scan.read();
  lock.lock();
  for (const FolderScan& scan : scans) {
    const auto at = entries.find(scan.model);
    // configure() may have changed the model.
    if (at == entries.end() || at->second.removed) continue;
    if (at->second.config.base_path == scan.config.base_path) apply_scan(scan, at->second);
  }
}

void ModelRepository::State::decide(ModelRecord& entry) {
  std::map<int64_t, VersionFacts> facts;
  for (const auto& [number, record] : entry.records) {
    facts[number] = {
        .listed = record.listed,
        .failed = record.status.state == VersionState::kEnd && record.status.code != Code::kOk,
        .waiting = record.waiting,
        .available = record.version != nullptr};
  }
  const std::set<int64_t> aspired =
      entry.removed ? std::set<int64_t>() : aspired_versions(entry.config.policy, facts);
  std::set<int64_t> unloaded = superseded_versions(aspired, facts);
  for (auto at = entry.records.begin(); at != entry.records.end();) {
    auto& [number, record] = *at;
    const VersionState state = record.status.state;
    if (record.version != nullptr && (entry.removed || unloaded.contains(number))) {
      set_state(entry, record, VersionState::kUnloading);
      const VersionHandle released = std::exchange(record.version, nullptr);
      publish();
    } else if (aspired.contains(number)) {
      const bool ended_well = state == VersionState::kEnd && record.status.code == Code::kOk;
      if (ended_well) {
        record = {.status = {.number = number}, .folder = record.folder};
        set_state(entry, record, VersionState::kStart);
      }
      if (record.status.state == VersionState::kStart && Clock::now() >= record.next_try) {
        start_load(entry, record);
      }
    } else if (state == VersionState::kStart) {
      record.wanted = false;
      if (!record.listed) {
        at = entry.records.erase(at);
        continue;
      }
    }
    ++at;
  }
  forget_old(entry);
}

void ModelRepository::State::start_load(ModelRecord& entry, VersionRecord& record) {
  record.waiting = false;
  record.wanted = true;
  set_state(entry, record, VersionState::kLoading);
  {
    const std::lock_guard lock(queue_mutex);
    queue.push_back({.model = entry.config.name,
                     .base_path = entry.config.base_path,
                     .folder = record.folder,
                     .number = record.status.number,
                     .metrics = entry.metrics});
  }
  queue_wake.notify_one();
}

void ModelRepository::State::finish_load(VersionLoad& load) {
  const auto at = entries.find(load.model);
  if (at == entries.end()) return;
  ModelRecord& entry = at->second;
  const auto found = entry.records.find(load.number);
  if (found == entry.records.end() || found->second.status.state != VersionState::kLoading ||
      load.base_path != entry.config.base_path) {
    return;
  }
  VersionRecord& record = found->second;
  record.fingerprint = load.fingerprint;
  record.load_seconds = load.seconds;
  if (load.version != nullptr) {
    const bool swaps =
        !entry.previous.empty() || std::ranges::any_of(entry.records, [](const auto& other) {
          return other.second.version != nullptr;
        });
    if (swaps) record.swap_seconds = seconds_since(record.seen);
    record.version = std::move(load.version);
    record.failures = 0;
    record.status.code = Code::kOk;
    record.status.message.clear();
    entry.metrics->loads_ok.add();
    const std::shared_ptr<MappedTables>& tables = record.version->tables();
    set_state(entry, record, VersionState::kAvailable,
              absl::StrCat(" in ", load.seconds, " s", described(tables.get())));
    if (promoter && tables->mapped_bytes() > 0) promoter->add(tables, record.version);
    const auto released = std::exchange(entry.previous, {});
    publish();
    return;
  }
  record.status.code = load.code;
  record.status.message = load.message;
  if (!load.young) ++record.failures;
  if (record.failures > options.max_retries) {
    entry.metrics->loads_failed.add();
    set_state(entry, record, VersionState::kEnd, ": " + load.message);
    return;
  }
  entry.metrics->loads_retried.add();
  const std::string reason = std::exchange(record.status.message, {});
  record.status.code = Code::kOk;
  record.waiting = true;
  record.next_try =
      Clock::now() + (load.young ? std::chrono::duration_cast<Clock::duration>(kRetryOfYoung)
                                 : std::chrono::microseconds(options.retry_micros));
  if (load.young && options.poll_seconds > 0) {
    record.next_try = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(options.poll_seconds));
  }
  set_state(entry, record, VersionState::kStart, ", will be tried again: " + reason);
}

void ModelRepository::State::finish_free(const std::string& model, int64_t number) {
  const auto at = entries.find(model);
  if (at == entries.end()) return;
  const auto record = at->second.records.find(number);
  if (record == at->second.records.end()) return;
  if (record->second.status.state != VersionState::kUnloading) return;
  set_state(at->second, record->second, VersionState::kEnd);
}

void ModelRepository::State::set_state(const ModelRecord& entry, VersionRecord& record,
                                       VersionState state, const std::string& detail) {
  record.status.state = state;
  if (state == VersionState::kEnd) record.ended = ++ended;
  const bool failed = state == VersionState::kEnd && record.status.code != Code::kOk;
  const std::string line =
      absl::StrCat("model ", entry.config.name, " version ", record.status.number, ": ",
                   name_of(state), detail, " (after ", seconds_since(record.since), " s)");
  record.since = Clock::now();
  if (failed) {
    log_error(line);
  } else {
    log_info(line);
  }
}

void ModelRepository::State::publish() {
  auto next = std::make_shared<Catalog>();
  next->ready = configured;
  for (const auto& [name, entry] : entries) {
    if (entry.removed) continue;
    ServedModel served = {.name = name, .metrics = entry.metrics};
    for (const auto& [number, record] : entry.records) {
      if (record.version != nullptr) served.versions.emplace(number, record.version);
    }
    if (served.versions.empty()) served.versions = entry.previous;
    served.labels.insert(entry.config.labels.begin(), entry.config.labels.end());
    next->ready = next->ready && !served.versions.empty();
    next->models.emplace(name, std::move(served));
  }
  if (next->ready && !was_ready) {
    was_ready = true;
    log_info("ready after ", seconds_since(start), " s");
  }
  std::shared_ptr<const Catalog> old = std::move(next);
  {
    const std::lock_guard lock(catalog_mutex);
    catalog.swap(old);
  }
}

// ---- loading

void ModelRepository::State::run_loader() {
  lower_priority();
  const SerialSection serial;  // the worker threads have normal priority
  while (true) {
    VersionLoad next;
    {
      std::unique_lock lock(queue_mutex);
      queue_wake.wait(lock, [&] { return queue_stopping || !queue.empty(); });
      if (queue_stopping) return;
      next = std::move(queue.front());
      queue.pop_front();
    }
    next.try_first = any_available();
    load_version(next, options, unloader);
    {
      const std::lock_guard lock(mutex);
      loaded.push_back(std::move(next));
    }
    wake.notify_one();
  }
}

// ---- reading

std::optional<ModelStatus> ModelRepository::status(std::string_view model) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->entries.find(model);
  if (at == state_->entries.end() || at->second.removed) return {};
  return status_of(at->second);
}

std::vector<ModelStatus> ModelRepository::statuses() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ModelStatus> out;
  for (const auto& [_, entry] : state_->entries) {
    if (!entry.removed) out.push_back(status_of(entry));
  }
  return out;
}

std::map<std::string, std::vector<VersionFigures>> ModelRepository::figures() const {
  const std::lock_guard lock(state_->mutex);
  std::map<std::string, std::vector<VersionFigures>> out;
  for (const auto& [name, entry] : state_->entries) {
    for (const VersionRecord* record : listed_records(entry)) {
      out[name].push_back({.version = record->version,
                           .status = record->status,
                           .load_seconds = record->load_seconds,
                           .swap_seconds = record->swap_seconds});
    }
  }
  return out;
}

}  // namespace keel::serving
