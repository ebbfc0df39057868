#include <keel/distribute/internal/placement.h>

#include <algorithm>

namespace keel::distribute {

int Placement::process_of(int replica) const {
  return static_cast<int>(std::ranges::upper_bound(first, replica) - first.begin()) - 1;
}

Placement place_hosts(int hosts, int cores_of_each, const ProcessGroup& group) {
  const int processes = group.size();
  if (hosts < processes) {
    throw ValueError("TPUStrategy: requires at least one host per process, received ", hosts,
                     " hosts and ", processes, " processes");
  }
  Placement out{.process = group.rank(), .first = {0}};
  for (int p = 0; p < processes; ++p) {
    const int more = hosts / processes + (p < hosts % processes ? 1 : 0);
    out.first.push_back(out.first.back() + more * cores_of_each);
  }
  return out;
}

}  // namespace keel::distribute
