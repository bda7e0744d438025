#pragma once

#include <string>

namespace tutti::observe {

/// The report page without data, as `report/assemble --template` writes it; empty in a program that was built without
/// the page's charting library.
std::string page_template();

}  // namespace tutti::observe
