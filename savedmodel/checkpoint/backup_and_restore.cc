#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <filesystem>
#include <memory>
#include <typeinfo>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/internal/temporary_file.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/training/internal/per_replica_values.h>
#include <keel/layers/training/model.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>
#include <keel/savedmodel/checkpoint/saving_callbacks.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {
namespace {

namespace fs = std::filesystem;

constexpr char kCaller[] = "BackupAndRestore";
constexpr char kName[] = "backup";
constexpr char kEpoch[] = "epoch", kStep[] = "step", kBatches[] = "batches", kSaved[] = "saved";
constexpr char kTraining[] = "training/", kReplicas[] = "replicas/", kCallbacks[] = "callbacks/";
constexpr char kClasses[] = "callback_classes/";

using Values = std::map<std::string, Tensor>;

void write_values(const std::string& path, const Values& values) {
  Hdf5Writer file(path);
  int64_t i = 0;
  for (const auto& [key, value] : values) {
    const std::string dataset = absl::StrCat("/entries/", i++);
    file.write(dataset, value);
    file.write_attribute(dataset, "key", key, Hdf5Writer::Charset::kUtf8);
  }
  file.commit({.seal = true});
}

Values read_values(const std::string& path) {
  check_seal(path);
  const Hdf5File file(path);
  Values out;
  for (const std::string& name : file.children("/entries")) {
    const std::string dataset = "/entries/" + name;
    out[file.string_attribute(dataset, "key")] = file.read(dataset);
  }
  return out;
}

int64_t integer(const Values& values, const char* key) {
  const auto it = values.find(key);
  if (it == values.end()) {
    throw IoError(kCaller, ": the backup has no value '", key,
                  "'; delete the backup and train from the start");
  }
  return it->second.item<int64_t>();
}

// Returns the values whose keys begin with `prefix`, with the prefix removed.
Values part(const Values& values, const std::string& prefix) {
  Values out;
  for (const auto& [key, value] : values) {
    if (key.starts_with(prefix)) out[key.substr(prefix.size())] = value;
  }
  return out;
}

// Returns the variables that have a separate value in each replica, by their position among the
// model's variables.
std::map<std::string, Variable> own_of_replicas(const Model& model) {
  std::map<std::string, Variable> out;
  if (model.strategy().num_replicas_in_sync() == 1) return out;
  size_t i = 0;
  for (const Variable& variable : model.variables()) {
    const std::string key = std::to_string(i++);
    const bool shared = variable.synchronization() == VariableSynchronization::kShared;
    if (!variable.is_virtual() && !shared) out.emplace(key, variable);
  }
  return out;
}

std::string class_of(const Callback& callback) {
  const char* const mangled = typeid(callback).name();
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
}

bool is_first() { return distribute::processes().rank() == 0; }

// Returns true if a signal has ended the run. All processes get the same answer.
bool ended_by_signal(const std::vector<Callback*>& callbacks) {
  return std::ranges::any_of(callbacks, [](const Callback* callback) {
    const auto* const terminate = dynamic_cast<const TerminateOnSignalCallback*>(callback);
    return terminate != nullptr && terminate->signal();
  });
}

}  // namespace

BackupAndRestoreCallback::BackupAndRestoreCallback(Options options) : options_(std::move(options)) {
  if (options_.backup_dir.empty()) throw ValueError(kCaller, ": backup_dir is required");
  if (options_.save_freq && *options_.save_freq < 1) {
    throw ValueError(kCaller, ": save_freq must be positive, received ", *options_.save_freq);
  }
}

// Returns the path of the file, next to a checkpoint, of the values that checkpoints do not
// contain. The file is written before its checkpoint, so that every checkpoint in the index has
// one.
std::string BackupAndRestoreCallback::progress_path(const std::string& checkpoint) const {
  return fs::path(options_.backup_dir) / ("progress-" + fs::path(checkpoint).filename().string());
}

void BackupAndRestoreCallback::on_train_begin() {
  CheckpointItems items;
  items.model =
      LayerHandle<Layer>(kAdopt, std::static_pointer_cast<Layer>(model().shared_from_this()));
  items.optimizers.emplace("optimizer", OptimizerHandle(kAdopt, model().optimizer()));
  checkpoints_.emplace(Checkpoint(std::move(items)), options_.backup_dir,
                       CheckpointManagerOptions{.max_to_keep = options_.double_checkpoint ? 2 : 1,
                                                .checkpoint_name = kName});
  batches_ = 0;
  saved_ = 0;
  const std::optional<std::string> latest = checkpoints_->latest_checkpoint();
  if (!latest) return;
  Values progress;
  distribute::run_collectively(distribute::processes(), kCaller,
                               [&] { progress = read_values(progress_path(*latest)); });
  model().set_resume_point(
      {.epoch = integer(progress, kEpoch),
       .step = integer(progress, kStep),
       .restore = [this, path = *latest, progress] { restore(path, progress); }});
}

void BackupAndRestoreCallback::on_epoch_end(int64_t epoch, Logs&) {
  // An epoch that a signal has interrupted is not finished; on_train_batch_end has saved the
  // position in it.
  if (!options_.save_freq && !ended_by_signal(params().callbacks)) save(epoch + 1, 0);
}

void BackupAndRestoreCallback::on_train_batch_end(int64_t batch, const Logs&) {
  ++batches_;
  const bool due = options_.save_freq && batches_ % *options_.save_freq == 0;
  if (due || ended_by_signal(params().callbacks)) save(epoch_, batch + 1);
}

