#include "tests/support/random_embedding_case.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace keel::naive {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

// The finalizer of SplitMix64.
uint64_t scrambled(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

const std::vector<std::string> kCombiners = {"mean", "sum", "sqrtn"};

std::optional<double> perhaps(Dice& dice, double low, double high) {
  if (dice.chance(0.3)) return std::nullopt;
  return dice.real(low, high);
}

Optimizer random_optimizer(Dice& dice) {
  Optimizer o;
  o.type = dice.one_of<std::string>({"sgd", "adagrad", "adagrad_momentum", "ftrl", "adam", "adam"});
  o.initial_accumulator = dice.real(0.05, 1);
  o.momentum = dice.real(0, 0.9);
  o.nesterov = dice.chance(0.5);
  o.exponent = dice.one_of<double>({2, 3, 1.5});
  o.beta_1 = dice.one_of<double>({0.9, 0.5, 0});
  o.beta_2 = dice.one_of<double>({0.999, 0.9, 0.5});
  if (o.type == "adagrad_momentum") o.beta_2 = dice.one_of<double>({1, 0.9});
  o.epsilon = dice.one_of<double>({1e-7, 1e-3, 0.05});
  o.sum_inside_sqrt = dice.chance(0.5);
  o.lazy = dice.chance(0.7);
  o.power = dice.one_of<double>({-0.5, -0.4, 0});
  o.l1 = dice.chance(0.5) ? 0 : dice.real(0, 1);
  o.l2 = dice.chance(0.5) ? 0 : dice.real(0, 0.5);
  o.beta = dice.chance(0.5) ? 0 : dice.real(0, 0.5);
  o.multiply_linear = dice.chance(0.5);
  o.accumulate = (o.type == "adam" && !o.lazy) || dice.chance(0.7);
  if (o.accumulate && dice.chance(0.25)) {
    o.clip_gradient_min = perhaps(dice, -1, 0);
    o.clip_gradient_max = perhaps(dice, 0, 1);
  }
  if (dice.chance(0.25)) {
    o.clip_weight_min = perhaps(dice, -2, 0);
    o.clip_weight_max = perhaps(dice, 0, 2);
  }
  if (dice.chance(0.25)) {
    o.decay = dice.real(0, 0.5);
    o.decay_times_rate = dice.chance(0.5);
  }
  return o;
}

RandomTable random_table(Dice& dice, Rules rules) {
  RandomTable table;
  const int64_t rows = dice.chance(0.3) ? dice.between(1, 4) : dice.between(1, 200);
  const int64_t dim = dice.between(1, 17);
  table.combiner = dice.one_of(kCombiners);
  table.optimizer = random_optimizer(dice);
  table.rate = dice.real(0.02, 0.5);
  if (rules == Rules::kEngine && dice.chance(0.1)) {
    table.quantization = Quantization{dice.one_of<double>({2, 5, 17}), -1, 1};
  }
  for (int64_t row = 0; row < rows; ++row) {
    Row& values = table.values.emplace_back();
    for (int64_t d = 0; d < dim; ++d) {
      // Quantized tables hold values well inside a bucket, so that rounding errors do not change
      // the bucket.
      values.push_back(table.quantization
                           ? static_cast<double>(dice.between(-96, 96)) / 64 + 1.0 / 256
                           : dice.real(-2, 2));
    }
  }
  return table;
}

RandomFeature random_feature(Dice& dice, Rules rules, int tables, int64_t batch) {
  RandomFeature f;
  f.table = static_cast<int>(dice.between(0, tables - 1));
  f.kind = dice.one_of<Kind>({Kind::kDense, Kind::kSparse, Kind::kRagged});
  f.int32_ids = dice.chance(0.2);
  f.shape = {batch};
  if (f.kind == Kind::kDense) {
    if (dice.chance(0.4)) f.shape.push_back(rules == Rules::kEngine ? 1 : dice.between(1, 3));
    return f;
  }
  f.rules.validate = dice.chance(0.7);
  if (f.kind == Kind::kSparse) {
    if (dice.chance(0.2)) f.shape.push_back(dice.between(1, 3));
    f.shape.push_back(dice.between(1, 6));
  }
  const bool high_rank = f.shape.size() > 2;
  if (!high_rank && dice.chance(0.3)) f.rules.max_sequence_length = dice.between(1, 4);
  if (f.rules.max_sequence_length == 0 && dice.chance(0.3)) {
    if (f.kind == Kind::kSparse) {
      f.rules.output_shape = {f.shape.begin(), f.shape.end() - 1};
    } else {
      f.rules.output_shape = {batch};
      if (dice.chance(0.7)) f.rules.output_shape->push_back(dice.between(1, 3));
    }
  }
  const bool sequence = f.rules.max_sequence_length > 0;
  f.weighted = dice.chance(0.5) && !(sequence && rules != Rules::kEngine);
  return f;
}

int64_t random_id(Dice& dice, int64_t rows) {
  return dice.chance(0.4) ? dice.between(0, std::min<int64_t>(rows, 3) - 1)
                          : dice.between(0, rows - 1);
}

double random_weight(Dice& dice) { return static_cast<double>(dice.between(-4, 8)) / 4; }

bool negative_ids_allowed(const RandomFeature& f, Rules rules) {
  return rules == Rules::kHost && f.kind == Kind::kSparse && f.rules.max_sequence_length == 0 &&
         (f.rules.validate || f.shape.size() > 2);
}

// Calls fn(index) for every index of a shape, in row-major order.
template <class Fn>
void for_each_index(const std::vector<int64_t>& shape, Fn&& fn) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t d : shape) {
    if (d == 0) return;
  }
  while (true) {
    fn(index);
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

Ids random_ids(Dice& dice, const RandomFeature& f, int64_t rows, Rules rules) {
  Ids ids = {.kind = f.kind};
  if (f.kind == Kind::kRagged) {
    for (int64_t row = 0; row < f.shape[0]; ++row) {
      ids.row_lengths.push_back(dice.chance(0.25) ? 0 : dice.between(1, 5));
      for (int64_t p = 0; p < ids.row_lengths.back(); ++p)
        ids.values.push_back(random_id(dice, rows));
    }
  } else {
    ids.shape = f.shape;
    const double density = f.kind == Kind::kDense ? 2 : dice.real(0, 1);
    for_each_index(f.shape, [&](const std::vector<int64_t>& index) {
      if (!dice.chance(density)) return;
      if (f.kind == Kind::kSparse) ids.indices.push_back(index);
      ids.values.push_back(random_id(dice, rows));
    });
  }
  if (negative_ids_allowed(f, rules)) {
    for (int64_t& id : ids.values) {
      if (dice.chance(0.05)) id = -dice.between(1, 9);
    }
  }
  if (f.weighted) {
    std::vector<double>& weights = ids.weights.emplace();
    for (size_t k = 0; k < ids.values.size(); ++k) weights.push_back(random_weight(dice));
  }
  return ids;
}

// A structure of `leaves` leaves, in lists, tuples and dicts.
Nest<int> random_structure(Dice& dice, int leaves) {
  if (leaves == 1 && dice.chance(0.7)) return Nest<int>(0);
  std::vector<Nest<int>> children;
  for (int left = leaves; left > 0;) {
    int part = static_cast<int>(dice.between(1, left));
    if (part == leaves && leaves > 1) --part;
    children.push_back(part == 1 ? Nest<int>(0) : random_structure(dice, part));
    left -= part;
  }
  const int64_t kind = dice.between(0, 2);
  if (kind == 0) return Nest<int>::list(children);
  if (kind == 1) return Nest<int>::tuple(children);
  Nest<int>::Dict entries;
  for (const Nest<int>& child : children) {
    std::string key;
    do {
      key = {static_cast<char>('a' + dice.between(0, 25)),
             static_cast<char>('a' + dice.between(0, 25))};
    } while (entries.count(key) != 0);
    entries.emplace(key, child);
  }
  return entries;
}

// Removes tables that no feature uses and numbers the others by first use.
void settle_tables(RandomCase& random) {
  std::vector<RandomTable> used;
  std::map<int, int> position;
  for (RandomFeature& f : random.features) {
    const auto [it, fresh] = position.try_emplace(f.table, static_cast<int>(used.size()));
    if (fresh) used.push_back(random.tables[f.table]);
    f.table = it->second;
    f.rules.combiner = used[f.table].combiner;
    f.rules.quantization = used[f.table].quantization;
  }
  random.tables = std::move(used);
}

RandomBatch random_batch(Dice& dice, const RandomCase& random, const std::vector<bool>& in_loss) {
  RandomBatch out;
  for (size_t f = 0; f < random.features.size(); ++f) {
    const RandomFeature& feature = random.features[f];
    const Rows& table = random.tables[feature.table].values;
    out.ids.push_back(random_ids(dice, feature, static_cast<int64_t>(table.size()), random.rules));
    Rows& gradient = out.gradients.emplace_back();
    if (!in_loss[f]) continue;
    int64_t samples = 1;
    for (int64_t d : encode(feature.rules, out.ids[f], random.rules).shape) samples *= d;
    for (int64_t s = 0; s < samples; ++s) {
      Row& row = gradient.emplace_back();
      for (size_t d = 0; d < table[0].size(); ++d) row.push_back(dice.real(-1.5, 1.5));
    }
  }
  return out;
}

const char* name_of(Kind kind) {
  return kind == Kind::kDense ? "dense" : kind == Kind::kSparse ? "sparse" : "ragged";
}

template <class T>
std::string list_of(const std::vector<T>& values) {
  std::ostringstream out;
  for (const T& x : values) out << (out.str().empty() ? "" : " ") << x;
  return "[" + out.str() + "]";
}

void describe(std::ostream& out, const Optimizer& o) {
  const auto bound = [&](const char* name, const std::optional<double>& x) {
    if (x) out << " " << name << " " << *x;
  };
  out << o.type << (o.accumulate ? "" : " one by one") << (o.lazy ? "" : " not lazy")
      << (o.nesterov ? " nesterov" : "") << (o.sum_inside_sqrt ? "" : " outside root")
      << (o.multiply_linear ? " multiply_linear" : "") << " initial " << o.initial_accumulator
      << " momentum " << o.momentum << " exponent " << o.exponent << " betas " << o.beta_1 << " "
      << o.beta_2 << " epsilon " << o.epsilon << " power " << o.power << " l1 " << o.l1 << " l2 "
      << o.l2 << " beta " << o.beta << " decay " << o.decay
      << (o.decay_times_rate ? " x rate" : "");
  bound("clip_gradient_min", o.clip_gradient_min);
  bound("clip_gradient_max", o.clip_gradient_max);
  bound("clip_weight_min", o.clip_weight_min);
  bound("clip_weight_max", o.clip_weight_max);
}

}  // namespace

