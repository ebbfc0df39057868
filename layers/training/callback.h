// Callback: code that fit, evaluate and predict call as they go (keras.callbacks).
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/handle.h>
#include <keel/framework/tensor.h>
#include <keel/layers/training/compile/logs.h>

namespace keel {

class Model;

class Callback;

// What the run that starts is about.
struct CallbackParams {
  int64_t epochs = 1;
  std::optional<int64_t> steps = {};      // of an epoch, if known
  bool validates = false;                 // after some epochs at least
  std::vector<Callback*> callbacks = {};  // all of the run, in the user's order
};

// Epochs and batches count from 0. Logs of a batch are those of the epoch so far, without metrics
// whose results are costly (Metric::costly_result). All members are called by the thread that
// called fit, outside the replicas, so the model's weights may be read and set. An exception ends
// fit.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void on_train_begin() {}
  virtual void on_train_end(const Logs&) {}
  virtual void on_epoch_begin(int64_t /*epoch*/) {}
  // `logs` has the validation's values too, and what earlier callbacks put in; values added here
  // reach later callbacks and the history.
  virtual void on_epoch_end(int64_t /*epoch*/, Logs&) {}
  virtual void on_train_batch_begin(int64_t /*batch*/) {}
  virtual void on_train_batch_end(int64_t /*batch*/, const Logs&) {}

  // evaluate(), and the validation inside fit.
  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs&) {}
  virtual void on_test_batch_begin(int64_t /*batch*/) {}
  virtual void on_test_batch_end(int64_t /*batch*/, const Logs&) {}

  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(int64_t /*batch*/) {}
  virtual void on_predict_batch_end(int64_t /*batch*/) {}

  // For callbacks that must see what all others have done: these are called before them.
  virtual bool runs_last() const { return false; }
  // For callbacks that watch for losses that are NaN: a step then leaves the trained weights and
  // the metrics alone where it would end fit with an error.
  virtual bool tolerates_nan() const { return false; }

  // What a run that is taken up again needs to know of this one, by name, beside its options; for
  // callbacks that keep backups. set_state comes after on_train_begin, with the state of a callback
  // of the same class that has all names which state() has then, and maybe more.
  using State = std::map<std::string, Tensor>;
  virtual State state() const { return {}; }
  virtual void set_state(const State&) {}

  // Called before anything else of a run. The model outlives the run.
  void set_model(Model* model) { model_ = model; }
  void set_params(const CallbackParams& params) { params_ = params; }

 protected:
  Model& model() const;  // RuntimeError before set_model()
  const CallbackParams& params() const { return params_; }

 private:
  Model* model_ = nullptr;
  CallbackParams params_;
};

using CallbackHandle = Handle<Callback>;

// For classes of one's own: fit(data, {.callbacks = {make_callback<Mine>(3)}}).
template <std::derived_from<Callback> T, class... Args>
Handle<T> make_callback(Args&&... args) {
  return Handle<T>(kAdopt, std::make_shared<T>(std::forward<Args>(args)...));
}

}  // namespace keel
