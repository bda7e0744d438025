#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line_splitter.h"
#include "cli/rank_runner.h"
#include "cli/writer.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// How ranks' output is shown.
struct OutputOptions {
  bool prefix = true;
  bool live = false;        ///< bytes as they come, not whole lines: one rank draws on the terminal
  bool quiet = false;       ///< print nothing of the ranks; verdicts show what matters
  bool colour_out = false;  ///< the target is a terminal and the user did not say NO_COLOR
  bool colour_err = false;
  std::string log_directory = {};  ///< empty: no files
};

/// From what the tool's standard streams are.
void detect_colour(OutputOptions& options);

/// "[3] " in front of a rank's lines, right-aligned over the world; "[3]+" where a line goes on; with colour when
/// asked.
std::string line_prefix(Rank rank, int world_size, bool continued, bool colour);

/// The last few lines of one stream of a rank.
class Tail {
 public:
  static constexpr std::size_t kLines = 5;
  static constexpr std::size_t kLongest = 500;

  void add(std::string_view line);
  /// Oldest first.
  std::vector<std::string> lines() const;

 private:
  std::array<std::string, kLines> ring_;
  std::size_t seen_ = 0;
};

/// Takes what ranks print, and hands whole lines to the writer and raw bytes to the log files. One thread.
class JobOutput {
 public:
  /// The writer must outlive it.
  JobOutput(int world_size, OutputOptions options, Writer& writer);

  /// Makes the directory and the files, when logs were asked for.
  Status open_logs();

  void bytes(Rank rank, Stream stream, std::string_view bytes);
  void end(Rank rank, Stream stream);

  /// A line of the tool's own, to standard error.
  void say(std::string_view line);

  /// What a rank said last: of its errors, or else of its output.
  std::vector<std::string> last_lines(Rank rank) const;

  /// Path of the log file behind a descriptor that broke; empty when it is none.
  std::string log_path(int fd) const;

 private:
  struct Source {
    LineSplitter splitter;
    Tail tail;
    FileDescriptor log;
    std::string path;
    std::string prefix;
    std::string continued_prefix;
  };

  Source& source(Rank rank, Stream stream);
  const Source& source(Rank rank, Stream stream) const;
  void print(const Source& source, const Line& line, std::string& text) const;

  OutputOptions options_;
  Writer& writer_;
  std::vector<Source> sources_;  ///< two per rank
};

}  // namespace tutti::cli