// Scrambles the seed. Without it, consecutive seeds would give the same sequence shifted by one.
Dice::Dice(uint64_t seed) : state_(scrambled(seed + 1)) {}

uint64_t Dice::next() { return scrambled(state_ += kGolden); }

int64_t Dice::between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

bool Dice::chance(double probability) {
  return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
}

double Dice::real(double low, double high) {
  return static_cast<float>(low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53));
}

RandomCase random_case(uint64_t seed, Rules rules) {
  Dice dice(seed);
  RandomCase out;
  out.seed = seed;
  out.rules = rules;
  if (rules != Rules::kHost) {
    out.hosts = dice.chance(0.6) ? 1 : static_cast<int>(dice.between(2, 3));
    out.cores = dice.one_of<int>({1, 1, 2, 2, 3, 4, 7});
  }
  out.pipelined = rules == Rules::kEngine && dice.chance(0.2);
  const auto tables = static_cast<int>(dice.between(1, 4));
  const auto features = static_cast<int>(dice.between(1, 6));
  const int64_t batch = dice.between(1, out.replicas() > 4 ? 2 : 4);
  for (int t = 0; t < tables; ++t) out.tables.push_back(random_table(dice, rules));
  for (int f = 0; f < features; ++f) {
    out.features.push_back(random_feature(dice, rules, tables, batch));
  }
  settle_tables(out);
  std::vector<int> positions;
  for (int f = 0; f < features; ++f) positions.push_back(f);
  out.structure = pack_sequence_as(random_structure(dice, features), positions);
  const bool quantized = std::ranges::any_of(
      out.tables, [](const RandomTable& t) { return t.quantization.has_value(); });
  const int64_t steps = rules == Rules::kEngine && !quantized ? dice.between(1, 4) : 1;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<bool> in_loss;
    for (int f = 0; f < features; ++f) in_loss.push_back(f == 0 || !dice.chance(0.05));
    auto& replicas = out.steps.emplace_back();
    for (int r = 0; r < out.replicas(); ++r) replicas.push_back(random_batch(dice, out, in_loss));
  }
  return out;
}

