#include "tutti/observe/page.h"

#include <nlohmann/json.hpp>

#include "tutti/observe/page_template.h"

namespace tutti::observe {
namespace {

constexpr std::string_view kPlace = "/*TUTTI:DATA*/";

/// In JSON `<` stands in strings alone, where it may be written so: then no text in a run ends the script it lies in.
void append_escaped(std::string& page, std::string_view json) {
  for (const char one : json) {
    if (one == '<') {
      page += "\\u003c";
    } else {
      page += one;
    }
  }
}

}  // namespace

Result<std::string> report_page(std::span<const nlohmann::json> runs) {
  const auto page = page_template();
  if (page.empty()) {
    return Error{Code::unsupported,
                 "this program was built without the report page, since its charting library was not there; "
                 "'tools/setup report' fetches it, and 'make build' builds anew"};
  }
  return fill_page(page, runs);
}

Result<std::string> fill_page(std::string_view page_template, std::span<const nlohmann::json> runs) {
  const auto place = page_template.find(kPlace);
  if (place == std::string_view::npos || page_template.rfind(kPlace) != place) {
    return Error{Code::invalid_argument, "the template of the report page has not one place for data"};
  }
  std::string page(page_template.substr(0, place));
  page += '[';
  for (std::size_t i = 0; i < runs.size(); ++i) {
    page += i > 0 ? "," : "";
    append_escaped(page, runs[i].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  page += ']';
  page += page_template.substr(place + kPlace.size());
  return page;
}

}  // namespace tutti::observe
