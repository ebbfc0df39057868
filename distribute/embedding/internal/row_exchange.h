// Exchange of gradient rows of variables with the replicas that own the rows: row r belongs to
// replica r mod replicas.
#pragma once

#include <span>
#include <vector>

#include <keel/distribute/communicator.h>

namespace keel::distribute {

// Rows of one table that one replica owns.
struct OwnedRows {
  std::vector<int64_t> ids;   // [n]
  std::vector<float> values;  // [n, dim]
};

// Rows of one table that one replica contributes; ids may repeat.
struct OutgoingRows {
  std::span<const int64_t> ids;   // [n]
  std::span<const float> values;  // [n, dim]
  int64_t dim = 1;
};

// Sends the rows of each table to their owners. Returns the received rows in replica order, those
// of one replica in the order in which it passed them. Collective: every replica passes the same
// tables.
std::vector<OwnedRows> send_rows_to_owners(Communicator& communicator,
                                           std::span<const OutgoingRows> tables);

// Returns each id once, in ascending order, with the sum of its rows added in their order.
OwnedRows sum_equal_rows(const OwnedRows& rows, int64_t dim);

// Combines both functions: returns for each table the sums over replicas of the rows that this
// replica owns.
std::vector<OwnedRows> sum_rows_to_owners(Communicator& communicator,
                                          std::span<const OutgoingRows> tables);

// Distributes rows to the copies of tables that every process has. Each owner sends its rows to the
// other processes. Returns the rows that this rank has to write into the copy of its process: its
// own rows and its share of those owned by ranks of other processes. Collective: every replica
// passes its rows of the same tables, whose row sizes are `dims`.
std::vector<OwnedRows> all_gather_owned_rows(Communicator& communicator,
                                             std::vector<OwnedRows> owned,
                                             std::span<const int64_t> dims);

}  // namespace keel::distribute
