// Callback: base class of objects that fit, evaluate and predict notify (keras.callbacks.Callback).
// ResumePoint: the epoch and step at which fit resumes. History: the logs of each epoch of fit
// (keras.callbacks.History).
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/handle.h>
#include <keel/framework/tensor.h>
#include <keel/layers/training/compile/step_data.h>

namespace keel {

class Model;

class Callback;

// Describes the run that is about to start.
struct CallbackParams {
  int64_t epochs = 1;                     // end of the range of epochs; see FitOptions
  std::optional<int64_t> steps = {};      // steps per epoch, if known
  bool validates = false;                 // true if any epoch is followed by a validation
  std::vector<Callback*> callbacks = {};  // all callbacks of the run, in the user's order
};

// Receives the events of a run. Epochs and batches count from 0. Logs of a batch are the values of
// the epoch so far, without metrics whose results are costly (Metric::costly_result). All members
// are called on the thread that called fit, outside the replicas, so they may read and assign the
// model's weights. An exception ends fit.
class Callback {
 public:
  virtual ~Callback() = default;

  // Called by fit().
  virtual void on_train_begin() {}
  virtual void on_train_end(const Logs&) {}
  virtual void on_epoch_begin(int64_t /*epoch*/) {}
  // `logs` includes the validation values and values added by earlier callbacks. Values added here
  // are visible to later callbacks and in the history.
  virtual void on_epoch_end(int64_t /*epoch*/, Logs&) {}
  virtual void on_train_batch_begin(int64_t /*batch*/) {}
  virtual void on_train_batch_end(int64_t /*batch*/, const Logs&) {}

  // Called by evaluate() and by the validation inside fit().
  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs&) {}
  virtual void on_test_batch_begin(int64_t /*batch*/) {}
  virtual void on_test_batch_end(int64_t /*batch*/, const Logs&) {}

  // Called by predict().
  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(int64_t /*batch*/) {}
  virtual void on_predict_batch_end(int64_t /*batch*/) {}

  // Returns true for a callback that must run after all other callbacks of the run.
  virtual bool runs_last() const { return false; }
  // Returns true for a callback that handles NaN losses. A step whose loss is NaN then leaves the
  // trained weights and the metrics unchanged instead of ending fit with an error.
  virtual bool tolerates_nan() const { return false; }

  // Returns, by name, the state that a resumed run needs in addition to the callback's options;
  // used by callbacks that write backups. set_state() is called after on_train_begin() with the
  // state of a callback of the same class. That state has at least the names that state() returns
  // at that time.
  using State = std::map<std::string, Tensor>;
  // Returns the current state.
  virtual State state() const { return {}; }
  // Continues from the state of an earlier run.
  virtual void set_state(const State&) {}

  // Called before all other members. The model outlives the run.
  void set_model(Model* model) { model_ = model; }
  void set_params(const CallbackParams& params) { params_ = params; }

 protected:
  Model& model() const;  // throws RuntimeError before set_model()
  const CallbackParams& params() const { return params_; }  // parameters of the current run

 private:
  Model* model_ = nullptr;
  CallbackParams params_;
};

using CallbackHandle = Handle<Callback>;

// Creates a callback of a user-defined class: fit(data, {.callbacks = {make_callback<Mine>(3)}}).
template <std::derived_from<Callback> T, class... Args>
Handle<T> make_callback(Args&&... args) {
  return Handle<T>(kAdopt, make_owned<T>(std::forward<Args>(args)...));
}

// Set by a callback to make fit resume.
struct ResumePoint {
  int64_t epoch = 0;  // first epoch to run; may be one past the last epoch
  int64_t step = 0;   // first step of that epoch; the batches before it are skipped
  // Restores all state. Called once the model is built. If `step` > 0, it is called after the
  // callbacks' on_epoch_begin(); otherwise before it.
  std::function<void()> restore = {};
};

// Holds the values of each log name over the epochs that ran.
class History {
 public:
  // Adds the logs of an epoch. Epochs may have different names.
  void append(int64_t epoch, const Logs& logs);

  const std::vector<int64_t>& epochs() const { return epochs_; }  // numbers of the epochs that ran
  // Returns the values of `name` over the epochs; NaN for an epoch without that name. Throws
  // ValueError, listing the known names, if no epoch has it.
  const std::vector<double>& operator[](const std::string& name) const;
  bool contains(const std::string& name) const { return values_.contains(name); }
  // Returns all log names, sorted.
  std::vector<std::string> names() const;
  // Returns the logs of the last epoch; empty before the first.
  const Logs& last() const { return last_; }

  // Writes a CSV file with one line per epoch. The first column is "epoch", counted from 0 as
  // CSVLogger does; the others are the values, "NA" where one is missing. Throws IoError if the
  // file cannot be written.
  void save_csv(const std::filesystem::path& path) const;

 private:
  std::vector<int64_t> epochs_;
  std::map<std::string, std::vector<double>> values_;
  Logs last_;
};

}  // namespace keel
