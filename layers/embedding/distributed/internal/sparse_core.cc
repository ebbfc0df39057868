#include <keel/layers/embedding/distributed/internal/sparse_core.h>

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/distributed/internal/feature_configs.h>

namespace keel {
namespace {

std::vector<TableStack> stacks_of(const SparseCoreOptions& options, int shards) {
  std::vector<StackableTable> tables;
  for (const auto& table : options.tables) {
    if (!table->optimizer) {
      throw ValueError("DistributedEmbedding: table '", table->name,
                       "' has placement sparsecore, which requires an optimizer, received none; "
                       "set TableConfig::optimizer");
    }
    tables.push_back({.name = table->name,
                      .vocabulary_size = table->vocabulary_size,
                      .dim = table->embedding_dim,
                      .combiner = table->combiner,
                      .optimizer = table->optimizer,
                      .samples = 0,
                      .dynamic = table->dynamic.has_value()});
  }
  for (const SparseCoreFeature& feature : options.features) {
    tables[feature.table].samples += feature.samples;
  }
  return stack_tables(tables, options.table_stacking, {.shards = shards});
}

DType key_dtype(const keras_rs::TableConfig& table) {
  return table.dynamic && table.dynamic->key == KeyType::kString ? DType::kString : DType::kInt64;
}

// Converts ids of a member to rows of the stack.
Tensor shifted(const TableStack& stack, const StackMember& member, const Tensor& ids) {
  if (stack.members.size() == 1) return ids;
  Tensor out = Tensor::uninitialized(ids.shape(), DType::kInt64);
  std::ranges::transform(ids.data<int64_t>(), out.mutable_data<int64_t>().begin(),
                         [&](int64_t id) { return stack.row(member, id); });
  return out;
}

// Reads and writes the rows of one member in one part (weights or a slot) of its stack.
struct MemberRows {
  TableStack stack;
  int position = 0;  // among the members

  const StackMember& member() const { return stack.members[position]; }
  Shape shape() const { return {member().vocabulary_size, member().dim}; }

  void read(const StateEntry::Rows& whole, int64_t begin, int64_t end, float* out) const {
    const auto [first, last] = stack.rows_of(member(), begin, end);
    std::vector<float> rows((last - first) * stack.dim);
    whole.read(first, last, rows.data());
    stack.unstack(member(), begin, end, rows.data(), out);
  }
  // The range consists of whole groups of `shards` rows. Reads it first, so that the other ids and
  // the padding in the range keep their values.
  void write(const StateEntry::Rows& whole, int64_t begin, int64_t end, const float* values) const {
    const auto [first, last] = stack.rows_of(member(), begin, end);
    std::vector<float> rows((last - first) * stack.dim);
    whole.read(first, last, rows.data());
    stack.stack(member(), begin, end, values, rows.data());
    whole.write(first, last, rows.data());
  }
};

// Accesses the rows of a stack through whole tensors, because this process may hold only some of
// the rows.
StateEntry::Rows rows_of_whole(const StateEntry& stack) {
  return {.first = 0,
          .end = stack.spec.shape[0],
          .read =
              [get = stack.get](int64_t begin, int64_t end, float* out) {
                const Tensor whole = get();
                const int64_t dim = whole.dim(1);
                std::copy_n(whole.data<float>().data() + begin * dim, (end - begin) * dim, out);
              },
          .write =
              [get = stack.get, set = stack.set](int64_t begin, int64_t end, const float* values) {
                Tensor whole = get().clone();
                const int64_t dim = whole.dim(1);
                std::copy_n(values, (end - begin) * dim,
                            whole.mutable_data<float>().data() + begin * dim);
                set(whole);
              }};
}

// Restricts the state entry of a stack to one member.
StateEntry member_entry(const MemberRows& rows, StateEntry entry) {
  const bool here = entry.rows && entry.rows->first == 0 && entry.rows->end == entry.spec.shape[0];
  const StateEntry::Rows whole = here ? *entry.rows : rows_of_whole(entry);
  const Shape shape = rows.shape();
  entry.spec.shape = shape;
  entry.get = [rows, whole, shape] {
    Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
    rows.read(whole, 0, shape[0], out.mutable_data<float>().data());
    return out;
  };
  entry.set = [rows, whole, shape](const Tensor& values) {
    if (values.shape() != shape || values.dtype() != DType::kFloat32) {
      throw ValueError("DistributedEmbedding: table '", rows.member().name, "' must be float32 ",
                       shape, ", received ", values.dtype(), " ", values.shape());
    }
    rows.write(whole, 0, shape[0], values.data<float>().data());
  };
  entry.rows.reset();
  if (!here) return entry;
  entry.rows = {
      .first = 0,
      .end = shape[0],
      .read = [rows, whole](int64_t begin, int64_t end,
                            float* out) { rows.read(whole, begin, end, out); },
      .write = [rows, whole](int64_t begin, int64_t end,
                             const float* values) { rows.write(whole, begin, end, values); }};
  return entry;
}

}  // namespace

// Initializes each table of a stack with the values that it has without stacking. Padding is zero.
class SparseCore::StackInitializer final : public InitializerFunction {
 public:
  StackInitializer(const TableStack& stack, const SparseCoreOptions& options) : stack_(stack) {
    for (const StackMember& m : stack.members) {
      initializers_.push_back(table_initializer(*options.tables[m.table]));
    }
  }
  // Must be called before the tables are initialized.
  void set_streams(std::vector<RandomStream> streams) { streams_ = std::move(streams); }

