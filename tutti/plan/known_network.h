#pragma once

#include <string>
#include <string_view>

namespace tutti::plan {

/// Where the network is kept that `tutti bench --links` found on machines of that name (see machine_name): among one
/// host's ranks, or between hosts. Beside the tuning file; empty when there is none of that.
std::string network_file(const std::string& tuning_file, std::string_view machine, bool several_hosts);

}  // namespace tutti::plan
