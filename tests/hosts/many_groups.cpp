#include "tests/hosts/many_groups.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>

#include "tutti/base/error.h"

namespace tutti::tests {
namespace {

/// Ranks of the world, in the group's order.
using Members = std::vector<int>;

struct Named {
  std::string name;
  Group group;
  Members members;
};

constexpr int kMostRanks = 16;
constexpr int kMostGroups = 40;

/// Different for every rank of the world, and every use of every group.
float value_of(int world_rank, int number) { return static_cast<float>(kMostRanks * number + world_rank); }

/// The operations of one rank in one group, begun together.
class UnderWay {
 public:
  /// `number`: of this use of the group, so that its values are no other's.
  UnderWay(const Named& in, int number, std::int64_t count)
      : in_(in), number_(number), rank_(to_int(in.group.rank())), size_(in.group.size()) {
    const auto& group = in_.group;
    sum_ = torch::full({count}, mine());
    copy_ = torch::full({count}, mine());
    all_ = torch::zeros({size_ * 5});
    arrived_ = torch::zeros({3});
    works_.push_back(group.all_reduce(sum_));
    works_.push_back(group.broadcast(copy_, Rank{size_ - 1}));
    works_.push_back(group.all_gather(all_, torch::full({5}, mine())));
    if (size_ > 1) {
      works_.push_back(group.send(torch::full({3}, mine()), Rank{(rank_ + 1) % size_}, 5));
      works_.push_back(group.receive(arrived_, Rank{(rank_ + size_ - 1) % size_}, 5));
    }
  }

  std::string wrong() {
    for (auto& work : works_) {
      work.wait();
    }
    float total = 0;
    for (const int member : in_.members) {
      total += value_of(member, number_);
    }
    const auto is = [](const at::Tensor& tensor, float value) {
      return torch::equal(tensor, torch::full_like(tensor, value));
    };
    const auto of = [&](int rank) { return value_of(in_.members[static_cast<std::size_t>(rank)], number_); };
    const auto complaint = [&](const std::string& what) {
      return what + " of group " + in_.name + " (" + in_.group.shape() + ")";
    };
    if (!is(sum_, total)) {
      return complaint("a wrong sum");
    }
    if (!is(copy_, of(size_ - 1))) {
      return complaint("a wrong copy");
    }
    for (int rank = 0; rank < size_; ++rank) {
      if (!is(all_.narrow(0, rank * 5, 5), of(rank))) {
        return complaint("a wrong part");
      }
    }
    return size_ == 1 || is(arrived_, of((rank_ + size_ - 1) % size_)) ? "" : complaint("a wrong message");
  }

 private:
  float mine() const { return value_of(in_.members[static_cast<std::size_t>(rank_)], number_); }

  const Named& in_;
  const int number_;
  const int rank_;
  const int size_;
  at::Tensor sum_;
  at::Tensor copy_;
  at::Tensor all_;
  at::Tensor arrived_;
  std::vector<Work> works_;
};

class Groups {
 public:
  /// `time`: how often groups were used before.
  explicit Groups(const World& world, int time = 0) : me_(to_int(world.rank())), time_(time) {}

  /// The members are those of `of`, in this order; nothing when this rank is none of them.
  const Named* add(const std::string& name, const Named& of, const Members& ranks) {
    std::vector<Rank> wanted;
    Members members;
    for (const int rank : ranks) {
      wanted.push_back(Rank{rank});
      members.push_back(of.members[static_cast<std::size_t>(rank)]);
    }
    return keep(name, of.group.subgroup(wanted), members);
  }

  const Named* keep(const std::string& name, std::optional<Group> group, const Members& members) {
    require(++numbered_ < kMostGroups, "groups have different numbers");
    if (!group) {
      return nullptr;
    }
    all_.push_back({name, std::move(*group), members});
    numbers_.push_back(numbered_);
    return &all_.back();
  }

  /// On all of them at once; every rank begins with another one, and waits in the opposite order.
  std::string wrong(std::int64_t count) {
    ++time_;
    std::deque<UnderWay> under_way;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto at = (i + static_cast<std::size_t>(me_)) % all_.size();
      under_way.emplace_back(all_[at], kMostGroups * time_ + numbers_[at], count);
    }
    std::string found;
    for (auto each = under_way.rbegin(); each != under_way.rend(); ++each) {
      const auto wrong = each->wrong();
      found = found.empty() ? wrong : found;
    }
    return found;
  }

 private:
  const int me_;
  int time_;
  std::deque<Named> all_;
  std::vector<int> numbers_;
  int numbered_ = 0;  // the same on ranks that are in a group and on those that are not
};

Members first_ranks(int count) {
  Members ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

std::string wrong_in_groups(const World& world) {
  const int me = to_int(world.rank());
  const int ranks = world.size();
  Groups groups(world);
  const auto& whole = *groups.keep("world", world.group(), first_ranks(ranks));

  Members parity;
  for (int rank = me % 2; rank < ranks; rank += 2) {
    parity.push_back(rank);
  }
  const auto& half = *groups.keep(me % 2 == 0 ? "even" : "odd", world.group().split(me % 2), parity);
  // Nested: the last of a half, backwards.
  const auto halves = static_cast<int>(parity.size());
  groups.add("two of a half", half, {halves - 1, halves - 2});

  auto backwards = first_ranks(ranks);
  std::reverse(backwards.begin(), backwards.end());
  const auto& reversed = *groups.add("reversed", whole, backwards);
  groups.add("all but one, of reversed", reversed, first_ranks(ranks - 1));

  Members interleaved;  // of hosts: the first of one, the first of the next
  for (int rank = 0; rank < (ranks + 1) / 2; ++rank) {
    interleaved.push_back(rank);
    if (rank + (ranks + 1) / 2 < ranks) {
      interleaved.push_back(rank + (ranks + 1) / 2);
    }
  }
  groups.add("interleaved", whole, interleaved);
  for (int rank = 0; rank + 1 < ranks; ++rank) {  // every rank but two is in two of these
    groups.add("pair " + std::to_string(rank), whole, {rank + 1, rank});
  }
  for (const std::int64_t count : {1, 1003, 200'003}) {
    for (int again = 0; again < 5; ++again) {
      if (auto wrong = groups.wrong(count); !wrong.empty()) {
        return wrong;
      }
    }
  }
  return {};
}

std::string wrong_in_passing_groups(const World& world, int count) {
  const int me = to_int(world.rank());
  const int ranks = world.size();
  std::mt19937 random(17);  // the same on every rank
  std::deque<Group> kept;
  for (int i = 0; i < count; ++i) {
    auto members = first_ranks(ranks);
    std::shuffle(members.begin(), members.end(), random);
    members.resize(2 + random() % static_cast<unsigned>(ranks - 1));
    auto sum = torch::full({5'003}, static_cast<float>(me));
    auto work = world.group().all_reduce(sum);
    Groups groups(world, i);
    const Named whole{"world", world.group(), first_ranks(ranks)};
    if (const auto* const made = groups.add(std::to_string(i), whole, members)) {
      if (auto wrong = groups.wrong(1003); !wrong.empty()) {
        return wrong;
      }
      kept.push_back(made->group);
      if (kept.size() > static_cast<std::size_t>(3 * me)) {
        kept.pop_front();
      }
    }
    work.wait();
    if (!torch::equal(sum, torch::full({5'003}, static_cast<float>(ranks * (ranks - 1) / 2)))) {
      return "a wrong sum of the world";
    }
  }
  return {};
}

}  // namespace tutti::tests
