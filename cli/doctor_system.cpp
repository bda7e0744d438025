// What the kernel offers and what it allows.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cli/doctor.h"
#include "cli/system_facts.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {
namespace {

constexpr const char* kKernel = "kernel";
constexpr const char* kLimits = "limits";

Finding feature(const char* name, bool there, const char* good, const char* bad, Grade without) {
  return {.topic = kKernel,
          .name = name,
          .value = there ? "yes" : "no",
          .meaning = there ? good : bad,
          .grade = there ? Grade::ok : without,
          .data = there};
}

bool has_memfd() { return FileDescriptor(::memfd_create("tutti-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING)).valid(); }

bool has_pidfd() { return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))).valid(); }

bool has_futex() {
  int word = 1;
  return ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0) != 0 && errno == EAGAIN;
}

/// Whether another process's memory may be read: tried on a child, as ranks are siblings at best.
bool reads_other_processes() {
  int secret = 4711;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return false;
  }
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(ends[1]);
    [[maybe_unused]] const auto got = ::read(ends[0], &byte, 1);  // until the parent is done
    ::_exit(0);
  }
  int copy = 0;
  const iovec here{.iov_base = &copy, .iov_len = sizeof copy};
  const iovec there{.iov_base = &secret, .iov_len = sizeof secret};
  const bool read = child > 0 && ::process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof copy && copy == secret;
  write_end.reset();
  if (child > 0) {
    ::waitpid(child, nullptr, 0);
  }
  return read;
}

/// Whether a child may make namespaces of its own.
bool makes_namespaces() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1);
  }
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

Finding kernel_finding() {
  utsname name{};
  ::uname(&name);
  return {.topic = kKernel,
          .name = "version",
          .value = fmt::format("{} {} {}", name.sysname, name.release, name.machine),
          .meaning = "what runs here",
          .grade = Grade::ok,
          .data = name.release};
}

Finding shared_memory_finding() {
  struct statvfs info {};
  const bool there = ::statvfs("/dev/shm", &info) == 0;
  const double size = there ? static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize) : 0;
  return {.topic = kKernel,
          .name = "/dev/shm",
          .value = there ? bytes_text(size) : "none",
          .meaning = "not used: symmetric memory has no file; an MPI or a data loader may need it",
          .grade = size < 1e9 ? Grade::note : Grade::ok,
          .data = size};
}

Finding ptrace_finding() {
  const auto scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
  return {
      .topic = kKernel,
      .name = "ptrace scope",
      .value = scope ? fmt::format("{}", *scope) : "not restricted",
      .meaning = scope.value_or(0) > 0 ? "a debugger reaches only its own children" : "a debugger can attach to a rank",
      .grade = Grade::ok,
      .data = scope ? nlohmann::json(*scope) : nlohmann::json()};
}

struct Limit {
  const char* name;
  int resource;
  double wanted;  ///< a soft limit below this is worth a word
  Grade below;
  const char* good;
  const char* bad;
  bool bytes;
};

std::string limit_text(rlim_t value, bool bytes) {
  return value == RLIM_INFINITY ? "unlimited" : bytes ? bytes_text(static_cast<double>(value)) : std::to_string(value);
}

Finding limit_finding(const Limit& limit) {
  rlimit value{};
  ::getrlimit(static_cast<__rlimit_resource_t>(limit.resource), &value);
  const bool low = value.rlim_cur != RLIM_INFINITY && static_cast<double>(value.rlim_cur) < limit.wanted;
  const auto json = [](rlim_t number) { return number == RLIM_INFINITY ? nlohmann::json() : nlohmann::json(number); };
  return {.topic = kLimits,
          .name = limit.name,
          .value = fmt::format("{} (at most {})", limit_text(value.rlim_cur, limit.bytes),
                               limit_text(value.rlim_max, limit.bytes)),
          .meaning = low ? limit.bad : limit.good,
          .grade = low ? limit.below : Grade::ok,
          .data = {{"soft", json(value.rlim_cur)}, {"hard", json(value.rlim_max)}}};
}

}  // namespace

Finding tcp_finding(const std::string& congestion) {
  const bool paces = congestion.starts_with("bbr");
  return {.topic = kKernel,
          .name = "TCP",
          .value = congestion.empty() ? "unknown" : congestion,
          .meaning = paces
                         ? "paces messages by a guess: between near hosts long ones take several times as long as with "
                           "cubic or reno (net.ipv4.tcp_congestion_control)"
                         : "how messages between hosts find out how fast they may go",
          .grade = paces ? Grade::note : Grade::ok,
          .data = congestion};
}

Findings examine_kernel() {
  return {kernel_finding(),
          feature("memfd", has_memfd(), "symmetric memory and the secret need no file",
                  "symmetric memory and the secret cannot be made", Grade::failure),
          feature("futex", has_futex(), "ranks can sleep until a peer is ready", "ranks cannot wait for each other",
                  Grade::failure),
          feature("pidfd", has_pidfd(), "a dead peer is seen at once", "a dead peer is seen later", Grade::warning),
          feature("process_vm_readv", reads_other_processes(), "ranks may read each other's ordinary memory",
                  "ordinary tensors go through a staging area", Grade::note),
          ptrace_finding(),
          shared_memory_finding(),
          tcp_finding(first_line("/proc/sys/net/ipv4/tcp_congestion_control").value_or("")),
          feature("namespaces", makes_namespaces(), "several hosts can be tried out on this one",
                  "tests of several hosts need root", Grade::note)};
}

Findings examine_limits() {
  constexpr Limit kAll[] = {
      {"open files", RLIMIT_NOFILE, 1024, Grade::warning, "enough; the launcher takes five per rank, up to the most",
       "few: more than some dozens of ranks may not start", false},
      {"processes", RLIMIT_NPROC, 4096, Grade::note, "enough for ranks and their threads",
       "counts threads of all your processes: many ranks with many threads may not start", false},
      {"locked memory", RLIMIT_MEMLOCK, 64 << 20, Grade::note, "enough for network cards that need it",
       "nothing here needs more; InfiniBand would", true},
      {"core files", RLIMIT_CORE, 1, Grade::note, "a rank that crashes leaves a core file",
       "a rank that crashes leaves no core file; ulimit -c unlimited to get one", true},
  };
  Findings findings;
  for (const Limit& limit : kAll) {
    findings.push_back(limit_finding(limit));
  }
  return findings;
}

}  // namespace tutti::cli
