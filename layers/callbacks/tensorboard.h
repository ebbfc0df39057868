// TensorBoard: writes logs and weights to files for TensorBoard (keras.callbacks.TensorBoard).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <variant>

#include <keel/layers/callbacks/event_file.h>
#include <keel/layers/training/callback.h>

namespace keel {

// Options of TensorBoard.
struct TensorBoardOptions {
  std::filesystem::path log_dir = "logs";
  int64_t histogram_freq = 0;  // write weight histograms every that many epochs; 0: never
  bool write_graph = true;     // has no effect: no graph is written
  // "epoch": write values of epochs only; "batch" or n: also write values of every batch or of
  // every n-th batch.
  std::variant<std::string, int64_t> update_freq = "epoch";
};

// Writes event files to <log_dir>/train and <log_dir>/validation, new ones for each fit:
//   train       "epoch_<name>" for the logs of each epoch, "epoch_learning_rate"; "batch_<name>" by
//               the number of the batch, counted from 1 over all epochs of the fit;
//               "<layer>/<weight>/histogram"
//   validation  "epoch_<name>" for the logs "val_<name>"; "evaluation_<name>_vs_iterations" for
//               evaluate and each validation, by the optimizer's steps
// Files are flushed at the end of each epoch. In a job of several processes rank 0 writes. Throws
// ValueError for an unknown update_freq and for a negative histogram_freq, and IoError if a file
// cannot be written.
class TensorBoardCallback final : public Callback {
 public:
  using Options = TensorBoardOptions;
  explicit TensorBoardCallback(Options options);

  void on_train_begin() override;
  void on_train_end(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_test_end(const Logs& logs) override;
  State state() const override;
  void set_state(const State& state) override;

 private:
  // The event file of a folder, created when the first value is added.
  class Writer {
   public:
    explicit Writer(std::filesystem::path folder) : folder_(std::move(folder)) {}
    EventFile& file();
    void flush();
    void close();

   private:
    const std::filesystem::path folder_;
    std::unique_ptr<EventFile> file_;
  };

  void add_histograms(int64_t epoch);

  const Options options_;
  const int64_t batches_between_;  // 0: no values of batches are written
  Writer train_, validation_;
  int64_t batches_ = 0;
};

namespace callbacks {
using TensorBoard = Handle<TensorBoardCallback>;
}

}  // namespace keel
