#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/distribute/process_group.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/base/profile.h>
#include <keel/layers/callbacks/internal/event_file.h>
#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/layers/callbacks/logging.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/layers/training/model.h>

namespace keel {
namespace {

constexpr const char* kBatches = "batches";
constexpr std::string_view kValidation = "val_";

bool writes() { return distribute::processes().rank() == 0; }

int64_t batches_between(const TensorBoardOptions& options) {
  if (const auto* every = std::get_if<int64_t>(&options.update_freq)) {
    if (*every >= 1) return *every;
    throw ValueError("TensorBoard: update_freq must be 'epoch', 'batch' or positive, received ",
                     *every);
  }
  const std::string& name = std::get<std::string>(options.update_freq);
  if (name == "epoch") return 0;
  if (name == "batch") return 1;
  throw ValueError("TensorBoard: update_freq must be 'epoch', 'batch' or positive, received '",
                   name, "'");
}

// Returns the first and the last batch to profile, or zeros.
std::pair<int64_t, int64_t> profiled(const TensorBoardOptions& options) {
  std::pair<int64_t, int64_t> out;
  if (const auto* one = std::get_if<int64_t>(&options.profile_batch)) {
    out = {*one, *one};
  } else {
    out = std::get<std::pair<int64_t, int64_t>>(options.profile_batch);
  }
  if (out.first >= 0 && out.first <= out.second) return out;
  throw ValueError(
      "TensorBoard: profile_batch must be a batch or the first and the last of a range,"
      " received ",
      out.first, " and ", out.second);
}

void check_frequency(const char* name, int64_t value) {
  if (value >= 0) return;
  throw ValueError("TensorBoard: ", name, " must not be negative, received ", value);
}

double steps_per_second(int64_t steps, std::chrono::steady_clock::time_point since) {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
  return static_cast<double>(steps) / std::max(time.count(), 1e-9);
}

void write_rows(const Tensor& table, const std::filesystem::path& path) {
  std::ofstream out(path);
  const Tensor floats = table.cast(DType::kFloat32);
  const int64_t dim = table.dim(1);
  for (int64_t i = 0; i < floats.size(); ++i) {
    out << floats.data<float>()[i] << ((i + 1) % dim == 0 ? '\n' : '\t');
  }
  if (!out.flush()) throw IoError(path.string(), ": cannot be written");
}

}  // namespace

// The event file of a folder, created when the first value is added.
class TensorBoardCallback::Writer {
 public:
  explicit Writer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  EventFile& file() {
    if (file_ == nullptr) file_ = std::make_unique<EventFile>(folder_);
    return *file_;
  }
  void flush() {
    if (file_ != nullptr) file_->flush();
  }
  void close() {
    const std::unique_ptr<EventFile> file = std::move(file_);
    if (file != nullptr) file->close();
  }

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<EventFile> file_;
};

TensorBoardCallback::TensorBoardCallback(Options options)
    : options_(std::move(options)),
      batches_between_(batches_between(options_)),
      train_(std::make_unique<Writer>(options_.log_dir / "train")),
      validation_(std::make_unique<Writer>(options_.log_dir / "validation")) {
  check_frequency("histogram_freq", options_.histogram_freq);
  check_frequency("embeddings_freq", options_.embeddings_freq);
  profiled(options_);
}

TensorBoardCallback::~TensorBoardCallback() { discard_profile(); }

void TensorBoardCallback::on_train_begin() {
  discard_profile();
  train_->close();
  validation_->close();
  batches_ = 0;
}

void TensorBoardCallback::on_train_end(const Logs&) {
  stop_profile();
  train_->close();
  validation_->close();
}

void TensorBoardCallback::on_epoch_begin(int64_t) {
  epoch_began_ = Clock::now();
  batches_before_epoch_ = batches_;
}

void TensorBoardCallback::on_train_batch_begin(int64_t) {
  batch_began_ = Clock::now();
  if (!writes() || batches_ + 1 != profiled(options_).first || profile::is_running()) return;
  profiles_ = true;
  profile::start(true);
}

// Ends a profile that an error in a batch left running.
void TensorBoardCallback::discard_profile() {
  if (profiles_) profile::stop();
  profiles_ = false;
}

void TensorBoardCallback::stop_profile() {
  if (!profiles_) return;
  profiles_ = false;
  const profile::Report report = profile::stop();
  const std::filesystem::path folder =
      options_.log_dir / "train" / "plugins" / "profile" / std::to_string(profiled(options_).first);
  create_folder(folder);
  const std::filesystem::path path = folder / "local.trace.json";
  std::ofstream out(path);
  profile::write_chrome_trace(report, out);
  if (!out.flush()) throw IoError(path.string(), ": cannot be written");
}

void TensorBoardCallback::on_train_batch_end(int64_t, const Logs& logs) {
  ++batches_;
  if (batches_ == profiled(options_).second) stop_profile();
  if (!writes() || batches_between_ == 0 || batches_ % batches_between_ != 0) return;
  for (const auto& [name, value] : logs) {
    train_->file().add_scalar("batch_" + name, value, batches_);
  }
  if (options_.write_steps_per_second) {
    train_->file().add_scalar("batch_steps_per_second", steps_per_second(1, batch_began_),
                              batches_);
  }
}

void TensorBoardCallback::on_test_end(const Logs& logs) {
  const std::shared_ptr<Optimizer> optimizer = model().optimizer();
  if (!writes() || optimizer == nullptr) return;
  for (const auto& [name, value] : logs) {
    validation_->file().add_scalar("evaluation_" + name + "_vs_iterations", value,
                                   optimizer->iterations());
  }
  validation_->flush();
}

void TensorBoardCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  if (writes()) {
    Logs trained;
    for (const auto& [name, value] : logs) {
      if (name.starts_with(kValidation)) {
        validation_->file().add_scalar("epoch_" + name.substr(kValidation.size()), value, epoch);
      } else {
        trained[name] = value;
      }
    }
    if (const auto optimizer = model().optimizer(); optimizer != nullptr) {
      const std::vector<OptimizerHandle> several = optimizer->optimizers();
      for (size_t i = 0; i < several.size(); ++i) {
        trained[absl::StrCat("learning_rate_", i)] = several[i]->learning_rate();
      }
      if (several.empty()) trained["learning_rate"] = optimizer->learning_rate();
    }
    if (options_.write_steps_per_second) {
      trained["steps_per_second"] =
          steps_per_second(batches_ - batches_before_epoch_, epoch_began_);
    }
    for (const auto& [name, value] : trained) {
      train_->file().add_scalar("epoch_" + name, value, epoch);
    }
  }
  if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) add_histograms(epoch);
  if (options_.embeddings_freq > 0 && epoch % options_.embeddings_freq == 0) write_embeddings();
  train_->flush();
  validation_->flush();
}

