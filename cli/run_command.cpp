#include "cli/run_command.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include "cli/front.h"
#include "cli/job_shares.h"
#include "cli/limits.h"
#include "cli/local_ranks.h"
#include "cli/rank_environment.h"
#include "cli/remote_ranks.h"
#include "tutti/base/environment.h"
#include "tutti/rendezvous/secret.h"
#include "tutti/rendezvous/server.h"

namespace tutti::cli {
namespace {

/// Sends log lines through the writer, so that they do not tear a rank's.
class WriterSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit WriterSink(Writer& writer) : writer_(writer) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.push(STDERR_FILENO, std::string(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  Writer& writer_;
};

Log make_writer_log(const std::string& name, Writer& writer) {
  const auto environment = read_environment();
  auto log = std::make_shared<spdlog::logger>(name, std::make_shared<WriterSink>(writer));
  log->set_level(spdlog::level::from_str(environment ? environment.value().log_level : "warning"));
  log->set_pattern("%n: %l: %v");
  return log;
}

/// A port that is free now, for programs that make a store of their own.
Result<int> free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket.valid() || ::bind(socket.get(), generic, length) != 0 ||
      ::getsockname(socket.get(), generic, &length) != 0) {
    return system_error("cannot find a free port", errno);
  }
  return static_cast<int>(ntohs(address.sin_port));
}

/// Everything that a job needs beside its ranks. Members go in reverse order: the supervisor first, the writer last.
struct Stage {
  std::unique_ptr<Writer> writer;
  EventLoop loop;
  rendezvous::Secret secret;
  FileDescriptor secret_file;
  Log log;
  std::unique_ptr<rendezvous::Server> server;
};

Result<Stage> set_stage(const RunOptions& options, const rendezvous::Address& address) {
  auto writer = Writer::make();
  if (!writer) {
    return writer.error();
  }
  auto loop = EventLoop::make();
  if (!loop) {
    return loop.error();
  }
  auto secret = rendezvous::Secret::make();
  if (!secret) {
    return secret.error();
  }
  auto secret_file = secret.value().descriptor();
  if (!secret_file) {
    return secret_file.error();
  }
  Log log = make_writer_log(options.supervisor.name, *writer.value());
  auto server = rendezvous::Server::start(
      {.world_size = options.world_size, .listen = {address}, .secret = secret.value(), .log = log});
  if (!server) {
    return server.error();
  }
  return Stage{.writer = std::move(writer).value(),
               .loop = std::move(loop).value(),
               .secret = secret.value(),
               .secret_file = std::move(secret_file).value(),
               .log = std::move(log),
               .server = std::move(server).value()};
}

int complain(const RunOptions& options, const Error& error) {
  std::fputs(fmt::format("{}: {}\n", options.supervisor.name, error.message).c_str(), stderr);
  return 1;
}

/// Where the job's store is: on one host a name that only it knows, for several an address they all reach.
Result<rendezvous::Address> store_address(const RunOptions& options) {
  if (options.hosts.empty()) {
    return rendezvous::Address::random_unix();
  }
  auto host = store_host(options);
  if (!host) {
    return host.error();
  }
  return rendezvous::Address{.kind = rendezvous::Address::Kind::tcp, .name = host.value(), .port = 0};
}

/// This process's own program, for hosts where it lies in the same place.
std::string own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

/// Where ranks on other hosts start: a path. On this host they start where we are, even if that has no name any more.
Result<std::string> job_directory(const RunOptions& options) {
  if (options.hosts.empty()) {
    return std::string();
  }
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  if (error) {
    return system_error("cannot tell the current directory's path to other hosts", error.value());
  }
  return path.string();
}

Status add_runners(Supervisor& supervisor, const RunOptions& options, Stage& stage, const Inheritance& inheritance) {
  const auto port = free_port();
  if (!port) {
    return port.error();
  }
  const auto directory = job_directory(options);
  if (!directory) {
    return directory.error();
  }
  const rendezvous::Address store = stage.server->addresses().front();
  const auto shares = make_shares(options, {.store = store.text(),
                                            .store_host = store.name,
                                            .port = port.value(),
                                            .directory = directory.value(),
                                            .base = own_environment()});
  if (options.hosts.empty()) {
    supervisor.add(
        std::make_unique<LocalRanks>(LocalRanks::Options{.share = shares.front(),
                                                         .secret = stage.secret_file.get(),
                                                         .first_input = ::isatty(STDIN_FILENO) == 1 ? -1 : STDIN_FILENO,
                                                         .inheritance = inheritance},
                                     stage.loop, supervisor));
  }
  for (std::size_t i = 0; i < options.hosts.size(); ++i) {
    auto command = agent_command(options, options.hosts[i], own_path());
    if (!command) {
      return command.error();
    }
    supervisor.add(std::make_unique<RemoteRanks>(RemoteRanks::Options{.host = options.hosts[i].name,
                                                                      .command = std::move(command).value(),
                                                                      .share = shares[i],
                                                                      .secret = stage.secret,
                                                                      .inheritance = inheritance},
                                                 stage.loop, supervisor));
  }
  return {};
}

int supervise(const RunOptions& options, Guarded guarded) {
  const Inheritance inheritance{
      .mask = guarded.original_mask, .ignored = guarded.original_ignored, .descriptors = raise_descriptor_limit()};
  const auto address = store_address(options);
  if (!address) {
    return complain(options, address.error());
  }
  auto stage = set_stage(options, address.value());
  if (!stage) {
    return complain(options, stage.error());
  }
  Supervisor::Options supervisor_options = options.supervisor;
  supervisor_options.store_log = stage.value().log;
  detect_colour(supervisor_options.output);
  Supervisor supervisor(supervisor_options, std::move(guarded), stage.value().loop, *stage.value().writer,
                        *stage.value().server);
  if (const Status added = add_runners(supervisor, options, stage.value(), inheritance); !added) {
    return complain(options, added.error());
  }
  return supervisor.run();
}

}  // namespace

int run_command(const RunOptions& options) {
  return run_guarded(options.supervisor.name, [&](Guarded guarded) { return supervise(options, std::move(guarded)); });
}

}  // namespace tutti::cli
