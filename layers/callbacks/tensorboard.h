// TensorBoard: writes logs and weights to files that TensorBoard shows (keras.callbacks).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <variant>

#include <keel/layers/callbacks/event_file.h>
#include <keel/layers/training/callback.h>

namespace keel {

struct TensorBoardOptions {
  std::filesystem::path log_dir = "logs";
  int64_t histogram_freq = 0;  // epochs from one histogram of the weights to the next; 0: none
  bool write_graph = true;     // has no effect: no graph is written
  // "epoch": values of epochs alone; "batch" or a number: those of every batch, or of one of so
  // many, too.
  std::variant<std::string, int64_t> update_freq = "epoch";
};

// Event files in <log_dir>/train and <log_dir>/validation, new ones for each fit:
//   train       "epoch_<name>" for the logs of each epoch, "epoch_learning_rate"; "batch_<name>" by
//               the number of the batch, counted from 1 over all epochs of the fit;
//               "<layer>/<weight>/histogram"
//   validation  "epoch_<name>" for the logs "val_<name>"; "evaluation_<name>_vs_iterations" for
//               evaluate and each validation, by the optimizer's steps
// What an epoch wrote is on the disk when it ends. In a job of several processes rank 0 writes.
// ValueError for another update_freq and for a negative histogram_freq; IoError if a file cannot be
// written.
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
  // The file of a folder, made when there is something for it.
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
  const int64_t batches_between_;  // 0: no values of batches
  Writer train_, validation_;
  int64_t batches_ = 0;
};

namespace callbacks {
using TensorBoard = Handle<TensorBoardCallback>;
}

}  // namespace keel
