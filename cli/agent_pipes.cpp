#include "cli/agent_pipes.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "cli/rank_environment.h"

namespace tutti::cli {
namespace {

constexpr int kReadsPerTurn = 4;

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe for a launch agent", errno);
  }
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

AgentPipes::~AgentPipes() {
  for (const FileDescriptor* fd : {&input_, &output_, &errors_}) {
    loop_.forget(fd->get());
  }
}

Status AgentPipes::start(const std::vector<std::string>& command, const Inheritance& inheritance) {
  auto input = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  for (const auto* pipe : {&input, &output, &errors}) {
    if (!*pipe) {
      return pipe->error();
    }
  }
  const auto pid = spawn({.command = command,
                          .environment = own_environment(),
                          .input = input.value().read_end.get(),
                          .output = output.value().write_end.get(),
                          .errors = errors.value().write_end.get(),
                          .inheritance = inheritance});
  if (!pid) {
    return pid.error();
  }
  pid_ = pid.value();
  input_ = std::move(input.value().write_end);
  output_ = std::move(output.value().read_end);
  errors_ = std::move(errors.value().read_end);
  for (const FileDescriptor* fd : {&input_, &output_, &errors_}) {
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  if (Status watched = watch_output(); !watched) {
    return watched;
  }
  return loop_.watch(errors_.get(), EPOLLIN, [this](auto) { read_errors(); });
}

Status AgentPipes::watch_output() {
  return loop_.watch(output_.get(), EPOLLIN, [this](auto) { read_output(); });
}

void AgentPipes::kill() const { ::kill(-pid_, SIGKILL); }

void AgentPipes::send(std::string_view bytes) {
  if (input_.valid()) {
    unsent_ += bytes;
    write_some();
  }
}

void AgentPipes::write_some() {
  while (!unsent_.empty()) {
    const ssize_t written = ::write(input_.get(), unsent_.data(), unsent_.size());
    if (written > 0) {
      std::fill_n(unsent_.begin(), written, '\0');
      unsent_.erase(0, static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      if (!writing_) {
        writing_ = loop_.watch(input_.get(), EPOLLOUT, [this](auto) { write_some(); }).ok();
      }
      return;
    } else if (errno != EINTR) {
      unsent_.clear();  // it is gone; its output's end tells
    }
  }
  if (std::exchange(writing_, false)) {
    loop_.forget(input_.get());
  }
}

void AgentPipes::read_output() {
  std::array<char, 64 * 1024> buffer;
  for (int turn = 0; turn < kReadsPerTurn && output_.valid() && !paused_; ++turn) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      handlers_.output({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      close_output();
    }
  }
}

void AgentPipes::read_errors() {
  std::array<char, 4096> buffer;
  while (errors_.valid()) {
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      error_lines_.feed({buffer.data(), static_cast<std::size_t>(got)}, handlers_.error_line);
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      error_lines_.finish(handlers_.error_line);
      close_errors();
    }
  }
}

void AgentPipes::close_errors() {
  loop_.forget(errors_.get());
  errors_.reset();
}

void AgentPipes::close_output() {
  loop_.forget(output_.get());
  output_.reset();
  handlers_.output_end();
}

void AgentPipes::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused || !output_.valid()) {
    return;
  }
  if (paused) {
    loop_.forget(output_.get());
  } else if (!watch_output()) {
    close_output();
  }
}

void AgentPipes::finish() {
  read_errors();
  if (errors_.valid()) {
    close_errors();
  }
  while (output_.valid() && !paused_) {
    read_output();
    if (output_.valid() && !paused_) {
      close_output();  // no writer is left, so what is empty now stays empty
    }
  }
}

}  // namespace tutti::cli
