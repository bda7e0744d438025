#pragma once
// The same tests on ranks that are threads, and on those of a job.

#include <functional>

#include "tutti/comm/group.h"

namespace tutti {

/// Runs a function on so many ranks: threads; or, in a job (`tutti run -n 4 -- build/bin/gradient_test`), the first of
/// its processes, while the others go on to the next test. A job with too few skips the test.
void on_ranks(int count, const std::function<void(Group&)>& function);

}  // namespace tutti
