#include "tutti/plan/activities.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::plan {

Activities::Activities(const std::vector<Resource>& resources) {
  for (const auto& resource : resources) {
    shared_.push_back({.resource = resource});
  }
}

std::uint32_t Activities::take_slot() {
  if (free_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const auto slot = free_.back();
  free_.pop_back();
  return slot;
}

void Activities::start(std::uint32_t id, double seconds, double demand, std::span<const std::uint32_t> uses) {
  ++started_;
  if (uses.empty()) {
    predictions_.push({now_ + seconds, started_, kNone, id});
    return;
  }
  require(uses.size() <= kMostUsed, "an activity uses a few resources");
  const auto slot = take_slot();
  auto& active = slots_[slot];
  active.rest = seconds;
  active.rate = 0;
  active.since = now_;
  active.demand = demand;
  active.id = id;
  active.looked_at = 0;
  active.count = 0;
  for (const auto resource : uses) {
    active.uses[active.count] = resource;
    add_user(resource, {slot, active.count++});
  }
  fresh_.push_back(slot);
}

std::uint32_t Activities::crowd(const Shared& shared) {
  const auto users = shared.users.size();
  const bool enough =
      shared.resource.capacity == 0 || static_cast<double>(users) * shared.most <= shared.resource.capacity;
  return enough ? 0 : static_cast<std::uint32_t>(users);
}

double Activities::slowed_by(const Shared& shared) {
  const auto& crowding = shared.resource.crowding;
  return crowding.empty() ? 1 : crowding[std::min(shared.users.size(), crowding.size() - 1)];
}

bool Activities::is_noticed(const Shared& shared) {
  constexpr double kLittle = 0.03;
  if (const auto slower = slowed_by(shared); std::abs(slower - shared.slower) > kLittle * slower) {
    return true;
  }
  if (shared.resource.shared == Resource::Shared::fully) {
    return shared.level > 0 || shared.asked > shared.resource.capacity;
  }
  // As long as everyone gets all that it asks for, one more or less is nothing to the others; and little among many.
  const auto users = crowd(shared);
  const auto change = users > shared.seen ? users - shared.seen : shared.seen - users;
  return change * kMany > shared.seen;
}

void Activities::note_change(std::uint32_t resource) {
  auto& shared = shared_[resource];
  if (!shared.changed && is_noticed(shared)) {
    shared.changed = true;
    changed_.push_back(resource);
  }
}

void Activities::divide(Shared& shared) const {
  shared.changed = false;
  shared.seen = crowd(shared);
  shared.slower = slowed_by(shared);
  shared.level = 0;
  if (shared.resource.shared != Resource::Shared::fully || shared.asked <= shared.resource.capacity) {
    return;
  }
  std::vector<double> wishes;
  for (const auto& use : shared.users) {
    wishes.push_back(slots_[use.slot].demand);
  }
  std::sort(wishes.begin(), wishes.end());
  auto left = shared.resource.capacity;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    shared.level = left / static_cast<double>(wishes.size() - i);
    if (wishes[i] >= shared.level) {
      return;
    }
    left -= wishes[i];
  }
}

void Activities::add_user(std::uint32_t resource, Use use) {
  auto& shared = shared_[resource];
  if (shared.users.empty()) {
    shared.since = now_;
  }
  shared.asked += slots_[use.slot].demand;
  shared.most = std::max(shared.most, slots_[use.slot].demand);
  slots_[use.slot].places[use.which] = static_cast<std::uint32_t>(shared.users.size());
  shared.users.push_back(use);
  note_change(resource);
}

void Activities::remove_user(std::uint32_t resource, std::uint32_t place) {
  auto& shared = shared_[resource];
  shared.asked = shared.users.size() == 1 ? 0 : shared.asked - slots_[shared.users[place].slot].demand;
  shared.users[place] = shared.users.back();
  slots_[shared.users[place].slot].places[shared.users[place].which] = place;
  shared.users.pop_back();
  if (shared.users.empty()) {
    shared.busy += now_ - shared.since;
  }
  note_change(resource);
}

void Activities::look_again(std::uint32_t slot) {
  auto& active = slots_[slot];
  if (active.looked_at == round_) {
    return;
  }
  active.looked_at = round_;
  double rate = 1;
  for (std::uint32_t i = 0; i < active.count; ++i) {
    const auto& shared = shared_[active.uses[i]];
    rate = std::min(rate, 1 / shared.slower);
    if (shared.resource.shared == Resource::Shared::fully) {
      rate = shared.level > 0 && active.demand > shared.level ? std::min(rate, shared.level / active.demand) : rate;
      continue;
    }
    const auto asked = active.demand * static_cast<double>(shared.users.size());
    if (shared.resource.capacity > 0 && asked > shared.resource.capacity) {
      rate = std::min(rate, shared.resource.capacity / asked);
    }
  }
  if (rate == active.rate) {
    return;
  }
  active.rest = std::max(0.0, active.rest - (now_ - active.since) * active.rate);
  active.since = now_;
  active.rate = rate;
  predictions_.push({now_ + active.rest / rate, ++started_, slot, ++active.version});
}

void Activities::settle() {
  ++round_;
  for (const auto resource : changed_) {
    divide(shared_[resource]);
  }
  for (const auto slot : fresh_) {
    look_again(slot);
  }
  fresh_.clear();
  for (const auto resource : changed_) {
    for (const auto& use : shared_[resource].users) {
      look_again(use.slot);
    }
  }
  changed_.clear();
}

bool Activities::is_stale(const Prediction& prediction) const {
  return prediction.slot != kNone && slots_[prediction.slot].version != prediction.id_or_version;
}

void Activities::finish(const Prediction& prediction, std::vector<std::uint32_t>& over) {
  if (prediction.slot == kNone) {
    over.push_back(prediction.id_or_version);
    return;
  }
  auto& active = slots_[prediction.slot];
  for (std::uint32_t i = 0; i < active.count; ++i) {
    remove_user(active.uses[i], active.places[i]);
  }
  ++active.version;
  over.push_back(active.id);
  free_.push_back(prediction.slot);
}

bool Activities::advance(std::vector<std::uint32_t>& over) {
  over.clear();
  settle();
  // Sums in another order differ in their last bits: what is that near happens at once.
  constexpr double kAtOnce = 1 + 1e-12;
  while (!predictions_.empty() && (over.empty() || predictions_.top().time <= now_ * kAtOnce)) {
    const auto next = predictions_.top();
    predictions_.pop();
    if (!is_stale(next)) {
      now_ = over.empty() ? next.time : now_;
      finish(next, over);
    }
  }
  return !over.empty();
}

double Activities::busy(std::uint32_t resource) const {
  const auto& shared = shared_[resource];
  return shared.busy + (shared.users.empty() ? 0 : now_ - shared.since);
}

}  // namespace tutti::plan
