#pragma once

#include <string>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/rendezvous/store.h"

namespace tutti::rendezvous {

/// Whether a request has as many keys and values as its operation takes, none of them too large.
/// Code::invalid_argument otherwise.
Status check_shape(const Request& request);

/// A key as a sentence shows it: short, in quotes, and nothing that a terminal would act on.
std::string shown(std::string_view key);

}  // namespace tutti::rendezvous
