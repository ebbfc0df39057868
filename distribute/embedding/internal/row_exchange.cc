#include <keel/distribute/embedding/internal/row_exchange.h>

#include <algorithm>

#include <keel/distribute/internal/placement.h>
#include <keel/framework/kernels/embedding/unique.h>

namespace keel::distribute {
namespace {

// The message to one owner: a count per table, then the ids of all tables, and their rows.
struct Message {
  std::vector<int64_t> ids;
  std::vector<float> rows;
};

std::vector<Message> sort_by_owner(std::span<const OutgoingRows> tables, int replicas) {
  std::vector<Message> out(replicas);
  for (Message& m : out) m.ids.resize(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    const OutgoingRows& table = tables[t];
    for (size_t i = 0; i < table.ids.size(); ++i) {
      const int64_t id = table.ids[i];
      Message& m = out[id % replicas];
      ++m.ids[t];
      m.ids.push_back(table.ids[i]);
      const float* row = table.values.data() + i * table.dim;
      m.rows.insert(m.rows.end(), row, row + table.dim);
    }
  }
  return out;
}

template <class T>
std::span<const T> take(std::span<const T>& rest, int64_t count) {
  const std::span<const T> head = rest.first(count);
  rest = rest.subspan(count);
  return head;
}

// Sends each rank two messages, ids (a count per table, then the ids of all tables) and rows, and
// appends the received rows to `out`, by sender.
void exchange_rows(Communicator& communicator, const std::vector<Bytes>& send,
                   std::span<const int64_t> dims, std::vector<OwnedRows>& out) {
  const std::vector<Bytes> received = communicator.all_to_all(send, "rows");
  for (int r = 0; r < communicator.size(); ++r) {
    std::span<const int64_t> ids_here = as_elements<int64_t>(received[2 * r]);
    std::span<const float> rows_here = as_elements<float>(received[2 * r + 1]);
    if (ids_here.empty()) continue;
    const auto counts = take(ids_here, static_cast<int64_t>(dims.size()));
    for (size_t t = 0; t < dims.size(); ++t) {
      const auto table_ids = take(ids_here, counts[t]);
      const auto table_rows = take(rows_here, counts[t] * dims[t]);
      out[t].ids.insert(out[t].ids.end(), table_ids.begin(), table_ids.end());
      out[t].values.insert(out[t].values.end(), table_rows.begin(), table_rows.end());
    }
  }
  // The caller frees the messages, so wait until no rank reads them any more.
  communicator.local_barrier("rows received");
}

}  // namespace

std::vector<OwnedRows> send_rows_to_owners(Communicator& communicator,
                                           std::span<const OutgoingRows> tables) {
  const int size = communicator.size();
  std::vector<OwnedRows> out(tables.size());
  if (size == 1) {
    for (size_t t = 0; t < tables.size(); ++t) {
      out[t].ids.assign(tables[t].ids.begin(), tables[t].ids.end());
      out[t].values.assign(tables[t].values.begin(), tables[t].values.end());
    }
    return out;
  }
  const std::vector<Message> messages = sort_by_owner(tables, size);
  std::vector<Bytes> send;
  for (const Message& m : messages) {
    send.push_back(as_bytes_of<int64_t>(m.ids));
    send.push_back(as_bytes_of<float>(m.rows));
  }
  std::vector<int64_t> dims;
  for (const OutgoingRows& table : tables) dims.push_back(table.dim);
  exchange_rows(communicator, send, dims, out);
  return out;
}

OwnedRows sum_equal_rows(const OwnedRows& rows, int64_t dim) {
  kernels::GroupedIds groups;
  kernels::group_ids(rows.ids, groups);
  OwnedRows out;
  out.values.resize(groups.distinct.size() * dim);
  kernels::sum_groups(groups, rows.values.data(), dim, out.values.data());
  out.ids.assign(groups.distinct.begin(), groups.distinct.end());
  return out;
}

std::vector<OwnedRows> sum_rows_to_owners(Communicator& communicator,
                                          std::span<const OutgoingRows> tables) {
  std::vector<OwnedRows> out = send_rows_to_owners(communicator, tables);
  for (size_t t = 0; t < tables.size(); ++t) out[t] = sum_equal_rows(out[t], tables[t].dim);
  return out;
}

std::vector<OwnedRows> all_gather_owned_rows(Communicator& communicator,
                                             std::vector<OwnedRows> owned,
                                             std::span<const int64_t> dims) {
  const Placement& placement = communicator.placement();
  if (placement.processes() == 1) return owned;
  Message mine;
  for (const OwnedRows& table : owned) {
    mine.ids.push_back(static_cast<int64_t>(table.ids.size()));
  }
  for (const OwnedRows& table : owned) {
    mine.ids.insert(mine.ids.end(), table.ids.begin(), table.ids.end());
    mine.rows.insert(mine.rows.end(), table.values.begin(), table.values.end());
  }
  std::vector<Bytes> send(2 * static_cast<size_t>(communicator.size()));
  for (int p = 0; p < placement.processes(); ++p) {
    if (p == placement.process) continue;
    const int there = placement.first[p + 1] - placement.first[p];
    const int to = placement.first[p] + communicator.rank() % there;
    send[2 * to] = as_bytes_of<int64_t>(mine.ids);
    send[2 * to + 1] = as_bytes_of<float>(mine.rows);
  }
  exchange_rows(communicator, send, dims, owned);
  return owned;
}

}  // namespace keel::distribute
