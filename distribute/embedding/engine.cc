#include "distribute/embedding/engine.h"

#include <algorithm>
#include <cmath>

#include "distribute/embedding/shard.h"
#include "framework/kernels/unique.h"

namespace keel::distribute {
namespace {

// The ids of one table in one replica's batch, over all features in feature order.
struct TableRoute {
  std::vector<int64_t> ids;    // by position
  kernels::GroupedIds groups;  // positions by distinct id
};

// Where the gradient of each position of a table comes from.
struct Contribution {
  const float* row = nullptr;  // null: zero
  float gain = 0;
};

// Buffers of one replica's lookups, kept from step to step. They live until the replica's next
// collective has returned, as the communicator asks of what is sent.
struct Scratch {
  std::vector<std::vector<int64_t>> requests;  // by owner: a count per table, then ids
  std::vector<std::vector<float>> replies;     // by asking replica: rows, table after table
  std::vector<std::vector<float>> fetched;     // by table: rows of the distinct ids, by owner
  std::vector<int64_t> local;                  // ids of one table as rows of `fetched`
};

template <class T>
std::vector<Bytes> as_messages(const std::vector<std::vector<T>>& parts) {
  std::vector<Bytes> out;
  for (const std::vector<T>& part : parts) out.push_back(as_bytes_of<T>(part));
  return out;
}

void quantize(const Quantization& q, std::vector<float>& values) {
  const double quantum = (q.upper - q.lower) / static_cast<double>(q.num_buckets - 1);
  for (float& x : values) {
    const double clipped = std::clamp<double>(x, q.lower, q.upper);
    x = static_cast<float>(std::floor((clipped - q.lower) / quantum + 0.5) * quantum + q.lower);
  }
}

// Names the shapes of the tables, as the label of a lookup: processes whose tables differ, say by
// vocabularies that each has made of its own data, must not take each other's ids. Not the tables'
// names: numbers in them may differ.
std::string label_of(const EngineConfiguration& configuration) {
  std::string all;
  for (const EngineTable& t : configuration.tables) all += str(t.rows, ' ', t.dim, ' ');
  const size_t hash = std::hash<std::string>()(all);
  return str("ids to look up in tables ", std::hex, hash);
}

}  // namespace

class EmbeddingEngine::Ticket {
 public:
  std::vector<TableRoute> routes;      // by table
  std::vector<FeatureBatch> features;  // by feature
  bool used = false;
};

struct EmbeddingEngine::State {
  // An update that waits for the next lookup.
  struct Pending {
    std::shared_ptr<Ticket> ticket;
    std::vector<Tensor> gradients;
    std::vector<TableStep> steps;
  };

  EngineConfiguration configuration;
  std::string label;  // of lookups
  int first_shard = 0;
  std::vector<Partition> partitions;          // by table
  std::vector<std::vector<Shard>> shards;     // by table, by local replica
  std::vector<Scratch> scratch;               // by local replica
  std::vector<std::vector<Pending>> pending;  // by local replica, oldest first

