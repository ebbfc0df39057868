// OptimizerOptions: what all of Keras's optimizers take.
//
// The options of a class are an aggregate of its own, so that a call names them in one list. They
// repeat these members, after those that are the class's alone, and `name` last, as in Keras.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/optimizers/schedules/learning_rate.h>

namespace keel {

// What becomes of the rows of a table that a sparse gradient does not name, in steps that move
// every row (OptimizerOptions::lazy_rows).
enum class LazyRows {
  kOff,         // each step updates the whole table
  kReplay,      // they wait; the steps that they missed are then made, one by one
  kClosedForm,  // they wait; the steps that they missed are then made in one
};
Config encode(LazyRows rows);                       // "off", "replay", "closed_form"
void decode(const Config& config, LazyRows& rows);  // ValueError for other values

struct OptimizerOptions {
  LearningRate learning_rate = 0.001;
  // Before each update w -= rate * weight_decay * w, but see Optimizer::exclude_from_weight_decay.
  std::optional<double> weight_decay = {};
  // Of these at most one. Gradients with a norm above clipnorm are scaled down to it, each variable
  // on its own; all together by one factor if their common norm is above global_clipnorm; and each
  // element is kept in [-clipvalue, clipvalue]. 0: off.
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};
  // Keep the average of each variable, average = ema_momentum * average + (1 - ema_momentum) * w
  // after each step (the first takes w itself), and write it into the variable after every
  // ema_overwrite_frequency steps, or in Optimizer::finalize_variable_values alone.
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  // Gradients are divided by it: they come from Optimizer::scale_loss.
  std::optional<double> loss_scale_factor = {};
  // Of so many calls only the last one updates, by the mean of their gradients.
  std::optional<int64_t> gradient_accumulation_steps = {};
  // Adam, momentum, Ftrl, weight decay and others move every row of a table in every step. With
  // this, steps by IndexedSlices cost time in proportion to the rows that they name, and the
  // table is the same to everyone who looks: rows that were left out are brought up to date
  // before somebody looks them up, reads or assigns the table or its slots, or saves them.
  // kReplay gives the bits of kOff (with clipnorm or global_clipnorm up to the rounding of norms).
  // kClosedForm takes a time that does not depend on how many steps a row has missed. In float64 it
  // is within 1e-8 of kOff after 10,000 steps; in float32 mostly nearer to that than the steps of
  // kOff, each of which rounds: its last bits depend on when somebody looks, so that several
  // processes refuse it (NotImplementedError). Costs 4 bytes a row, and 50 (kReplay) to 300 bytes a
  // step since all rows were last up to date. The rows of a table and of its slots are kept side by
  // side: reading all of one copies it. Keras has no such option; its configs have the key if it is
  // set.
  LazyRows lazy_rows = LazyRows::kOff;
  std::string name = {};  // empty: the class name in snake case
};

// These, in the order of Keras's configs; first in the `fields` of a class.
template <class Self>
void optimizer_fields(Self& self, auto&& field) {
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

// Those of a class.
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

// ValueError, with the class and the option, if two kinds of clipping are set, weight_decay or a
// bound is negative, loss_scale_factor is not positive, gradient_accumulation_steps is below 2, or,
// with use_ema, ema_momentum is not in [0, 1] or ema_overwrite_frequency below 1, or if lazy_rows
// is set beside use_ema or gradient_accumulation_steps, which need all rows in every step.
void check_optimizer_options(const std::string& class_name, const OptimizerOptions& options);

// For the options of one class. ValueError with the class, the option and its value.
void check_not_negative(const std::string& class_name, const char* option, double value);
void check_fraction(const std::string& class_name, const char* option, double value);  // in [0, 1]
void check_beta(const std::string& class_name, const char* option, double value);      // in [0, 1)

}  // namespace keel
