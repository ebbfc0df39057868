#include "distribute/embedding/row_exchange.h"

#include <algorithm>

#include "framework/kernels/unique.h"

namespace keel::distribute {
namespace {

// What goes to one owner: for each table a count, then the ids of all tables; and their rows.
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
      Message& m = out[table.partition == nullptr ? id % replicas : table.partition->owner(id)];
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
  std::vector<Bytes> id_bytes, row_bytes;
  for (const Message& m : messages) {
    id_bytes.push_back(as_bytes_of<int64_t>(m.ids));
    row_bytes.push_back(as_bytes_of<float>(m.rows));
  }
  const std::vector<Bytes> received_ids = communicator.all_to_all(id_bytes);
  const std::vector<Bytes> received_rows = communicator.all_to_all(row_bytes);
  for (int r = 0; r < size; ++r) {
    std::span<const int64_t> ids = as_elements<int64_t>(received_ids[r]);
    std::span<const float> rows = as_elements<float>(received_rows[r]);
    const std::span<const int64_t> counts = take(ids, static_cast<int64_t>(tables.size()));
    for (size_t t = 0; t < tables.size(); ++t) {
      const auto table_ids = take(ids, counts[t]);
      const auto table_rows = take(rows, counts[t] * tables[t].dim);
      out[t].ids.insert(out[t].ids.end(), table_ids.begin(), table_ids.end());
      out[t].values.insert(out[t].values.end(), table_rows.begin(), table_rows.end());
    }
  }
  // The messages die with this call; nobody may still be reading them.
  communicator.barrier();
  return out;
}

OwnedRows sum_equal_rows(const OwnedRows& rows, int64_t dim) {
  kernels::GroupedIds groups;
  kernels::group_ids(rows.ids, groups);
  OwnedRows out;
  out.values.resize(groups.distinct.size() * dim);
  kernels::sum_groups(groups, rows.values.data(), dim, out.values.data());
  out.ids = std::move(groups.distinct);
  return out;
}

std::vector<OwnedRows> sum_rows_to_owners(Communicator& communicator,
                                          std::span<const OutgoingRows> tables) {
  std::vector<OwnedRows> out = send_rows_to_owners(communicator, tables);
  for (size_t t = 0; t < tables.size(); ++t) out[t] = sum_equal_rows(out[t], tables[t].dim);
  return out;
}

}  // namespace keel::distribute
