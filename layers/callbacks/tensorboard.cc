#include <keel/distribute/process_group.h>
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
  if (options_.histogram_freq < 0) {
    throw ValueError("TensorBoard: histogram_freq must not be negative, received ",
                     options_.histogram_freq);
  }
}

TensorBoardCallback::~TensorBoardCallback() = default;

void TensorBoardCallback::on_train_begin() {
  train_->close();
  validation_->close();
  batches_ = 0;
}

void TensorBoardCallback::on_train_end(const Logs&) {
  train_->close();
  validation_->close();
}

void TensorBoardCallback::on_train_batch_end(int64_t, const Logs& logs) {
  ++batches_;
  if (!writes() || batches_between_ == 0 || batches_ % batches_between_ != 0) return;
  for (const auto& [name, value] : logs) {
    train_->file().add_scalar("batch_" + name, value, batches_);
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
    if (model().optimizer() != nullptr) {
      trained["learning_rate"] = model().optimizer()->learning_rate();
    }
    for (const auto& [name, value] : trained) {
      train_->file().add_scalar("epoch_" + name, value, epoch);
    }
  }
  if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) add_histograms(epoch);
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
      train_->file().add_histogram(str(layer->name(), "/", path, "/histogram"), values, epoch);
    });
  }
}

Callback::State TensorBoardCallback::state() const {
  return {{kBatches, Tensor::scalar<int64_t>(batches_)}};
}

void TensorBoardCallback::set_state(const State& state) {
  batches_ = state_value("TensorBoard", state, kBatches).item<int64_t>();
}

}  // namespace keel