  const std::vector<EngineTable>& tables() const { return configuration.tables; }
  int table_of(size_t feature) const { return configuration.features[feature].table_id; }
  Shard& shard_of(int table, int64_t row);
  void check(const std::vector<FeatureBatch>& features) const;
  std::vector<TableRoute> routes_of(const std::vector<FeatureBatch>& features) const;
  void fetch(Communicator& communicator, const std::vector<TableRoute>& routes,
             Scratch& scratch) const;
  void localize(int table, const TableRoute& route, std::vector<int64_t>& local) const;
  std::vector<Tensor> pool(const std::vector<TableRoute>& routes,
                           const std::vector<FeatureBatch>& features, Scratch& scratch) const;
  OutgoingRows row_gradients(int table, const Ticket& ticket, const std::vector<Tensor>& gradients,
                             std::vector<float>& out) const;
  void update(Communicator& communicator, const Pending& pending);
  void run_pending(Communicator& communicator);
};

Shard& EmbeddingEngine::State::shard_of(int table, int64_t row) {
  const int local = partitions[table].owner(row) - first_shard;
  if (local < 0 || local >= static_cast<int>(scratch.size())) {
    throw RuntimeError("EmbeddingEngine: row ", row, " of table '", tables()[table].name,
                       "' lives in another process");
  }
  return shards[table][local];
}

void EmbeddingEngine::State::check(const std::vector<FeatureBatch>& features) const {
  if (features.size() != configuration.features.size()) {
    throw ValueError("EmbeddingEngine: ", features.size(), " features for ",
                     configuration.features.size());
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const EngineTable& table = tables()[table_of(f)];
    const auto ids = features[f].ids.data<int64_t>();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= table.rows) {
        throw ValueError("EmbeddingEngine: feature ", f, ": id ", ids[i], " at position ", i,
                         " is outside table '", table.name, "' of ", table.rows, " rows");
      }
    }
  }
}

std::vector<TableRoute> EmbeddingEngine::State::routes_of(
    const std::vector<FeatureBatch>& features) const {
  std::vector<TableRoute> routes(tables().size());
  for (size_t f = 0; f < features.size(); ++f) {
    const auto ids = features[f].ids.data<int64_t>();
    std::vector<int64_t>& all = routes[table_of(f)].ids;
    all.insert(all.end(), ids.begin(), ids.end());
  }
  for (TableRoute& route : routes) kernels::group_ids(route.ids, route.groups);
  return routes;
}

// Brings the rows of the distinct ids of every table into scratch.fetched: by owner and, of one
// owner, by ascending id.
void EmbeddingEngine::State::fetch(Communicator& communicator,
                                   const std::vector<TableRoute>& routes, Scratch& s) const {
  const int size = communicator.size();
  const int me = communicator.rank();
  const size_t count = tables().size();
  s.requests.resize(size);
  for (auto& request : s.requests) request.assign(count, 0);
  for (size_t t = 0; t < count; ++t) {
    const Partition& partition = partitions[t];
    for (int64_t id : routes[t].groups.distinct) {
      std::vector<int64_t>& request = s.requests[partition.owner(id)];
      ++request[t];
      request.push_back(id);
    }
  }
  const std::vector<Bytes> asked = communicator.all_to_all(as_messages(s.requests), label);
  s.replies.resize(size);
  for (int r = 0; r < size; ++r) {
    const auto request = as_elements<int64_t>(asked[r]);
    int64_t floats = 0;
    for (size_t t = 0; t < count; ++t) floats += request[t] * tables()[t].dim;
    s.replies[r].resize(floats);
    float* out = s.replies[r].data();
    auto ids = request.subspan(count);
    for (size_t t = 0; t < count; ++t) {
      shards[t][me - first_shard].gather(ids.first(request[t]), out);
      out += request[t] * tables()[t].dim;
      ids = ids.subspan(request[t]);
    }
  }
  const std::vector<Bytes> answers =
      communicator.all_to_all(as_messages(s.replies), "rows looked up");
  s.fetched.resize(count);
  for (auto& rows : s.fetched) rows.clear();
  for (int owner = 0; owner < size; ++owner) {
    auto rows = as_elements<float>(answers[owner]);
    for (size_t t = 0; t < count; ++t) {
      const auto part = rows.first(s.requests[owner][t] * tables()[t].dim);
      s.fetched[t].insert(s.fetched[t].end(), part.begin(), part.end());
      rows = rows.subspan(part.size());
    }
  }
  for (size_t t = 0; t < count; ++t) {
    if (tables()[t].quantization) quantize(*tables()[t].quantization, s.fetched[t]);
  }
}