BackupAndRestoreCallback::Values BackupAndRestoreCallback::progress(int64_t epoch,
                                                                    int64_t step) const {
  Values out = {{kEpoch, Tensor::scalar(epoch)},
                {kStep, Tensor::scalar(step)},
                {kBatches, Tensor::scalar(batches_)},
                {kSaved, Tensor::scalar(saved_)}};
  // At the start of an epoch the metrics are reset, so only unfinished epochs save them.
  if (step > 0) {
    for (const auto& [key, value] : model().training_state()) out[kTraining + key] = value;
  }
  for (const auto& [key, variable] : own_of_replicas(model())) {
    out[kReplicas + key] = values_of_replicas(model().strategy(), variable);
  }
  for (size_t i = 0; i < params().callbacks.size(); ++i) {
    const Values state = params().callbacks[i]->state();
    if (state.empty()) continue;
    out[absl::StrCat(kClasses, i)] = Tensor::scalar(class_of(*params().callbacks[i]));
    for (const auto& [key, value] : state) out[absl::StrCat(kCallbacks, i, "/", key)] = value;
  }
  return out;
}

void BackupAndRestoreCallback::save(int64_t epoch, int64_t step) {
  ++saved_;
  const Values values = progress(epoch, step);
  const std::string name = absl::StrCat(kName, "-", saved_, ".h5");
  distribute::run_collectively(distribute::processes(), kCaller, [&] {
    if (is_first()) write_values(progress_path(name), values);
  });
  checkpoints_->save(saved_);
  remove_stale_progress();
}

// Returns the saved state of each callback. Throws ValueError if the backup does not match the
// callbacks.
std::vector<BackupAndRestoreCallback::Values> BackupAndRestoreCallback::states_for_callbacks(
    const Values& progress) const {
  const auto& callbacks = params().callbacks;
  const auto refuse = [&](size_t i, const std::string& what) {
    throw ValueError(
        kCaller, ": ", options_.backup_dir,
        " holds the backup of a run with other callbacks; the first difference is at callback ",
        i + 1, ": ", what, "; pass the same callbacks or another backup_dir");
  };
  std::vector<Values> out;
  for (size_t i = 0; i < callbacks.size(); ++i) {
    out.push_back(part(progress, absl::StrCat(kCallbacks, i, "/")));
    const std::string name = class_of(*callbacks[i]);
    const Values now = callbacks[i]->state();
    if (now.empty() != out.back().empty()) {
      refuse(i, absl::StrCat("this run has ", name, " with", now.empty() ? "out" : "", " a state"));
    }
    if (now.empty()) continue;
    const auto saved = progress.find(absl::StrCat(kClasses, i));
    const std::string was =
        saved == progress.end() ? "of an unknown class" : saved->second.item<std::string>();
    if (was != name) refuse(i, absl::StrCat("the backup has ", was, ", this run has ", name));
    for (const auto& entry : now) {
      if (!out.back().contains(entry.first)) {
        refuse(i, absl::StrCat(name, " has no '", entry.first, "' in the backup"));
      }
    }
  }
  for (const auto& [i, name] : part(progress, kClasses)) {
    const size_t at = std::stoul(i);
    if (at >= callbacks.size())
      refuse(at, absl::StrCat("the backup has ", name.item<std::string>(), ", this run has none"));
  }
  return out;
}

void BackupAndRestoreCallback::restore(const std::string& checkpoint, const Values& progress) {
  const auto& callbacks = params().callbacks;
  const std::vector<Values> states = states_for_callbacks(progress);
  const Values of_replicas = part(progress, kReplicas);
  const auto own = own_of_replicas(model());
  if (!std::ranges::equal(
          own, of_replicas, {}, [](const auto& e) { return e.first; },
          [](const auto& e) { return e.first; })) {
    throw ValueError(kCaller, ": ", options_.backup_dir,
                     " holds the backup of another model or of another number of replicas; pass "
                     "another backup_dir");
  }
  checkpoints_->restore(checkpoint);
  for (const auto& [key, variable] : own) {
    set_values_of_replicas(model().strategy(), variable, of_replicas.at(key));
  }
  if (integer(progress, kStep) > 0) model().set_training_state(part(progress, kTraining));
  for (size_t i = 0; i < callbacks.size(); ++i) {
    if (!states[i].empty()) callbacks[i]->set_state(states[i]);
  }
  batches_ = integer(progress, kBatches);
  saved_ = integer(progress, kSaved);
}

void BackupAndRestoreCallback::remove_stale_progress() const {
  if (!is_first()) return;
  std::vector<std::string> kept;
  for (const std::string& path : checkpoints_->checkpoints()) kept.push_back(progress_path(path));
  for (const std::string& name : file_names(options_.backup_dir)) {
    const std::string path = fs::path(options_.backup_dir) / name;
    const bool is_progress = name.starts_with("progress-");
    if (is_progress && std::ranges::find(kept, path) == kept.end()) remove_file(path);
  }
}

void BackupAndRestoreCallback::on_train_end(const Logs&) {
  if (!options_.delete_checkpoint || !is_first() || ended_by_signal(params().callbacks)) return;
  // Removes the oldest checkpoint first, and the index before the newest one. An interrupted
  // removal then leaves the newest checkpoint, which is from the end of the training, or none. An
  // index without its files would be an error.
  const std::string index = (fs::path(options_.backup_dir) / "checkpoint").string();
  const std::vector<std::string>& all = checkpoints_->checkpoints();
  for (const std::string& path : all) {
    if (path == all.back()) remove_file(index);
    remove_checkpoint(path);
    remove_file(progress_path(path));
  }
  if (all.empty()) remove_file(index);
  std::error_code not_empty;
  fs::remove(options_.backup_dir, not_empty);
}

}  // namespace keel