std::string RandomCase::describe() const {
  std::ostringstream out;
  out << "seed " << seed << ", "
      << (rules == Rules::kHost ? "host"
          : rules == Rules::kV0 ? "V0"
                                : "engine")
      << ", " << hosts << " hosts x " << cores << " cores, " << steps.size() << " steps, "
      << (pipelined ? "pipelined, " : "") << "features " << structure.structure() << "\n";
  for (size_t t = 0; t < tables.size(); ++t) {
    out << "  table " << t << ": " << tables[t].values.size() << " x " << tables[t].values[0].size()
        << " " << tables[t].combiner << (tables[t].quantization ? " quantized" : "") << ", rate "
        << tables[t].rate << ", ";
    naive::describe(out, tables[t].optimizer);
    out << "\n";
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const RandomFeature& x = features[f];
    out << "  feature " << f << ": table " << x.table << ", " << name_of(x.kind) << " "
        << list_of(x.shape) << (x.weighted ? " weighted" : "") << (x.int32_ids ? " int32" : "")
        << (x.rules.validate ? "" : " unchecked");
    if (x.rules.max_sequence_length > 0) out << " steps " << x.rules.max_sequence_length;
    if (x.rules.output_shape) out << " output_shape " << list_of(*x.rules.output_shape);
    out << ", first ids " << list_of(steps[0][0].ids[f].values) << "\n";
  }
  return out.str();
}

