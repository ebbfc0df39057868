// LambdaCallback: a callback made of functions (keras.callbacks.LambdaCallback).
#pragma once

#include <functional>

#include <keel/layers/training/callback.h>

namespace keel {

// Functions for the events of Callback; empty functions are not called.
struct LambdaCallbackOptions {
  std::function<void(int64_t epoch)> on_epoch_begin = {};  // before an epoch
  std::function<void(int64_t epoch, Logs& logs)> on_epoch_end =
      {};                                                   // after an epoch; may change the logs
  std::function<void()> on_train_begin = {};                // when fit begins
  std::function<void(const Logs& logs)> on_train_end = {};  // when fit ends
  std::function<void(int64_t batch)> on_train_batch_begin = {};  // before a training step
  std::function<void(int64_t batch, const Logs& logs)> on_train_batch_end =
      {};                                                  // after a training step
  std::function<void()> on_test_begin = {};                // when evaluate or a validation begins
  std::function<void(const Logs& logs)> on_test_end = {};  // when it ends
  std::function<void(int64_t batch)> on_test_batch_begin = {};  // before a batch of it
  std::function<void(int64_t batch, const Logs& logs)> on_test_batch_end =
      {};                                                          // after a batch of it
  std::function<void()> on_predict_begin = {};                     // when predict begins
  std::function<void()> on_predict_end = {};                       // when predict ends
  std::function<void(int64_t batch)> on_predict_batch_begin = {};  // before a batch of predict
  std::function<void(int64_t batch)> on_predict_batch_end = {};    // after a batch of predict
};

// Forwards each event to the function of the same name.
class LambdaCallback final : public Callback {
 public:
  using Options = LambdaCallbackOptions;
  explicit LambdaCallback(Options options) : options_(std::move(options)) {}

  void on_epoch_begin(int64_t epoch) override {
    if (options_.on_epoch_begin) options_.on_epoch_begin(epoch);
  }
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    if (options_.on_epoch_end) options_.on_epoch_end(epoch, logs);
  }
  void on_train_begin() override {
    if (options_.on_train_begin) options_.on_train_begin();
  }
  void on_train_end(const Logs& logs) override {
    if (options_.on_train_end) options_.on_train_end(logs);
  }
  void on_train_batch_begin(int64_t batch) override {
    if (options_.on_train_batch_begin) options_.on_train_batch_begin(batch);
  }
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    if (options_.on_train_batch_end) options_.on_train_batch_end(batch, logs);
  }
  void on_test_begin() override {
    if (options_.on_test_begin) options_.on_test_begin();
  }
  void on_test_end(const Logs& logs) override {
    if (options_.on_test_end) options_.on_test_end(logs);
  }
  void on_test_batch_begin(int64_t batch) override {
    if (options_.on_test_batch_begin) options_.on_test_batch_begin(batch);
  }
  void on_test_batch_end(int64_t batch, const Logs& logs) override {
    if (options_.on_test_batch_end) options_.on_test_batch_end(batch, logs);
  }
  void on_predict_begin() override {
    if (options_.on_predict_begin) options_.on_predict_begin();
  }
  void on_predict_end() override {
    if (options_.on_predict_end) options_.on_predict_end();
  }
  void on_predict_batch_begin(int64_t batch) override {
    if (options_.on_predict_batch_begin) options_.on_predict_batch_begin(batch);
  }
  void on_predict_batch_end(int64_t batch) override {
    if (options_.on_predict_batch_end) options_.on_predict_batch_end(batch);
  }

 private:
  const Options options_;
};

namespace callbacks {
using Lambda = Handle<LambdaCallback>;
using LambdaCallback = Lambda;  // Keras's name
}  // namespace callbacks

}  // namespace keel