  void fill(std::span<float> out, int64_t first, const Shape& shape,
            const RandomStream&) const override {
    const int64_t width = shape[1];
    for (size_t done = 0; done < out.size();) {
      const int64_t at = first + static_cast<int64_t>(done);
      const int64_t column = at % width;
      const auto part = out.subspan(
          done, std::min<size_t>(out.size() - done, static_cast<size_t>(width - column)));
      fill_row(part, at / width, column);
      done += part.size();
    }
  }
  std::string class_name() const override { return "StackInitializer"; }
  Config get_config() const override { return Config::dict(); }
  // Has a fixed seed, so that it does not consume a random stream: the layer draws the tables'
  // streams, in an order that does not depend on stacking.
  std::optional<int64_t> seed() const override { return 0; }

 private:
  void fill_row(std::span<float> out, int64_t row, int64_t column) const {
    std::ranges::fill(out, 0.0F);
    const auto place = stack_.find(row);
    if (!place || column >= place->member->dim) return;
    const StackMember& m = *place->member;
    const auto which = static_cast<size_t>(&m - stack_.members.data());
    const auto length = static_cast<size_t>(m.dim - column);
    initializers_[which].function().fill(out.first(std::min(out.size(), length)),
                                         place->id * m.dim + column, {m.vocabulary_size, m.dim},
                                         streams_[which]);
  }

  const TableStack stack_;
  std::vector<Initializer> initializers_;  // by member
  std::vector<RandomStream> streams_;      // by member
};

SparseCore::SparseCore(SparseCoreOptions options)
    : options_(std::move(options)),
      stacks_(stacks_of(options_, distribute::Strategy::current().num_replicas_in_sync())),
      engine_(make_engine_layer()) {}

layers::TPUEmbedding SparseCore::make_engine_layer() {
  homes_.resize(options_.tables.size());
  for (size_t s = 0; s < stacks_.size(); ++s) {
    const TableStack& stack = stacks_[s];
    for (size_t m = 0; m < stack.members.size(); ++m) {
      homes_[stack.members[m].table] = {static_cast<int>(s), static_cast<int>(m)};
    }
    initializers_.push_back(std::make_shared<StackInitializer>(stack, options_));
    const keras_rs::TableConfig& first = *options_.tables[stack.members[0].table];
    engine_tables_.push_back(make_table({.vocabulary_size = stack.vocabulary_size,
                                         .dim = stack.dim,
                                         .initializer = Initializer(initializers_.back()),
                                         .optimizer = first.optimizer,
                                         .combiner = first.combiner,
                                         .name = stack.name,
                                         .dynamic = first.dynamic}));
  }
  const int partitions = distribute::Strategy::current().num_replicas_in_sync();
  for (const auto& table : options_.tables) {
    limiters_.emplace_back(
        table->name,
        IdLimits{.max_ids_per_partition = table->max_ids_per_partition,
                 .max_unique_ids_per_partition = table->max_unique_ids_per_partition},
        options_.id_limit_policy, partitions, options_.update_stats, "DistributedEmbedding",
        table->dynamic.has_value());
  }
  Nest<FeatureConfig>::Dict features;
  for (const SparseCoreFeature& f : options_.features) {
    features.emplace(f.path, FeatureConfig{.table = engine_tables_[homes_[f.table].stack]});
  }
  return layers::TPUEmbedding({.feature_config = std::move(features), .name = options_.name});
}

Variable SparseCore::build(const std::vector<RandomStream>& streams) {
  for (size_t s = 0; s < stacks_.size(); ++s) {
    std::vector<RandomStream> of_members;
    for (const StackMember& m : stacks_[s].members) of_members.push_back(streams[m.table]);
    initializers_[s]->set_streams(std::move(of_members));
  }
  Specs::Dict specs;
  for (const SparseCoreFeature& f : options_.features) {
    specs.emplace(f.path, TensorSpec{.shape = {kUnknown, kUnknown},
                                     .dtype = key_dtype(*options_.tables[f.table]),
                                     .layout = Layout::kRagged});
  }
  engine_->build(specs);
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    const keras_rs::TableConfig& table = *options_.tables[t];
    if (!table.dynamic) continue;
    const Initializer initializer = table_initializer(table);
    // The first replica that calls the layer builds it, before any update.
    dynamic_table(static_cast<int>(t))
        .access_(false)
        .set_initial_rows({table.embedding_dim, initializer,
                           table.dynamic->not_admitted.initializer.value_or(initializer),
                           streams[t]});
  }
  return engine_->trainable_variables().at(0);
}