// local[p] = the row of `fetched` that holds the id at position p.
void EmbeddingEngine::State::localize(int table, const TableRoute& route,
                                      std::vector<int64_t>& local) const {
  const Partition& partition = partitions[table];
  std::vector<int64_t> next(partition.shards() + 1);  // row of the next id of each owner
  for (int64_t id : route.groups.distinct) ++next[partition.owner(id) + 1];
  for (int o = 0; o < partition.shards(); ++o) next[o + 1] += next[o];
  local.resize(route.ids.size());
  const kernels::GroupedIds& groups = route.groups;
  for (size_t g = 0; g < groups.distinct.size(); ++g) {
    const int64_t row = next[partition.owner(groups.distinct[g])]++;
    for (int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
      local[groups.positions[i]] = row;
    }
  }
}

std::vector<Tensor> EmbeddingEngine::State::pool(const std::vector<TableRoute>& routes,
                                                 const std::vector<FeatureBatch>& features,
                                                 Scratch& s) const {
  std::vector<Tensor> out(features.size());
  for (size_t t = 0; t < tables().size(); ++t) {
    localize(static_cast<int>(t), routes[t], s.local);
    int64_t offset = 0;  // of the feature's positions among the table's
    for (size_t f = 0; f < features.size(); ++f) {
      if (table_of(f) != static_cast<int>(t)) continue;
      const FeatureBatch& batch = features[f];
      const int64_t samples = batch.row_splits.size() - 1;
      out[f] = Tensor::uninitialized({samples, tables()[t].dim}, DType::kFloat32);
      const kernels::Bags bags{
          .ids = s.local.data() + offset,
          .splits = batch.row_splits.data<int64_t>().data(),
          .samples = samples,
          .weights = batch.weights ? batch.weights.data<float>().data() : nullptr};
      kernels::pooled_gather(s.fetched[t].data(), tables()[t].dim, bags, tables()[t].combiner,
                             out[f].mutable_data<float>().data());
      offset += batch.ids.size();
    }
  }
  return out;
}

// With accumulation one row for each distinct id, summed in ascending order of position; without,
// one for each position.
OutgoingRows EmbeddingEngine::State::row_gradients(int table, const Ticket& ticket,
                                                   const std::vector<Tensor>& gradients,
                                                   std::vector<float>& out) const {
  const TableRoute& route = ticket.routes[table];
  const int64_t dim = tables()[table].dim;
  std::vector<Contribution> contributions;
  contributions.reserve(route.ids.size());
  std::vector<float> gains;
  for (size_t f = 0; f < ticket.features.size(); ++f) {
    if (table_of(f) != table) continue;
    const FeatureBatch& batch = ticket.features[f];
    const auto splits = batch.row_splits.data<int64_t>();
    gains.resize(batch.ids.size());
    kernels::pooling_gains(
        {.ids = batch.ids.data<int64_t>().data(),
         .splits = splits.data(),
         .samples = static_cast<int64_t>(splits.size()) - 1,
         .weights = batch.weights ? batch.weights.data<float>().data() : nullptr},
        tables()[table].combiner, gains.data());
    const float* rows = gradients[f] ? gradients[f].data<float>().data() : nullptr;
    for (size_t s = 0; s + 1 < splits.size(); ++s) {
      for (int64_t p = splits[s]; p < splits[s + 1]; ++p) {
        contributions.push_back(
            {.row = rows == nullptr ? nullptr : rows + s * dim, .gain = gains[p]});
      }
    }
  }
  const auto add = [&](int64_t position, float* to) {
    const Contribution& c = contributions[position];
    if (c.row == nullptr) return;
    for (int64_t i = 0; i < dim; ++i) to[i] += c.gain * c.row[i];
  };
  if (!tables()[table].update.use_gradient_accumulation) {
    out.assign(route.ids.size() * dim, 0.0F);
    for (size_t p = 0; p < route.ids.size(); ++p) {
      add(static_cast<int64_t>(p), out.data() + p * dim);
    }
    return {.ids = route.ids, .values = out, .dim = dim, .partition = &partitions[table]};
  }
  const kernels::GroupedIds& groups = route.groups;
  out.assign(groups.distinct.size() * dim, 0.0F);
  for (size_t g = 0; g < groups.distinct.size(); ++g) {
    for (int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
      add(groups.positions[i], out.data() + g * dim);
    }
  }
  return {.ids = groups.distinct, .values = out, .dim = dim, .partition = &partitions[table]};
}

