#include <keel/savedmodel/serving/models/version_policy.h>

#include <algorithm>

namespace keel::serving {

std::set<int64_t> aspired_versions(const VersionPolicy& policy,
                                   const std::map<int64_t, VersionFacts>& versions) {
  std::set<int64_t> out;
  bool any_available = false;
  for (const auto& [_, facts] : versions) any_available = any_available || facts.available;
  int64_t wanted = policy.num_versions;
  for (auto at = versions.rbegin(); at != versions.rend(); ++at) {
    const auto& [number, facts] = *at;
    if (!facts.listed) continue;
    switch (policy.kind) {
      case VersionPolicy::Kind::kAll:
        out.insert(number);
        break;
      case VersionPolicy::Kind::kSpecific:
        if (policy.versions.contains(number)) out.insert(number);
        break;
      case VersionPolicy::Kind::kLatest:
        if (facts.failed || wanted == 0) break;
        out.insert(number);
        if (!facts.waiting || any_available) --wanted;
        break;
    }
  }
  return out;
}

std::set<int64_t> superseded_versions(const std::set<int64_t>& aspired,
                                      const std::map<int64_t, VersionFacts>& versions) {
  std::set<int64_t> out;
  bool aspired_available = false;
  for (const auto& [number, facts] : versions) {
    if (!facts.available) continue;
    if (aspired.contains(number)) {
      aspired_available = true;
    } else {
      out.insert(number);
    }
  }
  if (!aspired_available && !out.empty()) out.erase(std::prev(out.end()));
  return out;
}

}  // namespace keel::serving
