// What a plugin sends, receives and adds up in parts, with parts as short as one likes. Started by MPI's launcher:
//   message_parts PLUGIN
#include <cstdio>
#include <cstring>
#include <numeric>

#include "tutti/engine/mpi/library.h"

namespace {

using namespace tutti::engine::mpi;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kLongestPart = 1000;
constexpr std::size_t kLengths[] = {0, 1, 999, 1000, 1001, 2000, 3000, 7003};

Bytes bytes_of(int rank, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 31 + i / 256 + static_cast<std::size_t>(rank) * 17) % 251);
  }
  return bytes;
}

struct Rank {
  Library& library;
  Requests& requests;
  int me = library.rank();
  int ranks = library.size();

  /// Waits for all; their ends, by number.
  std::vector<Over> finish(std::size_t numbers) {
    std::vector<Over> ends;
    while (requests.pending() != 0) {
      if (library.call([&] { return requests.poll(ends); }) != 0) {
        return {};
      }
    }
    std::vector<Over> by_number(numbers);
    for (const auto& end : ends) {
      by_number.at(end.number) = end;
    }
    return ends.size() == numbers ? by_number : std::vector<Over>{};
  }
};

/// Two messages of each length around the ring at once: each is over once, and as long as it is.
bool messages_arrive(Rank& rank, bool until_taken) {
  const int next = (rank.me + 1) % rank.ranks;
  const int previous = (rank.me + rank.ranks - 1) % rank.ranks;
  const auto where = rank.library.base();
  for (const auto length : kLengths) {
    const Bytes mine[] = {bytes_of(rank.me, length), bytes_of(rank.me + 5, length)};
    Bytes theirs[] = {Bytes(length), Bytes(length)};
    const int error = rank.library.call([&] {
      int begun = 0;
      for (unsigned i = 0; i < 2; ++i) {
        begun |= rank.requests.receive(where, previous, 3, theirs[i].data(), length, i);
        begun |= until_taken ? rank.requests.send_until_taken(where, next, 3, mine[i].data(), length, 2 + i)
                             : rank.requests.send(where, next, 3, mine[i].data(), length, 2 + i);
      }
      return begun;
    });
    const auto ends = rank.finish(4);
    if (error != 0 || ends.size() != 4 || theirs[0] != bytes_of(previous, length) ||
        theirs[1] != bytes_of(previous + 5, length) || ends[0].bytes != length || ends[1].bytes != length ||
        ends[0].from != previous) {
      std::printf("rank %d: wrong message of %zu bytes\n", rank.me, length);
      return false;
    }
  }
  return true;
}

bool copies_arrive(Rank& rank) {
  for (const auto length : kLengths) {
    auto bytes = bytes_of(rank.me, length);
    const int root = rank.ranks - 1;
    const int error =
        rank.library.call([&] { return rank.requests.broadcast(rank.library.base(), bytes.data(), length, root, 0); });
    if (error != 0 || rank.finish(1).empty() || bytes != bytes_of(root, length)) {
      std::printf("rank %d: wrong copy of %zu bytes\n", rank.me, length);
      return false;
    }
  }
  return true;
}

template <class T>
bool sums_are_right(Rank& rank, Element element) {
  for (const std::size_t count : {1, 124, 125, 126, 1003, 4001}) {
    for (const bool in_place : {false, true}) {
      std::vector<T> in(count);
      std::iota(in.begin(), in.end(), static_cast<T>(rank.me));
      std::vector<T> out = in;
      auto* const to = reinterpret_cast<std::byte*>(out.data());
      const auto* const from = in_place ? to : reinterpret_cast<const std::byte*>(in.data());
      const int error = rank.library.call(
          [&] { return rank.requests.all_reduce(rank.library.base(), from, to, count, element, Reducer::sum, 0); });
      bool right = error == 0 && !rank.finish(1).empty();
      for (std::size_t i = 0; i < count; ++i) {
        const auto all = static_cast<std::size_t>(rank.ranks);
        right = right && out[i] == static_cast<T>(all * i + all * (all - 1) / 2);
      }
      if (!right) {
        std::printf("rank %d: wrong sum of %zu elements of %zu bytes\n", rank.me, count, sizeof(T));
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const auto library =
      Library::open({.wanted = argc > 1 ? argv[1] : ""}, tutti::Deadline::after(std::chrono::seconds(60)));
  if (!library) {
    std::fprintf(stderr, "%s\n", library.error().message.c_str());
    return 1;
  }
  for (const auto longest : {kLongestPart, kLongestPart + 3}) {  // also one that is no whole number of elements
    const auto requests = library.value()->api().make_requests(longest);
    Rank rank{*library.value(), *requests};
    if (!messages_arrive(rank, false) || !messages_arrive(rank, true) || !copies_arrive(rank) ||
        !sums_are_right<double>(rank, Element::float64) || !sums_are_right<std::int16_t>(rank, Element::int16)) {
      return 1;
    }
  }
  std::printf("rank %d of %d: all parts right\n", library.value()->rank(), library.value()->size());
  return 0;
}
