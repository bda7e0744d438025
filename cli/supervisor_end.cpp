// The end of a job: no process is left, all output is shown, and the verdict comes last.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "cli/reaper.h"
#include "cli/supervisor.h"

namespace tutti::cli {
namespace {

/// How long to wait at once: signals and readers are looked after in between.
constexpr std::chrono::milliseconds kTurn{20};

}  // namespace

void Supervisor::finish() {
  wait_for_runners();
  const bool clean =
      end_descendants(Deadline::after(kKillWait), [this](pid_t pid, int status) { runners_.child_ended(pid, status); });
  if (!clean) {
    say("some processes have not ended yet; the kernel will end them when it can");
  }
  runners_.no_more_output();
  const bool shown = drain();
  on_writer();  // what the last writes met
  print_verdict();
  if (code_ == 0 && output_lost_) {
    code_ = 1;
  }
  if (!shown || !drain()) {
    writer_.flush_errors(Deadline::after(kKillWait));
    leave_at_once(code_);
  }
}

void Supervisor::wait_for_runners() {
  if (phase_ == Phase::killing) {
    runners_.kill_ranks();
  }
  const Deadline patience = Deadline::after(kKillWait);
  const Deadline for_output = output_patience();
  while (runners_.needs_children() &&
         (!patience.expired() || (writer_.full() && !impatient_ && !for_output.expired()))) {
    loop_.run_once(Deadline::after(kTurn));
  }
}

/// A job that ended by itself waits for its reader; one that was ended must end, also when nobody reads.
Deadline Supervisor::output_patience() const {
  if (impatient_) {
    return Deadline::after(kKillWait);
  }
  return phase_ == Phase::running ? Deadline::never() : Deadline::after(std::max(options_.grace, Seconds(kKillWait)));
}

/// Until all output is written; false when its reader took nothing for too long. A signal in between leaves at once.
bool Supervisor::drain() {
  Deadline patience = output_patience();
  std::uint64_t pieces = writer_.pieces();
  const auto given_up = [&] {
    if (const auto now = writer_.pieces(); now != pieces && !impatient_) {  // slow, but it reads
      pieces = now;
      patience = output_patience();
    }
    return patience.expired();
  };
  while (!runners_.drained()) {
    if (given_up()) {
      return false;
    }
    loop_.run_once(Deadline::after(kTurn));
    runners_.no_more_output();
  }
  while (!writer_.flush(Deadline::after(kTurn))) {
    if (given_up()) {
      return false;
    }
    loop_.run_once(Deadline::now());
  }
  return true;
}

void Supervisor::print_verdict() {
  if (!failure_.empty()) {
    say(failure_);
  }
  const bool explained = options_.ranks_explain && ranks_complained_;
  if (!inquest_.blamed() || (explained && WIFEXITED(inquest_.blamed()->status))) {
    return;
  }
  say(inquest_.verdict());
  for (const std::string& line : output_.last_lines(inquest_.blamed()->rank)) {
    output_.say("  | " + line);
  }
}

void Supervisor::leave_at_once(int code) {
  runners_.kill_ranks();
  end_descendants(Deadline::after(kKillWait), [](pid_t, int) {});
  ::_exit(code);
}

}  // namespace tutti::cli
