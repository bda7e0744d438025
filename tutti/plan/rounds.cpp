#include "tutti/plan/rounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tutti::plan {

Rounds::Rounds(const Fabric& fabric)
    : fabric_(fabric),
      clocks_(static_cast<std::size_t>(fabric.ranks())),
      link_busy_(fabric.links(), 0),
      host_busy_(fabric.hosts(), 0),
      crossing_(fabric.links()),
      workers_(fabric.hosts(), 0) {}

double Rounds::crowding(const Work& work, double ranks_of_host) const {
  const auto& processors = fabric_.network().processors;
  const auto turns = processors.turns(static_cast<std::int64_t>(std::ceil(ranks_of_host)));
  auto factor = static_cast<double>(std::max<std::int64_t>(turns, 1));
  if (processors.memory > 0 && work.seconds > 0) {
    factor = std::max(factor, ranks_of_host * work.copied / work.seconds / processors.memory);
  }
  return factor;
}

void Rounds::begin_count() {
  std::fill(workers_.begin(), workers_.end(), 0);
  ++count_;
}

bool Rounds::count_worker(Rank rank) {
  auto& clock = clocks_[to_index(rank)];
  const bool first = clock.counted != count_;
  workers_[host_of(rank)] += first ? 1 : 0;
  clock.counted = count_;
  return first;
}

void Rounds::work(Rank rank, const Work& work, double times, double Spent::*what) {
  auto& clock = clocks_[to_index(rank)];
  const auto host = host_of(rank);
  const auto seconds = times * work.seconds * crowding(work, workers_[host]);
  clock.now += seconds;
  clock.busy += times * work.seconds;
  clock.spent.*what += seconds;
  clock.reducing += what == &Spent::reduction ? times * work.seconds : 0;
  const auto& processors = fabric_.network().processors;
  const auto cores = processors.cores > 0 ? work.seconds / processors.cores : 0;
  const auto memory = processors.memory > 0 ? work.copied / processors.memory : 0;
  host_busy_[host] += times * std::max(cores, memory);
}

void Rounds::exchange(std::span<const Message> messages) {
  std::fill(crossing_.begin(), crossing_.end(), Crossing{});
  begin_count();
  for (const auto& message : messages) {
    if (message.bytes > 0) {
      const auto path = fabric_.path(message.from, message.to);
      for (const auto link : path.crossed()) {
        ++crossing_[link].messages;
        crossing_[link].bytes += message.bytes;
      }
      count_worker(message.from);
    }
  }
  flights_.resize(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].bytes > 0) {
      send(messages[i], flights_[i]);
    }
  }
  begin_count();
  bool several = false;  // for one receiver
  order_.clear();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].bytes > 0) {
      auto& clock = clocks_[to_index(messages[i].from)];
      clock.line_out = std::max(clock.line_out, flights_[i].off);
      several = !count_worker(messages[i].to) || several;
      order_.push_back(i);
    }
  }
  if (several) {  // what comes first is taken first
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return flights_[a].there < flights_[b].there; });
  }
  for (const auto i : order_) {
    receive(messages[i], flights_[i]);
  }
  for (const auto i : order_) {
    auto& clock = clocks_[to_index(messages[i].to)];
    clock.line_in = std::max(clock.line_in, flights_[i].off);
  }
}

void Rounds::send(const Message& message, Flight& flight) {
  const auto path = fabric_.path(message.from, message.to);
  const auto& level = fabric_.network().levels[path.level];
  work(message.from, end_work(fabric_.network(), level, level.send, message.bytes), 1, &Spent::messages);
  auto& sender = clocks_[to_index(message.from)];
  ++sender.messages;
  flight = {.off = sender.now, .there = sender.now + level.latency, .spent = sender.spent};
  flight.spent.latency += level.latency;
  const auto alone = fabric_.alone(path);
  if (alone == 0) {
    return;
  }
  auto takes = message.bytes / alone;
  for (const auto link : path.crossed()) {
    if (const auto bandwidth = fabric_.bandwidth(link); bandwidth > 0) {
      // As long as others are as long; at most until all of it is through.
      const auto& crossing = crossing_[link];
      takes = std::max(takes, std::min(crossing.messages * message.bytes, crossing.bytes) / bandwidth);
      link_busy_[link] += message.bytes / bandwidth;
    }
  }
  // What was sent before, or is on its way to the same rank, has to be off the links first.
  const auto free = std::max({sender.now, sender.line_out, clocks_[to_index(message.to)].line_in});
  flight.off = free + takes;
  flight.there = flight.off + level.latency;
  flight.spent.transfer += message.bytes / alone;
  flight.spent.sharing += flight.off - sender.now - message.bytes / alone;
}

