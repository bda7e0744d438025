#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace tutti::kernels {

/// Calls `check` with each kind of vector in turn.
template <class F>
void on_every_target(F&& check) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace tutti::kernels
