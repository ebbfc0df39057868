// Rows of gradients of variables on their way to the replicas that own the rows: row r belongs to
// replica r mod replicas.
#pragma once

#include <span>
#include <vector>

#include <keel/distribute/communicator.h>

namespace keel::distribute {

// Rows that one replica owns.
struct OwnedRows {
  std::vector<int64_t> ids;   // [n]
  std::vector<float> values;  // [n, dim]
};

// Rows of one table that one replica has something for; ids may repeat.
struct OutgoingRows {
  std::span<const int64_t> ids;   // [n]
  std::span<const float> values;  // [n, dim]
  int64_t dim = 1;
};

// Brings the rows of each table to their owners: what came, in replica order, and of each replica
// in the order it gave. Collective: every replica passes the same tables.
std::vector<OwnedRows> send_rows_to_owners(Communicator& communicator,
                                           std::span<const OutgoingRows> tables);

// Each id once, ascending, with the sum of its rows in the order they stand.
OwnedRows sum_equal_rows(const OwnedRows& rows, int64_t dim);

// Both: for each table the sums over replicas of each row, in the replica that owns the row.
std::vector<OwnedRows> sum_rows_to_owners(Communicator& communicator,
                                          std::span<const OutgoingRows> tables);

// For tables that every process has a copy of: each owner tells the other processes its rows.
// Returns what this rank is to write into the copy of its process: its own rows and its share of
// those that ranks of other processes own. Collective: every replica passes its rows of the same
// tables, whose widths are `dims`.
std::vector<OwnedRows> share_owned_rows(Communicator& communicator, std::vector<OwnedRows> owned,
                                        std::span<const int64_t> dims);

}  // namespace keel::distribute
