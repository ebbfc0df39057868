// MinCount: which ids of tables for unbounded ids a model file holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace keel {

// The lowest number of occurrences of an id that is saved. Rare ids take most of the space of such
// a table and contribute little to predictions.
class MinCount {
 public:
  // Saves ids with at least `count` occurrences, in all tables. Throws ValueError if it is
  // negative.
  MinCount(int64_t count = 0);  // NOLINT: implicit
  // Has one number for each of the named tables, and saves all ids of the others. A name is that of
  // the table, or "<layer>/<table>". Throws ValueError for a negative number.
  MinCount(std::map<std::string, int64_t> by_table);  // NOLINT: implicit

  // Returns the number for a table.
  int64_t of(const std::string& layer, const std::string& table) const;
  // Returns the numbers by table; empty if one number applies to all.
  const std::map<std::string, int64_t>& by_table() const { return by_table_; }

 private:
  int64_t all_ = 0;
  std::map<std::string, int64_t> by_table_ = {};
};

}  // namespace keel
