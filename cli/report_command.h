#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

/// `tutti report RUN...`: the page that shows what recorded runs did, or the trace of one.
int report_command(const std::vector<std::string>& arguments);

}  // namespace tutti::cli