// Sums the gradients at the owners of the rows and steps the rows.
void EmbeddingEngine::State::update(Communicator& communicator, const Pending& p) {
  const int local = communicator.rank() - first_shard;
  const size_t count = tables().size();
  std::vector<std::vector<float>> buffers(count);
  std::vector<OutgoingRows> outgoing;
  for (size_t t = 0; t < count; ++t) {
    outgoing.push_back(row_gradients(static_cast<int>(t), *p.ticket, p.gradients, buffers[t]));
  }
  std::vector<OwnedRows> rows = send_rows_to_owners(communicator, outgoing);
  for (size_t t = 0; t < count; ++t) {
    const RowUpdate& by = tables()[t].update;
    if (by.rule == nullptr) continue;
    const Step step = {.learning_rate = p.steps[t].learning_rate,
                       .iteration = p.steps[t].iteration,
                       .hyperparameters = p.steps[t].hyperparameters};
    if (by.use_gradient_accumulation && communicator.size() > 1) {
      rows[t] = sum_equal_rows(rows[t], tables()[t].dim);
    }
    if (by.lazy) {
      shards[t][local].update(by, rows[t], step);
    } else {
      shards[t][local].update_all(by, rows[t], step);
    }
  }
  // Nobody looks up rows before all are written.
  communicator.barrier("rows updated");
}

// An update waits until it is done, so that it does not get lost where a run fails before.
void EmbeddingEngine::State::run_pending(Communicator& communicator) {
  std::vector<Pending>& waiting = pending[communicator.rank() - first_shard];
  while (!waiting.empty()) {
    update(communicator, waiting.front());
    waiting.erase(waiting.begin());
  }
}

EmbeddingEngine::EmbeddingEngine(const EngineConfiguration& configuration, const LocalShards& local)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.configuration = configuration;
  s.label = label_of(configuration);
  s.first_shard = local.first;
  const int count = local.count < 0 ? shards() - local.first : local.count;
  s.scratch.resize(count);
  s.pending.resize(count);
  for (const EngineTable& t : tables()) {
    const std::vector<Slot> slots =
        t.update.rule == nullptr ? std::vector<Slot>{} : t.update.rule->slots();
    const Partition& partition = s.partitions.emplace_back(t.rows, configuration.sharding());
    std::vector<Shard>& of_table = s.shards.emplace_back();
    for (int i = 0; i < count; ++i) {
      of_table.emplace_back(t.dim, slots, partition, local.first + i);
    }
  }
}

EmbeddingEngine::~EmbeddingEngine() = default;

const EngineConfiguration& EmbeddingEngine::configuration() const { return state_->configuration; }

void EmbeddingEngine::initialize(int table, int part, int64_t rows,
                                 const InitializerFunction& initializer,
                                 const RandomStream& stream) {
  for (Shard& shard : state_->shards.at(table)) shard.initialize(part, rows, initializer, stream);
}

std::pair<int64_t, int64_t> EmbeddingEngine::local_rows(int table) const {
  const State& s = *state_;
  const Partition& partition = s.partitions.at(table);
  const auto local = static_cast<int>(s.scratch.size());
  if (local == shards()) return {0, tables()[table].rows};
  if (configuration().sharding_strategy == ShardingStrategy::kMod) {
    throw NotImplementedError(
        "EmbeddingEngine: rows dealt to hosts in turn cannot be read or "
        "written where hosts are several processes; use div");
  }
  const int cores = configuration().sharding().cores_per_host;
  const int end = (s.first_shard + local) / cores;
  return {partition.first_row_of_host(s.first_shard / cores), partition.first_row_of_host(end)};
}

