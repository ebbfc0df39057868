#include "tests/support/naive_embedding.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace keel::naive {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t out = 1;
  for (int64_t d : shape) out *= d;
  return out;
}

struct Entry {
  int64_t sample, position, id;
  double weight;
};

// No combiner: every row has the factor 1.
void gather(Batch& batch, const std::vector<Entry>& entries) {
  for (const Entry& e : entries) batch.occurrences.push_back({e.sample, e.id, 1});
}

void combine(Batch& batch, const std::vector<Entry>& entries, const std::string& combiner) {
  std::map<int64_t, double> sums, squares;
  for (const Entry& e : entries) {
    sums[e.sample] += e.weight;
    squares[e.sample] += e.weight * e.weight;
  }
  for (const Entry& e : entries) {
    double divisor = 1;
    if (combiner == "mean") divisor = sums[e.sample];
    if (combiner == "sqrtn") divisor = std::sqrt(squares[e.sample]);
    batch.occurrences.push_back({e.sample, e.id, divisor == 0 ? 0 : e.weight / divisor});
  }
}

double weight_of(const Ids& ids, size_t k) { return ids.weights ? (*ids.weights)[k] : 1; }

Batch encode_dense(const Feature& feature, const Ids& ids, Rules rules) {
  Batch batch = {.shape = ids.shape, .occurrences = {}, .quantization = {}};
  if (rules == Rules::kEngine && ids.shape.size() > 1) batch.shape.pop_back();
  if (feature.output_shape) batch.shape = *feature.output_shape;
  std::vector<Entry> entries;
  for (size_t k = 0; k < ids.values.size(); ++k) {
    entries.push_back({static_cast<int64_t>(k), 0, ids.values[k], 1});
  }
  gather(batch, entries);
  return batch;
}

Batch encode_sparse(const Feature& feature, const Ids& ids, Rules rules) {
  const size_t rank = ids.shape.size();
  const int64_t steps = feature.max_sequence_length;
  const bool sequence = steps > 0 && !feature.output_shape && rank == 2;
  Batch batch;
  batch.shape = {ids.shape.begin(), ids.shape.end() - 1};
  if (sequence) batch.shape.push_back(steps);
  const bool prune =
      rules == Rules::kHost && !sequence && (feature.validate || ids.shape.size() > 2);
  std::vector<Entry> entries;
  for (size_t k = 0; k < ids.values.size(); ++k) {
    const double weight = weight_of(ids, k);
    if (prune && (ids.values[k] < 0 || (feature.combiner != "sum" && weight <= 0))) continue;
    int64_t sample = 0;
    for (size_t axis = 0; axis + 1 < rank; ++axis) {
      sample = sample * ids.shape[axis] + ids.indices[k][axis];
    }
    const int64_t column = ids.indices[k][rank - 1];
    if (sequence && column >= steps) continue;
    if (sequence) sample = sample * steps + column;
    entries.push_back({sample, column, ids.values[k], weight});
  }
  if (sequence && rules != Rules::kEngine) {
    gather(batch, entries);
  } else {
    combine(batch, entries, feature.combiner);
  }
  return batch;
}

Batch encode_ragged(const Feature& feature, const Ids& ids, Rules rules) {
  const auto rows = static_cast<int64_t>(ids.row_lengths.size());
  Batch batch = {.shape = {rows}, .occurrences = {}, .quantization = {}};
  int64_t steps = feature.max_sequence_length;
  bool weighted = rules == Rules::kEngine;
  if (feature.output_shape) {
    const int64_t samples = product(*feature.output_shape);
    if (rows == 0 || samples % rows != 0) throw std::invalid_argument("rows against output_shape");
    steps = samples == rows ? 0 : samples / rows;
    weighted = false;
    batch.shape = *feature.output_shape;
  } else if (steps > 0) {
    batch.shape.push_back(steps);
  }
  std::vector<Entry> entries;
  size_t k = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t p = 0; p < ids.row_lengths[row]; ++p, ++k) {
      if (steps > 0 && p >= steps) continue;
      entries.push_back({steps > 0 ? row * steps + p : row, p, ids.values[k], weight_of(ids, k)});
    }
  }
  if (steps > 0 && !weighted) {
    gather(batch, entries);
  } else {
    combine(batch, entries, feature.combiner);
  }
  return batch;
}

