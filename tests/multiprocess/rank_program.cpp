// A rank that does as it is told: each argument is [RANK:]VERB[=VALUE], done in order by that rank, or by all.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "tutti/base/environment.h"
#include "tutti/rendezvous/client.h"

namespace {

using tutti::Deadline;

struct Rank {
  tutti::Environment environment;
  std::shared_ptr<tutti::rendezvous::Store> store;
};

[[noreturn]] void fail(const std::string& sentence) {
  fmt::print(stderr, "{}\n", sentence);
  std::fflush(nullptr);
  std::_Exit(7);
}

void sleep_for(double seconds) {
  const auto deadline = Deadline::after(std::chrono::milliseconds(static_cast<long>(seconds * 1000)));
  while (!deadline.expired()) {
    const timespec left{.tv_sec = 0, .tv_nsec = 5'000'000};
    ::nanosleep(&left, nullptr);
  }
}

/// For tests that look afterwards whether anything is left: the store's name, and which file holds the secret.
void leave_report(const tutti::Environment& environment) {
  const char* folder = std::getenv("RANK_PROGRAM_REPORT");
  if (folder == nullptr) {
    return;
  }
  struct stat secret {};
  ::fstat(environment.secret_fd.value_or(-1), &secret);
  // Whole or not at all: the rank may be killed at any moment.
  const std::string path = fmt::format("{}/{}", folder, ::getpid());
  std::FILE* file = std::fopen((path + ".part").c_str(), "w");
  fmt::print(file, "{} {} {}\n", environment.store, secret.st_dev, secret.st_ino);
  std::fclose(file);
  std::rename((path + ".part").c_str(), path.c_str());
}

void join(Rank& rank) {
  const auto address = tutti::rendezvous::Address::parse(rank.environment.store);
  const auto secret = tutti::rendezvous::Secret::from_descriptor(rank.environment.secret_fd.value_or(-1));
  if (!address || !secret) {
    fail(address ? secret.error().message : address.error().message);
  }
  auto joined = tutti::rendezvous::join({.address = address.value(),
                                         .rank = rank.environment.place.rank,
                                         .world_size = rank.environment.place.world_size,
                                         .secret = secret.value()},
                                        Deadline::after(std::chrono::seconds(20)));
  if (!joined) {
    fail(joined.error().message);
  }
  rank.store = joined.value();
}

void barrier(Rank& rank, const std::string& name) {
  const auto met =
      rank.store->barrier(name, rank.environment.place.world_size, Deadline::after(std::chrono::seconds(20)));
  if (!met) {
    fail(met.error().message);
  }
}

/// Lines whose every byte follows from rank and number, so that a torn or lost one shows.
void print_lines(int rank, long bytes) {
  for (long number = 0, printed = 0; printed < bytes; ++number) {
    const std::string filler(static_cast<std::size_t>(number % 97), static_cast<char>('a' + number % 26));
    const std::string line = fmt::format("{}/{}/{}/end\n", rank, number, filler);
    std::fwrite(line.data(), 1, line.size(), stdout);
    printed += static_cast<long>(line.size());
  }
}

/// By the signal itself: a sanitizer's handler would turn it into an exit code.
void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// As a process with a very large memory, which the kernel takes down for seconds before anybody can reap it: its first
/// thread is gone, the rest follows later.
void die_slowly(double seconds) {
  std::thread([seconds] {
    sleep_for(seconds);
    ::kill(::getpid(), SIGKILL);
  }).detach();
  ::syscall(SYS_exit, 0);
}

void await_file(const std::string& path) {
  while (::access(path.c_str(), F_OK) != 0) {
    sleep_for(0.01);
  }
}

void start_grandchild(bool own_session) {
  if (::fork() == 0) {
    if (own_session) {
      ::setsid();
      ::signal(SIGHUP, SIG_IGN);
    }
    ::signal(SIGTERM, SIG_IGN);
    sleep_for(60);
    std::_Exit(0);
  }
}

void print_affinity() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ::sched_getaffinity(0, sizeof mask, &mask);
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    text += CPU_ISSET(cpu, &mask) ? fmt::format(" {}", cpu) : "";
  }
  fmt::print("cpus{}\n", text);
}

void print_open_descriptors() {
  std::string text;
  for (int fd = 0; fd < 1024; ++fd) {
    text += ::fcntl(fd, F_GETFD) >= 0 ? fmt::format(" {}", fd) : "";
  }
  fmt::print("descriptors{}\n", text);
}

/// Which network namespace it is in: what makes a host in tests.
void print_network() {
  struct stat info {};
  ::stat("/proc/self/ns/net", &info);
  fmt::print("network {}\n", info.st_ino);
}

void copy_input() {
  char buffer[4096];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) {
    std::fwrite(buffer, 1, got, stdout);
  }
}

void do_as_told(Rank& rank, const std::string& verb, const std::string& value) {
  const int number = tutti::to_int(rank.environment.place.rank);
  const std::map<std::string, std::function<void()>> verbs{
      {"exit", [&] { std::exit(std::stoi(value)); }},
      {"raise", [&] { die_of(std::stoi(value)); }},
      {"abort", [&] { std::abort(); }},
      {"die-slowly", [&] { die_slowly(std::stod(value)); }},
      {"sleep", [&] { sleep_for(std::stod(value)); }},
      {"await", [&] { await_file(value); }},
      {"say", [&] { fmt::print("{}\n", value); }},
      {"say-unfinished", [&] { fmt::print("{}", value); }},
      {"err", [&] { fmt::print(stderr, "{}\n", value); }},
      {"print", [&] { print_lines(number, std::stol(value)); }},
      {"long-line", [&] { fmt::print("{}\n", std::string(std::stoul(value), 'x')); }},
      {"env",
       [&] { fmt::print("{}={}\n", value, std::getenv(value.c_str()) ? std::getenv(value.c_str()) : "(unset)"); }},
      {"ignore", [&] { ::signal(std::stoi(value), SIG_IGN); }},
      {"child", [&] { start_grandchild(false); }},
      {"daemon", [&] { start_grandchild(true); }},
      {"join", [&] { join(rank); }},
      {"leave", [&] { rank.store.reset(); }},
      {"barrier", [&] { barrier(rank, value); }},
      {"cpus", [] { print_affinity(); }},
      {"descriptors", [] { print_open_descriptors(); }},
      {"cat", [] { copy_input(); }},
      {"network", [] { print_network(); }},
  };
  const auto found = verbs.find(verb);
  if (found == verbs.end()) {
    fail("rank_program: no verb " + verb);
  }
  found->second();
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  // Dying on purpose is what it is for: no core files.
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);
  auto environment = tutti::read_environment();
  if (!environment) {
    fail(environment.error().message);
  }
  Rank rank{.environment = environment.value(), .store = nullptr};
  leave_report(rank.environment);
  const std::string own = std::to_string(tutti::to_int(rank.environment.place.rank));
  for (int i = 1; i < count; ++i) {
    std::string told = arguments[i];
    const auto colon = told.find(':');
    if (colon != std::string::npos && told.find_first_not_of("0123456789") == colon) {
      if (told.substr(0, colon) != own) {
        continue;
      }
      told.erase(0, colon + 1);
    }
    const auto equals = told.find('=');
    do_as_told(rank, told.substr(0, equals), equals == std::string::npos ? "" : told.substr(equals + 1));
  }
  return 0;
}
