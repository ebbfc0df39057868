#include "distribute/embedding/engine.h"

#include <algorithm>

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

}  // namespace

class EmbeddingEngine::Ticket {
 public:
  std::vector<TableRoute> routes;      // by table
  std::vector<FeatureBatch> features;  // by feature
  bool used = false;
};

struct EmbeddingEngine::State {
  std::vector<EngineTable> tables;
  std::vector<int> feature_tables;
  Partition partition;
  std::vector<std::vector<Shard>> shards;  // by table, by replica
  std::vector<Scratch> scratch;            // by replica

  void check(const std::vector<FeatureBatch>& features) const;
  std::vector<TableRoute> routes_of(const std::vector<FeatureBatch>& features) const;
  void fetch(Communicator& communicator, const std::vector<TableRoute>& routes,
             Scratch& scratch) const;
  void localize(const TableRoute& route, std::vector<int64_t>& local) const;
  std::vector<Tensor> pool(const std::vector<TableRoute>& routes,
                           const std::vector<FeatureBatch>& features, Scratch& scratch) const;
  OutgoingRows row_gradients(int table, const Ticket& ticket, const std::vector<Tensor>& gradients,
                             std::vector<float>& out) const;
};

void EmbeddingEngine::State::check(const std::vector<FeatureBatch>& features) const {
  if (features.size() != feature_tables.size()) {
    throw ValueError("EmbeddingEngine: ", features.size(), " features for ", feature_tables.size());
  }
  for (size_t f = 0; f < features.size(); ++f) {
    const EngineTable& table = tables[feature_tables[f]];
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
  std::vector<TableRoute> routes(tables.size());
  for (size_t f = 0; f < features.size(); ++f) {
    const auto ids = features[f].ids.data<int64_t>();
    std::vector<int64_t>& all = routes[feature_tables[f]].ids;
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
  const size_t count = tables.size();
  s.requests.resize(size);
  for (auto& request : s.requests) request.assign(count, 0);
  for (size_t t = 0; t < count; ++t) {
    for (int64_t id : routes[t].groups.distinct) {
      std::vector<int64_t>& request = s.requests[partition.owner(id)];
      ++request[t];
      request.push_back(id);
    }
  }
  const std::vector<Bytes> asked = communicator.all_to_all(as_messages(s.requests));
  s.replies.resize(size);
  for (int r = 0; r < size; ++r) {
    const auto request = as_elements<int64_t>(asked[r]);
    int64_t floats = 0;
    for (size_t t = 0; t < count; ++t) floats += request[t] * tables[t].dim;
    s.replies[r].resize(floats);
    float* out = s.replies[r].data();
    auto ids = request.subspan(count);
    for (size_t t = 0; t < count; ++t) {
      shards[t][me].gather(ids.first(request[t]), out);
      out += request[t] * tables[t].dim;
      ids = ids.subspan(request[t]);
    }
  }
  const std::vector<Bytes> answers = communicator.all_to_all(as_messages(s.replies));
  s.fetched.resize(count);
  for (auto& rows : s.fetched) rows.clear();
  for (int owner = 0; owner < size; ++owner) {
    auto rows = as_elements<float>(answers[owner]);
    for (size_t t = 0; t < count; ++t) {
      const auto part = rows.first(s.requests[owner][t] * tables[t].dim);
      s.fetched[t].insert(s.fetched[t].end(), part.begin(), part.end());
      rows = rows.subspan(part.size());
    }
  }
}

// local[p] = the row of `fetched` that holds the id at position p.
void EmbeddingEngine::State::localize(const TableRoute& route, std::vector<int64_t>& local) const {
  std::vector<int64_t> next(partition.shards + 1);  // row of the next id of each owner
  for (int64_t id : route.groups.distinct) ++next[partition.owner(id) + 1];
  for (int o = 0; o < partition.shards; ++o) next[o + 1] += next[o];
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
  for (size_t t = 0; t < tables.size(); ++t) {
    localize(routes[t], s.local);
    int64_t offset = 0;  // of the feature's positions among the table's
    for (size_t f = 0; f < features.size(); ++f) {
      if (feature_tables[f] != static_cast<int>(t)) continue;
      const FeatureBatch& batch = features[f];
      const int64_t samples = batch.row_splits.size() - 1;
      out[f] = Tensor::uninitialized({samples, tables[t].dim}, DType::kFloat32);
      const kernels::Bags bags{
          .ids = s.local.data() + offset,
          .splits = batch.row_splits.data<int64_t>().data(),
          .samples = samples,
          .weights = batch.weights ? batch.weights.data<float>().data() : nullptr};
      kernels::pooled_gather(s.fetched[t].data(), tables[t].dim, bags, tables[t].combiner,
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
  const int64_t dim = tables[table].dim;
  std::vector<Contribution> contributions;
  contributions.reserve(route.ids.size());
  std::vector<float> gains;
  for (size_t f = 0; f < ticket.features.size(); ++f) {
    if (feature_tables[f] != table) continue;
    const FeatureBatch& batch = ticket.features[f];
    const auto splits = batch.row_splits.data<int64_t>();
    gains.resize(batch.ids.size());
    kernels::pooling_gains(
        {.ids = batch.ids.data<int64_t>().data(),
         .splits = splits.data(),
         .samples = static_cast<int64_t>(splits.size()) - 1,
         .weights = batch.weights ? batch.weights.data<float>().data() : nullptr},
        tables[table].combiner, gains.data());
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
  if (!tables[table].update.use_gradient_accumulation) {
    out.assign(route.ids.size() * dim, 0.0F);
    for (size_t p = 0; p < route.ids.size(); ++p) {
      add(static_cast<int64_t>(p), out.data() + p * dim);
    }
    return {.ids = route.ids, .values = out, .dim = dim};
  }
  const kernels::GroupedIds& groups = route.groups;
  out.assign(groups.distinct.size() * dim, 0.0F);
  for (size_t g = 0; g < groups.distinct.size(); ++g) {
    for (int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
      add(groups.positions[i], out.data() + g * dim);
    }
  }
  return {.ids = groups.distinct, .values = out, .dim = dim};
}

EmbeddingEngine::EmbeddingEngine(std::vector<EngineTable> tables, std::vector<int> feature_tables,
                                 int shards)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.tables = std::move(tables);
  s.feature_tables = std::move(feature_tables);
  s.partition = {.shards = shards};
  s.scratch.resize(shards);
  for (const EngineTable& t : s.tables) {
    const std::vector<Slot> slots =
        t.update.rule == nullptr ? std::vector<Slot>{} : t.update.rule->slots();
    std::vector<Shard>& of_table = s.shards.emplace_back();
    for (int i = 0; i < shards; ++i) of_table.emplace_back(t.rows, t.dim, slots, s.partition, i);
  }
}

EmbeddingEngine::~EmbeddingEngine() = default;

const std::vector<EngineTable>& EmbeddingEngine::tables() const { return state_->tables; }
int EmbeddingEngine::shards() const { return state_->partition.shards; }

void EmbeddingEngine::initialize(int table, const InitializerFunction& initializer,
                                 const RandomStream& stream) {
  for (Shard& shard : state_->shards.at(table)) shard.initialize(initializer, stream);
}

void EmbeddingEngine::read_rows(int table, int part, int64_t begin, int64_t end, float* out) const {
  const int64_t dim = state_->tables.at(table).dim;
  for (int64_t row = begin; row < end; ++row) {
    const Shard& shard = state_->shards[table][state_->partition.owner(row)];
    std::copy_n(shard.row(part, row), dim, out + (row - begin) * dim);
  }
}

void EmbeddingEngine::write_rows(int table, int part, int64_t begin, int64_t end,
                                 const float* values) {
  const int64_t dim = state_->tables.at(table).dim;
  for (int64_t row = begin; row < end; ++row) {
    Shard& shard = state_->shards[table][state_->partition.owner(row)];
    std::copy_n(values + (row - begin) * dim, dim, shard.mutable_row(part, row));
  }
}

Tensor EmbeddingEngine::retrieve(int table, int part) const {
  const EngineTable& t = state_->tables.at(table);
  Tensor out = Tensor::uninitialized({t.rows, t.dim}, DType::kFloat32);
  read_rows(table, part, 0, t.rows, out.mutable_data<float>().data());
  return out;
}

void EmbeddingEngine::load(int table, int part, const Tensor& values) {
  const EngineTable& t = state_->tables.at(table);
  if (values.shape() != Shape{t.rows, t.dim} || values.dtype() != DType::kFloat32) {
    throw ValueError("EmbeddingEngine: table '", t.name, "' is float32 ", Shape{t.rows, t.dim},
                     ", received ", values.dtype(), " ", values.shape());
  }
  write_rows(table, part, 0, t.rows, values.data<float>().data());
}

EmbeddingEngine::Activations EmbeddingEngine::lookup(Communicator& communicator,
                                                     const std::vector<FeatureBatch>& features) {
  State& s = *state_;
  if (communicator.size() != s.partition.shards) {
    throw RuntimeError("EmbeddingEngine: made for ", s.partition.shards, " replicas, looked up in ",
                       communicator.size());
  }
  s.check(features);
  Scratch& scratch = s.scratch[communicator.rank()];
  auto ticket = std::make_shared<Ticket>();
  ticket->features = features;
  ticket->routes = s.routes_of(features);
  s.fetch(communicator, ticket->routes, scratch);
  std::vector<Tensor> values = s.pool(ticket->routes, features, scratch);
  return {.values = std::move(values), .ticket = std::move(ticket)};
}

void EmbeddingEngine::apply(Communicator& communicator, Ticket& ticket,
                            const std::vector<Tensor>& gradients, const std::vector<Step>& steps) {
  if (ticket.used) {
    throw RuntimeError(
        "EmbeddingEngine: the gradient of one lookup was asked for twice; a lookup "
        "updates its tables once");
  }
  ticket.used = true;
  State& s = *state_;
  const int me = communicator.rank();
  const size_t count = s.tables.size();
  std::vector<std::vector<float>> buffers(count);
  std::vector<OutgoingRows> outgoing;
  for (size_t t = 0; t < count; ++t) {
    outgoing.push_back(s.row_gradients(static_cast<int>(t), ticket, gradients, buffers[t]));
  }
  std::vector<OwnedRows> rows = send_rows_to_owners(communicator, outgoing);
  for (size_t t = 0; t < count; ++t) {
    const EngineTable& table = s.tables[t];
    if (table.update.rule == nullptr) continue;
    if (table.update.use_gradient_accumulation && communicator.size() > 1) {
      rows[t] = sum_equal_rows(rows[t], table.dim);
    }
    if (table.update.lazy) {
      s.shards[t][me].update(table.update, rows[t], steps[t]);
    } else {
      s.shards[t][me].update_all(table.update, rows[t], steps[t]);
    }
  }
  // Nobody looks up rows before all are written.
  communicator.barrier();
}

}  // namespace keel::distribute