double quantized(double x, const Quantization& q) {
  const double quantum = (q.upper - q.lower) / (q.num_buckets - 1);
  const double clipped = std::min(std::max(x, q.lower), q.upper);
  return std::floor((clipped - q.lower) / quantum + 0.5) * quantum + q.lower;
}

double clipped(double x, const std::optional<double>& low, const std::optional<double>& high) {
  if (low && x < *low) return *low;
  if (high && x > *high) return *high;
  return x;
}

// 0^p is 0 for p > 0 and 1 for p = 0.
double power_of(double a, double p) { return p == 0 ? 1 : a == 0 ? 0 : std::pow(a, p); }

double soft_threshold(double x, double l1, double l2, double rate) {
  if (l1 > 0) x = (x < 0 ? -1 : 1) * std::max(std::abs(x) - rate * l1, 0.0);
  return x / (1 + rate * l2);
}

// Returns N / Q of FTRL and updates `linear`.
double ftrl(const Optimizer& o, double w, double g, double* accumulator, double* linear,
            double rate) {
  const double p = -o.power;
  const double next = *accumulator + g * g;
  const double delta = power_of(next, p) - power_of(*accumulator, p);
  *linear += o.multiply_linear ? rate * g - delta * w : g - delta * w / rate;
  const double bound = o.multiply_linear ? rate * o.l1 : o.l1;
  const double numerator = std::min(std::max(*linear, -bound), bound) - *linear;
  const double denominator = o.multiply_linear ? power_of(next, p) + 2 * rate * o.l2 + o.beta
                                               : (power_of(next, p) + o.beta) / rate + 2 * o.l2;
  *accumulator = next;
  return numerator / denominator;
}

}  // namespace

Batch encode(const Feature& feature, const Ids& ids, Rules rules) {
  Batch batch = ids.kind == Kind::kDense    ? encode_dense(feature, ids, rules)
                : ids.kind == Kind::kSparse ? encode_sparse(feature, ids, rules)
                                            : encode_ragged(feature, ids, rules);
  if (rules == Rules::kEngine) batch.quantization = feature.quantization;
  return batch;
}

Rows look_up(const Rows& table, const Batch& batch) {
  Rows out(product(batch.shape), Row(table[0].size(), 0.0));
  for (const Occurrence& o : batch.occurrences) {
    for (size_t d = 0; d < table[0].size(); ++d) {
      const double x = table.at(o.id)[d];
      out[o.sample][d] += o.gain * (batch.quantization ? quantized(x, *batch.quantization) : x);
    }
  }
  return out;
}

std::vector<Contribution> row_contributions(const Batch& batch, const Rows& gradient) {
  std::vector<Contribution> out;
  for (const Occurrence& o : batch.occurrences) {
    Row row = gradient[o.sample];
    for (double& x : row) x *= o.gain;
    out.push_back({o.id, std::move(row)});
  }
  return out;
}

std::map<int64_t, Row> sum_by_row(const std::vector<Contribution>& contributions) {
  std::map<int64_t, Row> out;
  for (const Contribution& c : contributions) {
    Row& row = out.try_emplace(c.id, Row(c.gradient.size(), 0.0)).first->second;
    for (size_t d = 0; d < row.size(); ++d) row[d] += c.gradient[d];
  }
  return out;
}

std::vector<Optimizer::Slot> Optimizer::slots() const {
  if (type == "sgd") return {};
  if (type == "adagrad" || type == "proximal_adagrad")
    return {{"accumulators", initial_accumulator}};
  if (type == "adagrad_momentum") return {{"accumulators", 0}, {"momenta", 0}};
  if (type == "ftrl") return {{"accumulators", initial_accumulator}, {"linears", 0}};
  if (type == "adam") return {{"momenta", 0}, {"velocities", 0}};
  if (type == "momentum") return {{"momenta", 0}};
  if (type == "rmsprop") return {{"ms", 0}, {"mom", 0}};
  if (type == "proximal_yogi") return {{"v", initial_accumulator}, {"m", 0}};
  throw std::invalid_argument("naive::Optimizer: unknown type '" + type + "'");
}

