#include "cli/job_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

namespace tutti::cli {
namespace {

constexpr std::array<int, 6> kColours{36, 32, 33, 35, 34, 31};  // cyan first; red last: it looks like an error

bool wants_colour(int fd) {
  const char* refused = std::getenv("NO_COLOR");
  return ::isatty(fd) == 1 && (refused == nullptr || *refused == '\0');
}

int target(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

void detect_colour(OutputOptions& options) {
  options.colour_out = wants_colour(STDOUT_FILENO);
  options.colour_err = wants_colour(STDERR_FILENO);
}

std::string line_prefix(Rank rank, int world_size, bool continued, bool colour) {
  const auto width = std::to_string(world_size - 1).size();
  const std::string text = fmt::format("[{:>{}}]{}", to_int(rank), width, continued ? '+' : ' ');
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", kColours[to_index(rank) % kColours.size()], text) : text;
}

void Tail::add(std::string_view line) { ring_[seen_++ % kLines].assign(line.substr(0, kLongest)); }

std::vector<std::string> Tail::lines() const {
  std::vector<std::string> result;
  for (std::size_t i = seen_ > kLines ? seen_ - kLines : 0; i < seen_; ++i) {
    result.push_back(ring_[i % kLines]);
  }
  return result;
}

JobOutput::JobOutput(int world_size, OutputOptions options, Writer& writer)
    : options_(std::move(options)), writer_(writer), sources_(static_cast<std::size_t>(world_size) * 2) {
  for (int i = 0; i < world_size && options_.prefix; ++i) {
    for (const Stream stream : {Stream::out, Stream::err}) {
      const bool colour = stream == Stream::out ? options_.colour_out : options_.colour_err;
      source(Rank{i}, stream).prefix = line_prefix(Rank{i}, world_size, false, colour);
      source(Rank{i}, stream).continued_prefix = line_prefix(Rank{i}, world_size, true, colour);
    }
  }
}

JobOutput::Source& JobOutput::source(Rank rank, Stream stream) {
  return sources_[to_index(rank) * 2 + (stream == Stream::err ? 1 : 0)];
}

const JobOutput::Source& JobOutput::source(Rank rank, Stream stream) const {
  return sources_[to_index(rank) * 2 + (stream == Stream::err ? 1 : 0)];
}

Status JobOutput::open_logs() {
  if (options_.log_directory.empty()) {
    return {};
  }
  std::error_code error;
  std::filesystem::create_directories(options_.log_directory, error);
  if (error) {
    return system_error(fmt::format("cannot make the log directory '{}'", options_.log_directory), error.value());
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    source.path = fmt::format("{}/rank-{}.{}", options_.log_directory, i / 2, i % 2 == 0 ? "out" : "err");
    source.log = FileDescriptor(::open(source.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!source.log.valid()) {
      return system_error(fmt::format("cannot make the log file '{}'", source.path), errno);
    }
  }
  return {};
}

void JobOutput::bytes(Rank rank, Stream stream, std::string_view bytes) {
  Source& from = source(rank, stream);
  if (from.log.valid()) {
    writer_.push(from.log.get(), std::string(bytes));
  }
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 4 + 256);
  from.splitter.feed(bytes, [&](const Line& line) {
    from.tail.add(line.text);
    print(from, line, text);
  });
  if (!options_.quiet) {
    writer_.push(target(stream), options_.live ? std::string(bytes) : std::move(text));
  }
}

void JobOutput::end(Rank rank, Stream stream) {
  Source& from = source(rank, stream);
  std::string text;
  from.splitter.finish([&](const Line& line) {
    from.tail.add(line.text);
    print(from, line, text);
  });
  if (!options_.quiet && !options_.live) {
    writer_.push(target(stream), std::move(text));
  }
}

void JobOutput::print(const Source& source, const Line& line, std::string& text) const {
  text += line.continued ? source.continued_prefix : source.prefix;
  text += line.text;
  if (line.continues && !options_.prefix) {
    text += '\\';  // without a prefix this is what tells that the line goes on
  }
  text += '\n';
}

void JobOutput::say(std::string_view line) {
  // What a rank draws is a line without its end: this one takes its place.
  writer_.push(STDERR_FILENO, fmt::format("{}{}\n", options_.live ? "\r\x1b[K" : "", line));
}

std::vector<std::string> JobOutput::last_lines(Rank rank) const {
  auto lines = source(rank, Stream::err).tail.lines();
  return lines.empty() ? source(rank, Stream::out).tail.lines() : lines;
}

std::string JobOutput::log_path(int fd) const {
  const auto found =
      std::find_if(sources_.begin(), sources_.end(), [fd](const Source& source) { return source.log.get() == fd; });
  return found == sources_.end() ? std::string() : found->path;
}

}  // namespace tutti::cli
