#include "cli/writer.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>

namespace tutti::cli {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
  }
  std::string read_exactly(std::size_t count) const {
    std::string text(count, '\0');
    std::size_t at = 0;
    while (at < count) {
      const ssize_t got = ::read(read_end.get(), text.data() + at, count - at);
      if (got <= 0) {
        break;
      }
      at += static_cast<std::size_t>(got);
    }
    return text.substr(0, at);
  }
  FileDescriptor read_end;
  FileDescriptor write_end;
};

bool woken(const Writer& writer) {
  pollfd ready{.fd = writer.wakeup(), .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 10'000) == 1;
}

TEST(Writer, WritesInOrder) {
  const Pipe pipe;
  const auto writer = Writer::make();
  for (int i = 0; i < 101; ++i) {
    writer.value()->push(pipe.write_end.get(), std::to_string(i % 10));
  }
  EXPECT_TRUE(writer.value()->flush(Deadline::after(std::chrono::seconds(10))));
  const std::string text = pipe.read_exactly(101);
  for (std::size_t i = 0; i < 101; ++i) {
    EXPECT_EQ(text[i], static_cast<char>('0' + i % 10));
  }
}

TEST(Writer, ABlockedReaderFillsTheQueueAndNothingElse) {
  const Pipe pipe;
  const auto made = Writer::make();
  Writer& writer = *made.value();
  const std::string chunk(1 << 20, 'x');
  std::size_t pushed = 0;
  while (!writer.full()) {
    writer.push(pipe.write_end.get(), chunk);
    ++pushed;
  }
  EXPECT_FALSE(writer.flush(Deadline::after(std::chrono::milliseconds(20))));
  EXPECT_FALSE(writer.idle());
  EXPECT_EQ(pipe.read_exactly(pushed * chunk.size()).size(), pushed * chunk.size());
  EXPECT_TRUE(woken(writer));
  EXPECT_TRUE(writer.acknowledge().empty());
  EXPECT_TRUE(writer.flush(Deadline::after(std::chrono::seconds(10))));
  EXPECT_FALSE(writer.full());
}

TEST(Writer, ReportsADescriptorThatTakesNoMore) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  Pipe other;
  pipe.read_end.reset();
  const auto made = Writer::make();
  Writer& writer = *made.value();
  writer.push(pipe.write_end.get(), "nobody");
  ASSERT_TRUE(woken(writer));
  const auto broken = writer.acknowledge();
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken[0].fd, pipe.write_end.get());
  EXPECT_EQ(broken[0].error, EPIPE);
  writer.push(pipe.write_end.get(), "dropped");
  writer.push(other.write_end.get(), "seen");
  EXPECT_TRUE(writer.flush(Deadline::after(std::chrono::seconds(10))));
  EXPECT_EQ(other.read_exactly(4), "seen");
  EXPECT_TRUE(writer.acknowledge().empty());
}

}  // namespace
}  // namespace tutti::cli
