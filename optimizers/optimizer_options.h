// OptimizerOptions: the options that all Keras optimizers have in common.
//
// Each optimizer class has its own options aggregate so that a call can name all options in one
// list. These aggregates repeat the members of OptimizerOptions after the options of the class,
// with `name` last, as in Keras.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/optimizers/schedules/learning_rate.h>

namespace keel {

// Selects how an optimizer whose steps change every row of a table treats the rows that a sparse
// gradient does not name (OptimizerOptions::lazy_rows).
enum class LazyRows {
  kOff,         // each step updates the whole table
  kReplay,      // rows are deferred; missed steps are later applied one by one
  kClosedForm,  // rows are deferred; missed steps are later applied by one formula
};
Config encode(LazyRows rows);                       // returns "off", "replay" or "closed_form"
void decode(const Config& config, LazyRows& rows);  // throws ValueError for other values

// Options of every optimizer.
struct OptimizerOptions {
  LearningRate learning_rate = 0.001;
  // Decays w -= rate * weight_decay * w before each update, except for variables that
  // Optimizer::exclude_from_weight_decay names.
  std::optional<double> weight_decay = {};
  // At most one of these may be set; 0 turns it off. clipnorm scales each gradient whose norm
  // exceeds it down to that norm, each variable on its own. global_clipnorm scales all gradients by
  // one factor if their common norm exceeds it. clipvalue clips each element to [-clipvalue,
  // clipvalue].
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  // Keeps the moving average of each variable, average = ema_momentum * average + (1 -
  // ema_momentum) * w after each step; the first step takes w itself. The average is written into
  // the variable after every ema_overwrite_frequency steps, or, if that is unset, only by
  // Optimizer::finalize_variable_values.
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  // Gradients are divided by this factor; compute them from Optimizer::scale_loss.
  std::optional<double> loss_scale_factor = {};
  // Only every n-th call updates the variables, by the mean of the last n gradients.
  std::optional<int64_t> gradient_accumulation_steps = {};
  // Adam, momentum, Ftrl, weight decay and others change every row of a table in every step. With
  // lazy_rows, a step by IndexedSlices takes time proportional to the number of rows that they
  // name. The other rows are deferred, and the missed steps are applied before a row is looked up,
  // before the table or its slots are read or assigned, and before they are saved. Readers
  // therefore never see a stale row.
  //
  // kReplay gives the same bits as kOff; with clipnorm or global_clipnorm, the same up to the
  // rounding of the norms. kClosedForm takes time independent of the number of steps that a row has
  // missed. In float64 it is within 1e-8 of kOff after 10,000 steps. In float32 it is mostly closer
  // to that float64 result than kOff, whose every step rounds; its last bits depend on when a row
  // is read, so it throws NotImplementedError with several processes.
  //
  // The memory cost is 4 bytes per row, and 50 (kReplay) to 300 bytes per step since all rows were
  // last up to date. The rows of a table and of its slots are stored interleaved, so reading a
  // whole table or slot copies it. Keras has no such option; its key is in a config only if it is
  // set.
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};  // if empty, the class name in snake case
};

// Visits the common options in the order of Keras's configs. The `fields` of an optimizer class
// call it first.
template <class Self>
constexpr void optimizer_fields(Self& self, auto&& field) {
  field("name", self.name);
  field("learning_rate", self.learning_rate);
  field("weight_decay", self.weight_decay);
  field("clipnorm", self.clipnorm);
  field("global_clipnorm", self.global_clipnorm);
  field("clipvalue", self.clipvalue);
  field("use_ema", self.use_ema);
  field("ema_momentum", self.ema_momentum);
  field("ema_overwrite_frequency", self.ema_overwrite_frequency);
  field("loss_scale_factor", self.loss_scale_factor);
  field("gradient_accumulation_steps", self.gradient_accumulation_steps);
  field("lazy_rows", self.lazy_rows);
}

// Returns the common options among the options of an optimizer class.
template <class Options>
OptimizerOptions optimizer_options(const Options& options) {
  return {.learning_rate = options.learning_rate,
          .weight_decay = options.weight_decay,
          .clipnorm = options.clipnorm,
          .clipvalue = options.clipvalue,
          .global_clipnorm = options.global_clipnorm,
          .use_ema = options.use_ema,
          .ema_momentum = options.ema_momentum,
          .ema_overwrite_frequency = options.ema_overwrite_frequency,
          .loss_scale_factor = options.loss_scale_factor,
          .gradient_accumulation_steps = options.gradient_accumulation_steps,
          .lazy_rows = options.lazy_rows,
          .name = options.name};
}

// Throws ValueError with the class and the option if
//   - more than one kind of clipping is set,
//   - weight_decay or a clipping bound is negative,
//   - loss_scale_factor is not positive,
//   - gradient_accumulation_steps is below 2,
//   - with use_ema, ema_momentum is not in [0, 1] or ema_overwrite_frequency is below 1,
//   - lazy_rows is set together with use_ema or gradient_accumulation_steps, which need all rows in
//     every step.
void check_optimizer_options(const std::string& class_name, const OptimizerOptions& options);

// Checks of one option of one class. Each throws ValueError with the class, the option and its
// value.
void check_not_negative(const std::string& class_name, const char* option, double value);
void check_fraction(const std::string& class_name, const char* option, double value);  // in [0, 1]
void check_beta(const std::string& class_name, const char* option, double value);      // in [0, 1)

}  // namespace keel
