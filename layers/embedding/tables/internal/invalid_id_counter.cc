#include <keel/layers/embedding/tables/internal/invalid_id_counter.h>

#include <absl/strings/str_cat.h>

namespace keel {

std::vector<std::string> notices_of(const std::string& caller, const std::string& feature,
                                    const IdCounts& counts) {
  std::vector<std::string> out;
  const auto add = [&](int64_t count, const char* what) {
    if (count == 0) return;
    out.push_back(absl::StrCat(caller, ": feature '", feature, "': ", count,
                               count == 1 ? " id" : " ids", " outside the table ",
                               count == 1 ? "was " : "were ", what));
  };
  add(counts.dropped, "dropped");
  add(counts.replaced, "replaced by the default row");
  return out;
}

}  // namespace keel
