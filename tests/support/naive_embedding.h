// A naive reference implementation of embedding tables in float64: plain loops written from the
// formulas, which share no code with the library. Tests compare the library's lookups, row
// gradients and updates with it.
//
//   Batch batch = encode(feature, ids, Rules::kEngine);    the occurrences of ids in samples
//   look_up(table.rows(), batch)                           [samples][dim]
//   table.step(contributions of its batches, rate)         one update
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keel::naive {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

struct Quantization {
  double num_buckets = 2, lower = 0, upper = 1;
};

struct Feature {
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  int64_t max_sequence_length = 0;
  std::optional<std::vector<int64_t>> output_shape = {};
  bool validate = true;
  std::optional<Quantization> quantization = {};
};

enum class Kind { kDense, kSparse, kRagged };

// The ids of one feature of one replica.
struct Ids {
  Kind kind = Kind::kDense;
  std::vector<int64_t> shape = {};                 // dense: of values; sparse: of the dense form
  std::vector<std::vector<int64_t>> indices = {};  // sparse
  std::vector<int64_t> row_lengths = {};           // ragged
  std::vector<int64_t> values = {};
  std::optional<std::vector<double>> weights = {};
};

// The lookup rules: kHost for ordinary variables, kV0 for an accelerator without an engine, kEngine
// for an engine.
enum class Rules { kHost, kV0, kEngine };

struct Occurrence {
  int64_t sample = 0;
  int64_t id = 0;
  double gain = 1;  // factor of the row in its sample: weight and combiner
};

// The occurrences of a feature, by sample and then by position.
struct Batch {
  std::vector<int64_t> shape;  // output shape without dim; its product is the number of samples
  std::vector<Occurrence> occurrences;
  std::optional<Quantization> quantization;
};

Batch encode(const Feature& feature, const Ids& ids, Rules rules);
Rows look_up(const Rows& table, const Batch& batch);

// The gradient that one occurrence contributes to its row.
struct Contribution {
  int64_t id = 0;
  Row gradient;
};
// Returns one contribution for each occurrence. gradient[s] is the gradient of sample s.
std::vector<Contribution> row_contributions(const Batch& batch, const Rows& gradient);
// Sums contributions by row. The result only has rows with an occurrence.
std::map<int64_t, Row> sum_by_row(const std::vector<Contribution>& contributions);

// An update rule. `type` is "sgd", "adagrad", "adagrad_momentum", "ftrl", "adam", "momentum",
// "rmsprop", "proximal_adagrad" or "proximal_yogi". Each type uses only its own parameters.
struct Optimizer {
  std::string type = "sgd";
  bool accumulate = true;
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  double decay = 0;
  bool decay_times_rate = false;
  double initial_accumulator = 0.1;
  double momentum = 0, exponent = 2, rho = 0.9;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double power = -0.5, l1 = 0, l2 = 0, beta = 0;
  bool nesterov = false, lazy = true, sum_inside_sqrt = true, multiply_linear = false;

  struct Slot {
    std::string name;
    double initial;
  };
  std::vector<Slot> slots() const;
  // Updates one element. The gradient is already clipped and summed.
  void update(double* w, double gradient, double* const* slots, double rate) const;
};

// A table with its slots.
class NaiveTable {
 public:
  NaiveTable(Rows rows, Optimizer optimizer);

  // Updates the table. Contributions are in the order replica, feature, sample, position.
  void step(const std::vector<Contribution>& contributions, double rate);

  const Rows& rows() const { return rows_; }
  const std::map<std::string, Rows>& slots() const { return slots_; }

 private:
  void step_row(int64_t id, const Row& gradient, double rate);

  Rows rows_;
  std::map<std::string, Rows> slots_;
  Optimizer optimizer_;
};

}  // namespace keel::naive