EmbeddingOptimizer optimizer_of(const Optimizer& o, double rate) {
  const auto with_tail = [&](auto options) -> EmbeddingOptimizer {
    options.learning_rate = rate;
    options.use_gradient_accumulation = o.accumulate;
    options.clip_weight_min = o.clip_weight_min;
    options.clip_weight_max = o.clip_weight_max;
    options.weight_decay_factor = o.decay;
    options.multiply_weight_decay_factor_by_learning_rate = o.decay_times_rate;
    if (o.clip_gradient_min || o.clip_gradient_max) {
      options.clipvalue = ClipValue(o.clip_gradient_min, o.clip_gradient_max);
    }
    return options;
  };
  if (o.type == "sgd") return with_tail(tpu::SGD{});
  if (o.type == "adagrad") {
    return with_tail(tpu::Adagrad{.initial_accumulator_value = o.initial_accumulator});
  }
  if (o.type == "adagrad_momentum") {
    return with_tail(tpu::AdagradMomentum{.momentum = o.momentum,
                                          .use_nesterov = o.nesterov,
                                          .exponent = o.exponent,
                                          .beta2 = o.beta_2,
                                          .epsilon = o.epsilon});
  }
  if (o.type == "adam") {
    return with_tail(tpu::Adam{.beta_1 = o.beta_1,
                               .beta_2 = o.beta_2,
                               .epsilon = o.epsilon,
                               .lazy_adam = o.lazy,
                               .sum_inside_sqrt = o.sum_inside_sqrt});
  }
  if (o.type != "ftrl") throw ValueError("optimizer_of: no embedding optimizer '", o.type, "'");
  return with_tail(tpu::FTRL{.learning_rate_power = o.power,
                             .l1_regularization_strength = o.l1,
                             .l2_regularization_strength = o.l2,
                             .beta = o.beta,
                             .initial_accumulator_value = o.initial_accumulator,
                             .multiply_linear_by_learning_rate = o.multiply_linear});
}

Tensor tensor_of(const Rows& rows, const Shape& shape) {
  std::vector<float> flat;
  for (const Row& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return Tensor::from(flat, shape);
}

namespace {

Tensor splits_of(const Ids& ids) {
  std::vector<int64_t> splits = {0};
  for (int64_t length : ids.row_lengths) splits.push_back(splits.back() + length);
  return Tensor::from(splits, {static_cast<int64_t>(splits.size())});
}

TensorLike laid_out(const Ids& ids, const Tensor& values) {
  if (ids.kind == Kind::kRagged) return RaggedTensor{values, splits_of(ids)};
  if (ids.kind == Kind::kDense) return values.reshaped(Shape(ids.shape));
  std::vector<int64_t> flat;
  for (const auto& index : ids.indices) flat.insert(flat.end(), index.begin(), index.end());
  return SparseTensor{
      .indices = Tensor::from(flat, {values.size(), static_cast<int64_t>(ids.shape.size())}),
      .values = values,
      .dense_shape = Shape(ids.shape)};
}

}  // namespace

TensorLike ids_of(const RandomFeature& feature, const Ids& ids) {
  const Tensor values = Tensor::from(ids.values, {static_cast<int64_t>(ids.values.size())});
  return laid_out(ids, feature.int32_ids ? values.cast(DType::kInt32) : values);
}

std::optional<TensorLike> weights_of(const Ids& ids) {
  if (!ids.weights) return std::nullopt;
  const std::vector<float> values(ids.weights->begin(), ids.weights->end());
  return laid_out(ids, Tensor::from(values, {static_cast<int64_t>(values.size())}));
}

std::vector<Table> tables_of(const RandomCase& random) {
  std::vector<Table> out;
  for (const RandomTable& t : random.tables) {
    TableConfig config = {.vocabulary_size = static_cast<int64_t>(t.values.size()),
                          .dim = static_cast<int64_t>(t.values[0].size()),
                          .initializer = "zeros",
                          .optimizer = optimizer_of(t.optimizer, t.rate),
                          .combiner = t.combiner,
                          .name = "t" + std::to_string(out.size())};
    if (t.quantization) {
      config.quantization_config =
          QuantizationConfig(static_cast<int64_t>(t.quantization->num_buckets),
                             t.quantization->lower, t.quantization->upper);
    }
    out.push_back(make_table(config));
  }
  return out;
}

Nest<FeatureConfig> feature_config_of(const RandomCase& random, const std::vector<Table>& tables) {
  return map_structure(random.structure, [&](int f) {
    const RandomFeature& feature = random.features[f];
    FeatureConfig out = {.table = tables[feature.table],
                         .max_sequence_length = feature.rules.max_sequence_length,
                         .validate_weights_and_indices = feature.rules.validate};
    if (feature.rules.output_shape) out.output_shape = Shape(*feature.rules.output_shape);
    return out;
  });
}

}  // namespace keel::naive
