#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::plan {

/// Which hosts hang at one switch, as the user tells it: hosts that do are put next to each other, so that what goes
/// around or up and down between hosts passes from switch to switch as seldom as can be.
class Switches {
 public:
  /// Lines of "NAME: HOST HOST ..."; what follows a # is a remark. An error names the line.
  static Result<Switches> parse(std::string_view text);

  /// The number of the switch of a host; hosts that are not named share one more, the last.
  std::size_t of(std::string_view host) const;

  bool empty() const { return switches_.empty(); }

 private:
  std::vector<std::vector<std::string>> switches_;
};

}  // namespace tutti::plan