void Optimizer::update(double* w, double g, double* const* s, double rate) const {
  if (type == "sgd") {
    *w -= rate * g;
  } else if (type == "adagrad") {
    *s[0] += g * g;
    *w -= rate * g / std::sqrt(*s[0]);
  } else if (type == "proximal_adagrad") {
    *s[0] += g * g;
    const double e = rate / std::sqrt(*s[0]);
    *w = soft_threshold(*w - e * g, l1, l2, e);
  } else if (type == "adagrad_momentum") {
    *s[0] = beta_2 == 1 ? *s[0] + g * g : beta_2 * *s[0] + (1 - beta_2) * g * g;
    const double u = g * std::pow(*s[0] + epsilon, -1 / exponent);
    *s[1] = momentum * *s[1] + u;
    *w -= rate * (nesterov ? momentum * *s[1] + u : *s[1]);
  } else if (type == "ftrl") {
    *w = ftrl(*this, *w, g, s[0], s[1], rate);
  } else if (type == "adam") {
    *s[0] = beta_1 * *s[0] + (1 - beta_1) * g;
    *s[1] = beta_2 * *s[1] + (1 - beta_2) * g * g;
    *w -= rate * *s[0] /
          (sum_inside_sqrt ? std::sqrt(*s[1] + epsilon * epsilon) : std::sqrt(*s[1]) + epsilon);
  } else if (type == "momentum") {
    *s[0] = momentum * *s[0] + g;
    *w -= rate * (nesterov ? g + momentum * *s[0] : *s[0]);
  } else if (type == "rmsprop") {
    *s[0] += (1 - rho) * (g * g - *s[0]);
    *s[1] = momentum * *s[1] + rate * g / std::sqrt(*s[0] + epsilon);
    *w -= *s[1];
  } else if (type == "proximal_yogi") {
    *s[1] = beta_1 * *s[1] + (1 - beta_1) * g;
    const double sign = g * g > *s[0] ? 1 : g * g < *s[0] ? -1 : 0;
    *s[0] += (1 - beta_2) * sign * g * g;
    const double e = rate / (std::sqrt(*s[0]) + epsilon);
    *w = soft_threshold(*w - e * *s[1], l1, l2, e);
  }
}

NaiveTable::NaiveTable(Rows rows, Optimizer optimizer)
    : rows_(std::move(rows)), optimizer_(std::move(optimizer)) {
  for (const Optimizer::Slot& slot : optimizer_.slots()) {
    slots_[slot.name] = Rows(rows_.size(), Row(rows_[0].size(), slot.initial));
  }
}

void NaiveTable::step(const std::vector<Contribution>& contributions, double rate) {
  if (!optimizer_.accumulate) {
    for (const Contribution& c : contributions) step_row(c.id, c.gradient, rate);
    return;
  }
  const std::map<int64_t, Row> summed = sum_by_row(contributions);
  const Row none(rows_[0].size(), 0.0);
  for (int64_t id = 0; id < static_cast<int64_t>(rows_.size()); ++id) {
    const auto found = summed.find(id);
    if (found != summed.end()) {
      step_row(id, found->second, rate);
    } else if (optimizer_.type == "adam" && !optimizer_.lazy) {
      step_row(id, none, rate);
    }
  }
}

void NaiveTable::step_row(int64_t id, const Row& gradient, double rate) {
  const Optimizer& o = optimizer_;
  for (size_t d = 0; d < gradient.size(); ++d) {
    double* const w = &rows_.at(id)[d];
    std::vector<double*> slots;
    for (const Optimizer::Slot& slot : o.slots()) slots.push_back(&slots_[slot.name][id][d]);
    *w -= o.decay * (o.decay_times_rate ? rate : 1) * *w;
    o.update(w, clipped(gradient[d], o.clip_gradient_min, o.clip_gradient_max), slots.data(), rate);
    *w = clipped(*w, o.clip_weight_min, o.clip_weight_max);
  }
}

}  // namespace keel::naive