// All processes read the weights, because reading an embedding table is collective.
void TensorBoardCallback::add_histograms(int64_t epoch) {
  for (const LayerHandle<Layer>& layer : model().layers()) {
    for_each_state_entry(*layer, [&](const std::string& path, const StateEntry& entry) {
      if (entry.kind != StateEntry::Kind::kWeight || entry.spec.dtype == DType::kString) return;
      if (entry.any_rows && entry.spec.dtype != DType::kFloat32) return;
      const Tensor values = entry.get();
      if (!writes()) return;
      const std::string name = absl::StrCat(layer->name(), "/", path);
      train_->file().add_histogram(name + "/histogram", values, epoch);
      if (options_.write_images) add_images(name + "/image", values, epoch);
    });
  }
}

void TensorBoardCallback::add_images(const std::string& tag, const Tensor& weight, int64_t epoch) {
  constexpr int64_t kMostImages = 3;
  Tensor image = weight.cast(DType::kFloat32);
  for (int axis = image.rank() - 1; axis >= 0; --axis) {
    if (image.dim(axis) == 1 && image.rank() > 1) image = ops::squeeze(image, axis);
  }
  const auto add = [&](const Tensor& pixels, int64_t number) {
    train_->file().add_image(absl::StrCat(tag, "/", number), pixels, epoch);
  };
  if (image.rank() == 1) return add(ops::reshape(image, {1, image.dim(0), 1}), 0);
  if (image.rank() == 2) {
    if (image.dim(0) > image.dim(1)) image = ops::transpose(image);
    return add(ops::expand_dims(image, 2), 0);
  }
  if (image.rank() == 3) {
    for (int64_t i = 0; i < std::min(kMostImages, image.dim(2)); ++i) {
      add(ops::slice(image, 2, i, 1), i);
    }
    return;
  }
  const int64_t channels = image.rank() == 4 ? image.dim(3) : 0;
  if (channels != 1 && channels != 3 && channels != 4) return;
  for (int64_t i = 0; i < std::min(kMostImages, image.dim(0)); ++i) {
    add(ops::squeeze(ops::slice(image, 0, i, 1), 0), i);
  }
}

// All processes read the tables, because reading is collective.
void TensorBoardCallback::write_embeddings() {
  std::string list;
  const std::filesystem::path folder = options_.log_dir / "train";
  for (const LayerHandle<Layer>& layer : model().layers()) {
    for_each_state_entry(*layer, [&](const std::string& path, const StateEntry& entry) {
      const std::string last = path.substr(path.rfind('/') + 1);
      if (last != "embeddings" || entry.spec.shape.rank() != 2) return;
      const Tensor table = entry.get();
      if (!writes()) return;
      std::string file = layer->name() + (path == last ? "" : "_" + path) + ".tsv";
      std::ranges::replace(file, '/', '_');
      create_folder(folder);
      write_rows(table, folder / file);
      absl::StrAppend(&list, "embeddings {\n  tensor_name: \"", layer->name(), "/", path,
                      "\"\n  tensor_path: \"", file, "\"\n");
      const auto& metadata = options_.embeddings_metadata;
      auto found = metadata.find(layer->name());
      if (found == metadata.end()) found = metadata.find("");
      if (found != metadata.end())
        absl::StrAppend(&list, "  metadata_path: \"", found->second, "\"\n");
      list += "}\n";
    });
  }
  if (!writes()) return;
  create_folder(folder);
  const std::filesystem::path path = folder / "projector_config.pbtxt";
  std::ofstream out(path);
  if (!(out << list).flush()) throw IoError(path.string(), ": cannot be written");
}

Callback::State TensorBoardCallback::state() const {
  return {{kBatches, Tensor::scalar<int64_t>(batches_)}};
}

void TensorBoardCallback::set_state(const State& state) {
  batches_ = state_value("TensorBoard", state, kBatches).item<int64_t>();
}

}  // namespace keel
