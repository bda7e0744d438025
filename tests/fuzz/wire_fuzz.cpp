#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fuzzer/FuzzedDataProvider.h>

#include "tutti/rendezvous/job.h"
#include "tutti/rendezvous/key_value.h"
#include "tutti/rendezvous/wire.h"

namespace tutti::rendezvous {
namespace {

constexpr int kWorld = 3;
constexpr int kMostSteps = 48;  // more in one input finds nothing more, slower
constexpr const char* kVersionText = "0.0.0";

/// Whatever decodes must be what its own encoding says.
void check_decoders(std::string_view bytes) {
  if (const auto frame = decode_frame(bytes); frame && frame.value()) {
    const auto& [value, used] = *frame.value();
    require(used <= bytes.size(), "no more is used than there is");
    const auto again = encode(value);
    require(again.ok() && again.value() == bytes.substr(0, used), "a frame has one encoding");
  }
  if (const auto hello = decode_hello(bytes); hello && hello.value()) {
    const auto& [value, used] = *hello.value();
    require(used <= bytes.size() && used <= kMaxHelloBytes, "a hello is small");
    const bool same = encode(value) == bytes.substr(0, used);
    require(same || value.protocol != kProtocol, "a hello has one encoding");
  }
  if (const auto answer = decode_answer(bytes); answer && answer.value()) {
    const auto& [value, used] = *answer.value();
    require(used <= bytes.size() && used <= kMaxAnswerBytes, "an answer is small");
    const bool same = encode(value) == bytes.substr(0, used);
    require(same || value.protocol != kProtocol, "an answer has one encoding");
  }
}

/// Raw bytes as a member's stream: frame after frame until one does not decode.
void check_stream(std::string_view bytes) {
  Job job(1, kVersionText);
  const ConnectionId connection{7};
  require(job.hello(connection, {.world_size = 1, .version = kVersionText, .host = "h"}).ok(), "rank 0 gets in");
  for (;;) {
    auto frame = decode_frame(bytes);
    if (!frame || !frame.value()) {
      break;
    }
    bytes.remove_prefix(frame.value()->used);
    std::vector<Job::Out> outs;
    const auto stays = job.frame(connection, std::move(frame.value()->value), outs);
    for (const auto& out : outs) {
      const auto answer = decode_frame(out.bytes);
      require(answer && answer.value() && answer.value()->used == out.bytes.size(), "the server speaks its protocol");
    }
    if (!stays || !stays.value()) {
      break;
    }
  }
}

std::string small_key(FuzzedDataProvider& input) { return std::string(1, "abcd"[input.ConsumeIntegralInRange(0, 3)]); }

Request some_request(FuzzedDataProvider& input) {
  Request request;
  request.op = static_cast<Op>(input.ConsumeIntegralInRange(1, 14));
  request.number = input.ConsumeBool() ? input.ConsumeIntegral<std::int64_t>() : input.ConsumeIntegralInRange(0, 3);
  for (int i = input.ConsumeIntegralInRange(0, 3); i > 0; --i) {
    request.keys.push_back(small_key(input));
  }
  for (int i = input.ConsumeIntegralInRange(0, 3); i > 0; --i) {
    request.values.push_back(input.ConsumeRandomLengthString(9));
  }
  return request;
}

/// Every request is answered once, and when all is taken back nothing is left.
void check_state(FuzzedDataProvider& input) {
  KeyValue keys(4096);
  std::set<Ticket> open;
  std::uint64_t next = 0;
  std::vector<KeyValue::Answer> answers;
  const auto account = [&] {
    for (const auto& answer : answers) {
      require(open.erase(answer.ticket) == 1, "a request is answered once");
    }
    answers.clear();
    require(open.size() == keys.waiting(), "who is not answered waits");
  };
  for (int step = 0; step < kMostSteps && input.remaining_bytes() > 0; ++step) {
    if (!open.empty() && input.ConsumeIntegralInRange(0, 5) == 0) {
      const auto one = *open.begin();
      const auto error = keys.cancel(one);
      require(error && error->code == Code::timed_out, "who waits can be taken back");
      open.erase(one);
    } else {
      const Ticket ticket{next++};
      open.insert(ticket);
      keys.apply(ticket, some_request(input), answers);
    }
    account();
  }
  for (const auto ticket : open) {
    require(keys.cancel(ticket).has_value(), "who waits can be taken back");
  }
  for (const char* key : {"a", "b", "c", "d"}) {
    keys.apply(Ticket{next++}, {.op = Op::erase, .keys = {key}, .values = {}}, answers);
  }
  require(keys.bytes() == 0 && keys.waiting() == 0, "nothing is left of what was taken back");
}

Hello some_hello(int rank) {
  return {.rank = Rank{rank}, .world_size = kWorld, .pid = rank, .version = kVersionText, .host = "h"};
}

/// Ranks come, ask, leave and die in any order.
void check_job(FuzzedDataProvider& input) {
  Job job(kWorld, kVersionText);
  std::map<int, ConnectionId> members;
  std::uint64_t next = 100;
  for (int step = 0; step < kMostSteps && input.remaining_bytes() > 0; ++step) {
    const int rank = input.ConsumeIntegralInRange(0, kWorld - 1);
    std::vector<Job::Out> outs;
    if (!members.contains(rank)) {
      const ConnectionId connection{next++};
      require(job.hello(connection, some_hello(rank)).ok(), "a rank that is not here can come");
      members.emplace(rank, connection);
      continue;
    }
    const auto connection = members.at(rank);
    switch (input.ConsumeIntegralInRange(0, 9)) {
      case 0:
        require(!job.frame(connection, {.id = 0, .body = Goodbye{}}, outs).value(), "who leaves is gone");
        members.erase(rank);
        break;
      case 1:
        job.lost(connection, outs);
        members.erase(rank);
        break;
      case 2: require(!job.hello(ConnectionId{next++}, some_hello(rank)).ok(), "a twin is refused"); break;
      case 3: job.declare_lost(Rank{rank}, "lost", outs); break;
      case 4: (void)job.frame(connection, {.id = input.ConsumeIntegral<std::uint8_t>(), .body = Cancel{}}, outs); break;
      default:
        (void)job.frame(connection, {.id = input.ConsumeIntegral<std::uint8_t>(), .body = some_request(input)}, outs);
    }
    require(job.members() == members.size(), "the job knows who is here");
    require(job.generations() <= members.size(), "worlds that nobody is in are forgotten");
  }
}

}  // namespace
}  // namespace tutti::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::rendezvous;
  if (size == 0) {
    return 0;
  }
  FuzzedDataProvider input(data + 1, size - 1);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: check_decoders(bytes); break;
    case 1: check_stream(bytes); break;
    case 2: check_state(input); break;
    default: check_job(input);
  }
  return 0;
}
