#pragma once

#include <vector>

#include "tutti/verify/inspect.h"
#include "tutti/verify/report.h"
#include "tutti/verify/roster.h"

namespace tutti::verifying {

/// What this rank has in one step; gradients by parameter of its module, as doubles.
struct OwnStep {
  std::vector<std::vector<at::Tensor>> parts;  ///< by microbatch, times its share of the batch
  std::vector<at::Tensor> previous;            ///< the sum of them in the step before; empty in the first
  std::vector<at::Tensor> whole;
  std::vector<at::Tensor> observed;
  double expected_loss = 0;  ///< of this rank's rows
  double observed_loss = 0;  ///< not a number where it is not known
  bool knows_loss = false;
  double whole_loss = 0;
  bool repeats = true;  ///< the same rows gave the same bits again
};

/// What all ranks make of it.
struct StepResult {
  std::vector<Finding> findings = {};
  VerifyReport::Loss loss = {};
  double closeness = 0;
};

/// What does not change from step to step.
struct Setup {
  const Roster& roster;
  const Group& group;
  const std::vector<std::vector<Rank>>& slices;  ///< ranks that belong together
  Situation situation;                           ///< without losses and noise
  double precision = 0;                          ///< as in VerifyOptions
  double evaluations = 0;                        ///< `evaluation` of a Tolerance, in units of roundoff
  bool exact = true;                             ///< what is verified on this rank computes as one process does
};

/// Compares what all ranks have. All of them call it, and get the same.
StepResult check_step(const Setup& setup, const OwnStep& own, int step);

}  // namespace tutti::verifying
