#include "tutti/observe/page_template.h"

namespace tutti::observe {

std::string page_template() { return {}; }

}  // namespace tutti::observe