void Rounds::receive(const Message& message, const Flight& flight) {
  auto& receiver = clocks_[to_index(message.to)];
  if (flight.there > receiver.now) {
    receiver.now = flight.there;
    receiver.spent = flight.spent;
  }
  const auto& level = fabric_.network().levels[fabric_.path(message.from, message.to).level];
  work(message.to, end_work(fabric_.network(), level, level.receive, message.bytes), 1, &Spent::messages);
}

void Rounds::combine(std::span<const Rank> ranks, std::uint32_t sources, double bytes, double times) {
  begin_count();
  for (const auto rank : ranks) {
    count_worker(rank);
  }
  const auto adding = combine_work(fabric_.network().processors, sources, bytes);
  for (const auto rank : ranks) {
    work(rank, adding, times, &Spent::reduction);
  }
}

void Rounds::all_spend(const Spent& spent, double messages_of_a_rank, Busy busy) {
  const auto& latest = clocks_[last()];
  const auto now = latest.now + spent.total();
  auto all = latest.spent;
  all += spent;
  for (auto& clock : clocks_) {
    clock.now = now;
    clock.spent = all;
    clock.messages += messages_of_a_rank;
    clock.busy += busy.processor;
  }
  any_link_busy_ += busy.link;
}

void Rounds::begin_chunks() {
  std::fill(link_busy_.begin(), link_busy_.end(), 0);
  std::fill(host_busy_.begin(), host_busy_.end(), 0);
  any_link_busy_ = 0;
  for (auto& clock : clocks_) {
    clock.busy = 0;
    clock.reducing = 0;
    clock.messages_before = clock.messages;
  }
}

void Rounds::end_chunks(unsigned chunks) {
  const double more = chunks - 1;
  Spent each;
  for (const auto& clock : clocks_) {
    if (clock.busy > each.total()) {
      each = {.messages = clock.busy - clock.reducing, .reduction = clock.reducing};
    }
  }
  if (const auto host = *std::max_element(host_busy_.begin(), host_busy_.end()); host > each.total()) {
    each = each * (host / each.total());
  }
  const auto busiest = std::max_element(link_busy_.begin(), link_busy_.end());
  const auto link = any_link_busy_ + (busiest == link_busy_.end() ? 0 : *busiest);
  if (link > each.total()) {
    each = {.sharing = link};
  }
  further_chunk_ = std::max(further_chunk_, each.total());
  each = each * more;
  for (auto& clock : clocks_) {
    clock.now += each.total();
    clock.spent += each;
    clock.messages += (clock.messages - clock.messages_before) * more;
  }
}

std::size_t Rounds::last() const {
  return static_cast<std::size_t>(
      std::max_element(clocks_.begin(), clocks_.end(), [](const Clock& a, const Clock& b) { return a.now < b.now; }) -
      clocks_.begin());
}

double Rounds::seconds() const { return clocks_[last()].now; }

const Spent& Rounds::spent() const { return clocks_[last()].spent; }

double Rounds::all_messages() const {
  return std::accumulate(clocks_.begin(), clocks_.end(), 0.0,
                         [](double sum, const Clock& clock) { return sum + clock.messages; });
}

double Rounds::most_messages() const {
  return std::max_element(clocks_.begin(), clocks_.end(),
                          [](const Clock& a, const Clock& b) { return a.messages < b.messages; })
      ->messages;
}

}  // namespace tutti::plan