DynamicTable SparseCore::dynamic_table(int table) const {
  return engine_->dynamic_table(engine_tables_[homes_[table].stack]);
}

void SparseCore::apply_limits(std::vector<IdRows>& features) {
  if (options_.id_limit_policy == IdLimitPolicy::kUnlimited && !options_.update_stats) return;
  for (size_t t = 0; t < limiters_.size(); ++t) {
    std::vector<IdRows*> of_table;
    for (size_t f = 0; f < features.size(); ++f) {
      if (options_.features[f].table == static_cast<int>(t)) of_table.push_back(&features[f]);
    }
    limiters_[t].apply(of_table);
  }
}

std::vector<Tensor> SparseCore::look_up(std::vector<IdRows>& features) {
  apply_limits(features);
  Tensors::Dict ids;
  Nest<std::optional<TensorLike>>::Dict weights;
  bool weighted = false;
  for (size_t f = 0; f < features.size(); ++f) {
    const SparseCoreFeature& feature = options_.features[f];
    const IdRows& rows = features[f];
    const Tensor engine_ids = shifted(stack_of(feature.table), member_of(feature.table), rows.ids);
    ids.emplace(feature.path, RaggedTensor{engine_ids, rows.row_splits});
    std::optional<TensorLike> of_rows;
    if (rows.weights) of_rows = RaggedTensor{rows.weights, rows.row_splits};
    weights.emplace(feature.path, std::move(of_rows));
    weighted = weighted || rows.weights;
  }
  TPUEmbeddingCallOptions options;
  if (weighted) options.weights = std::move(weights);
  const Tensors found = engine_(Tensors(std::move(ids)), options);
  std::vector<Tensor> out;
  for (const SparseCoreFeature& feature : options_.features) {
    const Tensor values = found[feature.path].tensor();
    const int64_t dim = member_of(feature.table).dim;
    out.push_back(values.dim(1) == dim ? values : ops::slice(values, 1, 0, dim));
  }
  return out;
}

std::vector<StateEntry> SparseCore::state_entries(int table) const {
  const TableStack& stack = stack_of(table);
  const StackMember& member = member_of(table);
  std::vector<StateEntry> out;
  for (StateEntry& entry : engine_->state_entries()) {
    const bool is_slot = entry.name.starts_with(stack.name + "/");
    if (entry.name != stack.name && !is_slot) continue;
    entry.name = member.name + "/embeddings" + entry.name.substr(stack.name.size());
    out.push_back(stack.members.size() == 1
                      ? std::move(entry)
                      : member_entry(MemberRows{stack, homes_[table].member}, std::move(entry)));
  }
  return out;
}

}  // namespace keel
