#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tutti/base/error.h"

namespace tutti::observe {

/// The report page of these runs (each in the format of report/README.md), to be opened by itself: one file that asks
/// the network for nothing. With several runs it compares them. An error says what to do when this program was built
/// without the page.
Result<std::string> report_page(std::span<const nlohmann::json> runs);

/// The same of a template: what report_page has in itself. An error when the place for the data is not there once.
Result<std::string> fill_page(std::string_view page_template, std::span<const nlohmann::json> runs);

}  // namespace tutti::observe
