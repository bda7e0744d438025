#include "tutti/engine/mpi/members.h"

#include <algorithm>

namespace tutti::engine::mpi {

std::size_t Members::fewest() const {
  return std::min_element(by_host.begin(), by_host.end(),
                          [](const auto& a, const auto& b) { return a.size() < b.size(); })
      ->size();
}

Members arrange(const std::vector<std::string>& hosts, const std::vector<int>& addresses,
                const std::vector<Rank>& in_world) {
  Members members;
  std::vector<std::string> seen;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto found = std::find(seen.begin(), seen.end(), hosts[rank]);
    const auto host = static_cast<std::size_t>(found - seen.begin());
    if (found == seen.end()) {
      seen.push_back(hosts[rank]);
      members.by_host.emplace_back();
    }
    members.all.push_back({.host = static_cast<int>(host),
                           .local = to_rank(members.by_host[host].size()),
                           .address = addresses[rank],
                           .in_world = in_world[rank]});
    members.by_host[host].push_back(to_rank(rank));
  }
  return members;
}

}  // namespace tutti::engine::mpi
