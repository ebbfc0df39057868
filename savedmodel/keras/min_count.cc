#include <keel/savedmodel/keras/min_count.h>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

void check_least(int64_t count) {
  if (count < 0) throw ValueError("min_count: must not be negative, received ", count);
}

}  // namespace

MinCount::MinCount(int64_t count) : all_(count) { check_least(count); }

MinCount::MinCount(std::map<std::string, int64_t> by_table) : by_table_(std::move(by_table)) {
  for (const auto& [table, count] : by_table_) check_least(count);
}

int64_t MinCount::of(const std::string& layer, const std::string& table) const {
  for (const std::string& name : {layer + "/" + table, table}) {
    const auto found = by_table_.find(name);
    if (found != by_table_.end()) return found->second;
  }
  return all_;
}

}  // namespace keel
