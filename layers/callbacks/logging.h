// Callbacks that write the logs of training to files: CSVLogger and TensorBoard.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <keel/layers/training/callback.h>

namespace keel {

// Options of CSVLogger.
struct CSVLoggerOptions {
  std::filesystem::path filename = {};  // required
  char separator = ',';                 // between the fields of a line
  bool append = false;  // keep the file's content; the header is written only if the file is empty
};

// Writes one line with the logs of each epoch to a CSV file (keras.callbacks.CSVLogger). The
// columns are "epoch" and the names in the logs of the first epoch. If validation first runs in a
// later epoch, "val_" columns for these names follow. A value missing in an epoch is "NA". Numbers
// have as many digits as needed to read back the same value. Each line is flushed to the file when
// the epoch ends. In a job of several processes rank 0 writes. Throws IoError if the file cannot be
// written.
class CSVLoggerCallback final : public Callback {
 public:
  using Options = CSVLoggerOptions;
  explicit CSVLoggerCallback(Options options) : options_(std::move(options)) {}

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs&) override;

 private:
  const Options options_;
  bool header_written_ = false;
  std::vector<std::string> names_;
  std::ofstream file_;
};

// Options of TensorBoard.
struct TensorBoardOptions {
  std::filesystem::path log_dir = "logs";  // created if it does not exist
  int64_t histogram_freq = 0;           // write weight histograms every that many epochs; 0: never
  bool write_images = false;            // also write weights as images every histogram_freq epochs
  bool write_steps_per_second = false;  // write the steps per second of epochs and batches
  // "epoch": write values of epochs only; "batch" or n: also write values of every batch or of
  // every n-th batch.
  std::variant<std::string, int64_t> update_freq = "epoch";
  // The batches to profile, counted from 1 over all epochs: one, or the first and the last; 0:
  // none.
  std::variant<int64_t, std::pair<int64_t, int64_t>> profile_batch = int64_t{0};
  int64_t embeddings_freq = 0;  // write embedding tables every that many epochs; 0: never
  // Files with a line for each row of a table, for the labels of points: by the layer's name, or
  // one under the empty name for all layers.
  std::map<std::string, std::string> embeddings_metadata = {};
};

// Writes logs and weights for TensorBoard (keras.callbacks.TensorBoard), but not the model's graph.
// The event files are in <log_dir>/train and <log_dir>/validation, new ones for each fit:
//   train       "epoch_<name>" for the logs of each epoch, "epoch_learning_rate"; "batch_<name>" by
//               the number of the batch, counted from 1 over all epochs of the fit;
//               "<layer>/<weight>/histogram" and "<layer>/<weight>/image"; steps per second as
//               "epoch_steps_per_second" and "batch_steps_per_second"
//   validation  "epoch_<name>" for the logs "val_<name>"; "evaluation_<name>_vs_iterations" for
//               evaluate and each validation, by the optimizer's steps
// An image shows a matrix with its longer side across. Vectors are one pixel high, tensors of rank
// 3 give an image for each position of the last axis (at most 3), and tensors of rank 4 are written
// if their last axis has 1, 3 or 4 positions. 0 is black and 1 is white.
//
// embeddings_freq writes the tables of Embedding layers for the projector: the values of each as
// train/<layer>.tsv and their list as train/projector_config.pbtxt. profile_batch writes
// train/plugins/profile/<first batch>/local.trace.json in Chrome's trace format
// (framework/base/profile.h); it does nothing while the program runs a profile of its own.
//
// Files are flushed at the end of each epoch. In a job of several processes rank 0 writes. Throws
// ValueError for an unknown update_freq, a negative histogram_freq or embeddings_freq and for
// batches to profile that are negative or in the wrong order, and IoError if a file cannot be
// written.
class TensorBoardCallback final : public Callback {
 public:
  using Options = TensorBoardOptions;
  explicit TensorBoardCallback(Options options);
  ~TensorBoardCallback() override;

  void on_train_begin() override;
  void on_train_end(const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_begin(int64_t batch) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_begin(int64_t epoch) override;
  void on_test_end(const Logs& logs) override;
  // Returns and restores the values that a resumed run needs; see Callback.
  State state() const override;
  void set_state(const State& state) override;

 private:
  class Writer;

  using Clock = std::chrono::steady_clock;

  void add_histograms(int64_t epoch);
  void add_images(const std::string& tag, const Tensor& weight, int64_t epoch);
  void write_embeddings();
  void stop_profile();
  void discard_profile();

  const Options options_;
  const int64_t batches_between_;  // 0: no values of batches are written
  const std::unique_ptr<Writer> train_, validation_;
  int64_t batches_ = 0;
  bool profiles_ = false;  // while this callback runs a profile
  int64_t batches_before_epoch_ = 0;
  Clock::time_point batch_began_, epoch_began_;
};

namespace callbacks {
// Handles to the callbacks, under Keras's names.
using CSVLogger = Handle<CSVLoggerCallback>;
using TensorBoard = Handle<TensorBoardCallback>;
}  // namespace callbacks

}  // namespace keel
