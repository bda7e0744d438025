#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/all_ranks.h"
#include "cli/event_loop.h"
#include "cli/front.h"
#include "cli/inquest.h"
#include "cli/job_output.h"
#include "cli/rank_runner.h"
#include "cli/writer.h"
#include "tutti/base/deadline.h"
#include "tutti/base/log.h"
#include "tutti/rendezvous/server.h"

namespace tutti::cli {

/// Looks after a job from its start to its end: passes output on, judges ends, obeys the user, leaves nothing behind.
/// One thread, the main one.
class Supervisor : public RankListener {
 public:
  using Seconds = std::chrono::duration<double>;
  struct Options {
    std::string name = "tutti run";  ///< begins its own lines
    int world_size = 1;
    bool ranks_explain = false;  ///< one that exits with a code, where any said something, needs no verdict
    Seconds grace{5};
    std::optional<Seconds> timeout = std::nullopt;
    OutputOptions output = {};
    Log store_log = nullptr;  ///< the server's, if any: once a stop began, ranks that break off are no news
  };

  /// Loop, writer and server must outlive it.
  Supervisor(Options options, Guarded guarded, EventLoop& loop, Writer& writer, rendezvous::Server& server);
  ~Supervisor() override;

  /// Before `run`. Together the runners have all ranks.
  void add(std::unique_ptr<RankRunner> runner) { runners_.add(std::move(runner)); }

  /// Runs the job; what the tool exits with. Does not return when the front died, or when nobody takes the output of a
  /// job that was ended: then the process ends at once.
  int run();

  void rank_started(Rank rank, pid_t pid, std::string_view host) override;
  void rank_output(Rank rank, Stream stream, std::string_view bytes) override;
  void rank_output_end(Rank rank, Stream stream) override;
  void rank_ended(Rank rank, std::optional<int> status) override;
  void runner_failed(Rank share_first, const std::string& sentence, int code) override;
  void runner_says(const std::string& line) override;

 private:
  /// running -> settling (somebody failed: who was it really?) -> stopping (others have their grace) -> killing.
  enum class Phase { running, settling, stopping, killing };

  /// How long a killed process may take to be gone.
  static constexpr std::chrono::seconds kKillWait{1};

  Status watch_everything();
  void say(const std::string& sentence);
  void on_orders();
  void on_writer();
  void on_deadline();

  void settle();
  void judge();
  void stop(int signal, int code);
  void obey(int signal);
  void kill_now();
  bool over() const;

  void finish();
  void wait_for_runners();
  /// How long output that nobody takes is waited for.
  Deadline output_patience() const;
  bool drain();
  void print_verdict();
  [[noreturn]] void leave_at_once(int code);

  Options options_;
  Guarded guarded_;
  EventLoop& loop_;
  Writer& writer_;
  rendezvous::Server& server_;
  JobOutput output_;
  FileDescriptor children_;  ///< readable when a child ended
  AllRanks runners_;
  Inquest inquest_;

  Phase phase_ = Phase::running;
  Deadline deadline_ = Deadline::never();       ///< end of the phase
  Deadline settle_limit_ = Deadline::never();   ///< until when a slow culprit is waited for
  Deadline second_signal_ = Deadline::never();  ///< when SIGTERM follows a SIGINT that was not obeyed
  Deadline job_limit_ = Deadline::never();
  int ranks_left_ = 0;
  std::string failure_;  ///< of a runner, in place of a rank
  int code_ = 0;
  bool ranks_complained_ = false;  ///< something came on a standard error
  bool output_lost_ = false;       ///< something could not be written: not a success
  bool impatient_ = false;         ///< the user asked a second time: output that nobody takes is given up
};

}  // namespace tutti::cli
