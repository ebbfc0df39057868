#include <keel/layers/embedding/tables/internal/lookup_counter.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

template <class Id>
int64_t count_distinct(const std::vector<const LookupCounter::Part*>& parts) {
  std::vector<Id> all;
  for (const LookupCounter::Part* part : parts) {
    const auto ids = part->ids.data<Id>();
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(all);
  return std::unique(all.begin(), all.end()) - all.begin();
}

}  // namespace

void LookupCounter::add(const std::vector<Part>& parts) {
  std::vector<LookupStatistics> added(statistics_.size());
  for (size_t t = 0; t < added.size(); ++t) {
    std::vector<const Part*> of_table;
    LookupStatistics& a = added[t];
    for (const Part& part : parts) {
      if (part.table != t) continue;
      of_table.push_back(&part);
      a.lookups = 1;
      a.samples += part.samples;
      a.ids += part.ids.size();
      a.dropped += part.invalid.dropped;
      a.replaced += part.invalid.replaced;
    }
    if (of_table.empty()) continue;
    a.distinct_ids = of_table[0]->ids.dtype() == DType::kString
                         ? count_distinct<std::string>(of_table)
                         : count_distinct<int64_t>(of_table);
    a.most_ids = a.ids;
    a.most_distinct_ids = a.distinct_ids;
  }
  const std::lock_guard lock(mutex_);
  for (size_t t = 0; t < added.size(); ++t) add_statistics(statistics_[t], added[t]);
}

LookupStatistics LookupCounter::statistics(size_t table) const {
  const std::lock_guard lock(mutex_);
  return statistics_.at(table);
}

void add_statistics(LookupStatistics& sum, const LookupStatistics& other) {
  sum.lookups += other.lookups;
  sum.samples += other.samples;
  sum.ids += other.ids;
  sum.distinct_ids += other.distinct_ids;
  sum.most_ids = std::max(sum.most_ids, other.most_ids);
  sum.most_distinct_ids = std::max(sum.most_distinct_ids, other.most_distinct_ids);
  sum.dropped += other.dropped;
  sum.replaced += other.replaced;
}

std::string text_of(const LookupStatistics& s) {
  const double lookups = static_cast<double>(std::max<int64_t>(s.lookups, 1));
  return absl::StrCat(static_cast<double>(s.ids) / lookups, " ids per lookup, at most ", s.most_ids,
                      "; ", static_cast<double>(s.distinct_ids) / lookups,
                      " distinct ids, at most ", s.most_distinct_ids, "; ", s.lookups, " lookups");
}

}  // namespace keel