void EmbeddingEngine::read_rows(int table, int part, int64_t begin, int64_t end, float* out) const {
  const int64_t dim = tables().at(table).dim;
  for (int64_t row = begin; row < end; ++row) {
    std::copy_n(state_->shard_of(table, row).row(part, row), dim, out + (row - begin) * dim);
  }
}

void EmbeddingEngine::write_rows(int table, int part, int64_t begin, int64_t end,
                                 const float* values) {
  const int64_t dim = tables().at(table).dim;
  for (int64_t row = begin; row < end; ++row) {
    std::copy_n(values + (row - begin) * dim, dim,
                state_->shard_of(table, row).mutable_row(part, row));
  }
}

Tensor EmbeddingEngine::retrieve(int table, int part) const {
  const EngineTable& t = tables().at(table);
  Tensor out = Tensor::uninitialized({t.rows, t.dim}, DType::kFloat32);
  read_rows(table, part, 0, t.rows, out.mutable_data<float>().data());
  return out;
}

void EmbeddingEngine::load(int table, int part, const Tensor& values) {
  const EngineTable& t = tables().at(table);
  if (values.shape() != Shape{t.rows, t.dim} || values.dtype() != DType::kFloat32) {
    throw ValueError("EmbeddingEngine: table '", t.name, "' is float32 ", Shape{t.rows, t.dim},
                     ", received ", values.dtype(), " ", values.shape());
  }
  write_rows(table, part, 0, t.rows, values.data<float>().data());
}

EmbeddingEngine::Activations EmbeddingEngine::lookup(Communicator& communicator,
                                                     const std::vector<FeatureBatch>& features,
                                                     bool training) {
  State& s = *state_;
  if (communicator.size() != shards()) {
    throw RuntimeError("EmbeddingEngine: made for ", shards(), " replicas, looked up in ",
                       communicator.size());
  }
  s.check(features);
  if (!training) s.run_pending(communicator);
  Scratch& scratch = s.scratch[communicator.rank() - s.first_shard];
  auto ticket = std::make_shared<Ticket>();
  ticket->features = features;
  ticket->routes = s.routes_of(features);
  s.fetch(communicator, ticket->routes, scratch);
  std::vector<Tensor> values = s.pool(ticket->routes, features, scratch);
  if (training) s.run_pending(communicator);
  return {.values = std::move(values), .ticket = std::move(ticket)};
}

void EmbeddingEngine::apply(Communicator& communicator, std::shared_ptr<Ticket> ticket,
                            std::vector<Tensor> gradients, std::vector<TableStep> steps) {
  if (ticket->used) {
    throw RuntimeError(
        "EmbeddingEngine: the gradient of one lookup was asked for twice; a lookup "
        "updates its tables once");
  }
  ticket->used = true;
  State::Pending update = {
      .ticket = std::move(ticket), .gradients = std::move(gradients), .steps = std::move(steps)};
  if (configuration().pipeline_execution_with_tensor_core) {
    // A replica that leaves its update out is told from the others now, not in the next lookup.
    communicator.barrier("update to wait");
    state_->pending[communicator.rank() - state_->first_shard].push_back(std::move(update));
  } else {
    state_->update(communicator, update);
  }
}

void EmbeddingEngine::drain(Communicator& communicator) { state_->run_pending(communicator); }

bool EmbeddingEngine::has_pending() const {
  return std::ranges::any_of(state_->pending, [](const auto& p) { return !p.empty(); });
}

void EmbeddingEngine::forget_uneven_pending() {
  const auto& pending = state_->pending;
  const size_t first = pending.front().size();
  if (std::ranges::all_of(pending, [&](const auto& p) { return p.size() == first; })) return;
  for (auto& p : state_->pending) p.clear();
}

}  // namespace keel::distribute
