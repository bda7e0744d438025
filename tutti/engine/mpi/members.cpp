#include "tutti/engine/mpi/members.h"

#include <algorithm>

namespace tutti::engine::mpi {

std::size_t Members::fewest() const {
  return std::min_element(by_host.begin(), by_host.end(),
                          [](const auto& a, const auto& b) { return a.size() < b.size(); })
      ->size();
}

Members arrange(const std::vector<Resident>& residents) {
  struct Host {
    std::string name;
    std::size_t at_switch;
  };
  std::vector<Host> hosts;
  for (const auto& resident : residents) {
    if (std::none_of(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == resident.host; })) {
      hosts.push_back({resident.host, resident.at_switch});
    }
  }
  std::stable_sort(hosts.begin(), hosts.end(), [](const Host& a, const Host& b) { return a.at_switch < b.at_switch; });
  Members members;
  members.by_host.resize(hosts.size());
  for (std::size_t rank = 0; rank < residents.size(); ++rank) {
    const auto& resident = residents[rank];
    const auto host = static_cast<std::size_t>(
        std::find_if(hosts.begin(), hosts.end(), [&](const Host& each) { return each.name == resident.host; }) -
        hosts.begin());
    members.all.push_back({.host = static_cast<int>(host),
                           .local = to_rank(members.by_host[host].size()),
                           .address = resident.address,
                           .in_world = resident.in_world});
    members.by_host[host].push_back(to_rank(rank));
  }
  if (hosts.front().at_switch != hosts.back().at_switch) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (i == 0 || hosts[i].at_switch != hosts[i - 1].at_switch) {
        members.at_switch.push_back(0);
      }
      ++members.at_switch.back();
    }
  }
  return members;
}

}  // namespace tutti::engine::mpi
