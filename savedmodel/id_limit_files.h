// Files with the limits on the ids of embedding tables, in the form that the tools of
// jax-tpu-embedding read and write ("fdo" is feedback-directed optimization).
//
//   write_id_limits("limits", embedding->id_limits());     // after a run with update_stats
//   embedding->set_id_limits(read_id_limits("limits"));    // before the next one
#pragma once

#include <map>
#include <string>

#include <keel/layers/embedding/distributed/distributed_config.h>

namespace keel {

// Options of write_id_limits().
struct IdLimitFileOptions {
  std::string format = "csv";  // or "npz"
  int process = 0;             // the number of this process in its job
};

// Writes a new file "fdo_stats_<process>_<nanoseconds>.csv" (or .npz) into a folder, which is
// created if it is missing, and returns its path. The file appears as a whole or not at all.
//   csv   a line "key,values", then for each limit its key and its numbers, separated by spaces; a
//         matrix has one line for each row, in quotes
//   npz   an int64 array for each key
// Keys are "<table>_max_ids" and "<table>_max_unique_ids". Throws ValueError for an unknown format,
// a negative process, and a table whose name contains a comma, a quote, a slash or a line break.
// Throws IoError if the file cannot be written.
std::string write_id_limits(const std::string& folder,
                            const std::map<std::string, IdLimits>& limits,
                            const IdLimitFileOptions& options = {});

// Reads the latest file of each process in a folder, csv or npz, and returns the greatest number of
// each key, so that the limits suffice for all processes and partitions. Other keys and other files
// are ignored. A limit without a key keeps its default. Throws IoError if the folder has no such
// file, and for a damaged file.
std::map<std::string, IdLimits> read_id_limits(const std::string& folder);

}  // namespace keel
