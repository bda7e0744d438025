#include "tutti/comm/group.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "tutti/comm/backend.h"
#include "tutti/comm/c10d_store.h"
#include "tutti/comm/call_site.h"
#include "tutti/comm/group_factory.h"

namespace tutti {
namespace {

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < count; ++rank) {
    ranks.push_back(Rank{rank});
  }
  return ranks;
}

void check_members(const std::vector<Rank>& ranks, int size) {
  if (ranks.empty()) {
    throw Exception({Code::invalid_argument, "subgroup: no members given"});
  }
  std::set<Rank> seen;
  for (const auto rank : ranks) {
    if (to_int(rank) < 0 || to_int(rank) >= size) {
      throw Exception(
          {Code::invalid_argument,
           fmt::format("subgroup: rank {} is not in the group, which has ranks 0 to {}", to_int(rank), size - 1)});
    }
    if (!seen.insert(rank).second) {
      throw Exception({Code::invalid_argument, fmt::format("subgroup: rank {} is named twice", to_int(rank))});
    }
  }
}

}  // namespace

Group Group::from(c10::intrusive_ptr<c10d::ProcessGroup> process_group) {
  if (!process_group) {
    throw Exception({Code::invalid_argument, "Group::from: no process group given"});
  }
  auto state = std::make_shared<State>();
  state->members = first_ranks(process_group->getSize());
  state->name = process_group->getGroupName();
  const auto store = process_group->getStore();
  if (!store) {
    throw Exception(
        {Code::invalid_argument, "Group::from: this process group has no store, so sub-groups could not meet"});
  }
  // Each handle has keys of its own, or a second one would find those of the first. Every rank counts its own handles.
  const auto number = store->add(fmt::format("tutti/from/{}", process_group->getRank()), 1);
  auto own = c10::make_intrusive<c10d::PrefixStore>(fmt::format("tutti/from-{}", number), store);
  state->factory = std::make_shared<GroupFactory>(
      GroupFactory::Options{.store = from_c10d(std::move(own)), .rank = Rank{process_group->getRank()}});
  const auto on_cpu = process_group->getDeviceTypes();
  if (std::find(on_cpu.begin(), on_cpu.end(), c10::Device(c10::DeviceType::CPU)) != on_cpu.end()) {
    state->ours = dynamic_cast<Backend*>(process_group->getBackend(c10::DeviceType::CPU).get());
  }
  state->process_group = std::move(process_group);
  return Group(std::move(state));
}

Rank Group::rank() const { return Rank{state_->process_group->getRank()}; }
int Group::size() const { return state_->process_group->getSize(); }
const std::string& Group::name() const { return state_->name; }
const std::vector<Rank>& Group::members() const { return state_->members; }
const c10::intrusive_ptr<c10d::ProcessGroup>& Group::process_group() const { return state_->process_group; }

std::string Group::shape() const { return state_->ours == nullptr ? "" : state_->ours->shape(); }

void Group::choose(std::string_view operation, std::string_view choices) const {
  if (state_->ours == nullptr) {
    throw Exception({Code::unsupported, "choose: another's backend carries this group, and chooses for itself"});
  }
  const auto found = std::find(std::begin(engine::kOpNames), std::end(engine::kOpNames), operation);
  if (found == std::end(engine::kOpNames)) {
    throw Exception({Code::invalid_argument, fmt::format("choose: no operation '{}'", operation)});
  }
  state_->ours->choose(static_cast<engine::Op>(found - std::begin(engine::kOpNames)),
                       value_or_throw(plan::Choices::parse(choices)));
}

std::string Group::engine() const {
  const auto backend = state_->process_group->getDefaultBackend();
  if (auto* ours = dynamic_cast<Backend*>(backend.get())) {
    return ours->engine_name();
  }
  return backend->getBackendName();
}

std::optional<Group> Group::subgroup(const std::vector<Rank>& ranks) const {
  check_members(ranks, size());
  if (std::find(ranks.begin(), ranks.end(), rank()) == ranks.end()) {
    return std::nullopt;
  }
  std::vector<Rank> world_ranks;
  for (const auto rank : ranks) {
    world_ranks.push_back(members()[to_index(rank)]);
  }
  auto made = state_->factory->make(world_ranks);
  made->factory = state_->factory;
  return Group(std::move(made));
}

std::optional<Group> Group::split(int colour, int key) const {
  // Through the store, not by a collective: a group whose engine cannot gather can be split, too.
  auto& store = *state_->factory->options().store;
  const auto deadline = Deadline::after_or_never(state_->factory->options().timeout);
  const auto prefix = fmt::format("tutti/split/{}/{}", name(), state_->splits++);
  std::vector<std::string> keys;
  for (int peer = 0; peer < size(); ++peer) {
    keys.push_back(fmt::format("{}/{}", prefix, peer));
  }
  throw_if_failed(store.set(keys[to_index(rank())], fmt::format("{} {}", colour, key), deadline));
  const auto choices = value_or_throw(store.get_all(keys, deadline));
  if (colour < 0) {
    return std::nullopt;
  }
  std::vector<std::pair<int, Rank>> chosen;
  for (int peer = 0; peer < size(); ++peer) {
    std::istringstream choice(choices[static_cast<std::size_t>(peer)]);
    int their_colour = -1;
    int their_key = 0;
    choice >> their_colour >> their_key;
    if (their_colour == colour) {
      chosen.emplace_back(their_key, Rank{peer});
    }
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<Rank> members;
  for (const auto& [their_key, peer] : chosen) {
    members.push_back(peer);
  }
  return subgroup(members);
}

c10::intrusive_ptr<c10d::Backend> Group::backend(const at::Tensor& tensor) const {
  if (!tensor.defined()) {
    throw Exception({Code::invalid_argument, "an undefined tensor was given"});
  }
  return state_->process_group->getBackend(tensor.device().type());
}

/// Our own backend, when this group waits for its operations and the tensor is one for it.
Backend* Group::at_once(const at::Tensor& tensor) const {
  return blocking_ && tensor.defined() && tensor.device().is_cpu() ? state_->ours : nullptr;
}

Group Group::blocking() const {
  auto group = *this;
  group.blocking_ = true;
  return group;
}

Work Group::all_reduce(const at::Tensor& tensor, Reduce reduce, Site site) const {
  if (auto* ours = at_once(tensor)) {
    ours->run_now(engine::Op::all_reduce, tensor, reduce, Rank{0}, to_call_site(site));
    return Work(nullptr);
  }
  const SiteScope scope(site);
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = to_c10d(reduce);
  return finish(backend(tensors[0])->allreduce(tensors, asked(options)));
}

Work Group::all_reduce(std::vector<at::Tensor> tensors, Reduce reduce, Site site) const {
  const SiteScope scope(site);
  if (tensors.empty()) {
    throw Exception({Code::invalid_argument, "all_reduce: no tensors given"});
  }
  c10d::AllreduceCoalescedOptions options;
  options.reduceOp = to_c10d(reduce);
  return finish(backend(tensors[0])->allreduce_coalesced(tensors, asked(options)));
}

bool Group::can_round_sums() const { return state_->ours != nullptr && state_->ours->can_round_sums(); }

Work Group::round_sums(const at::Tensor& result, const Summands& summands, std::int64_t divisor, Site site) const {
  if (state_->ours == nullptr) {
    throw Exception({Code::unsupported, "round_sums: another's backend carries this group, and has no such operation"});
  }
  const SiteScope scope(site);
  return finish(state_->ours->round_sums(result, summands, divisor, !blocking_));
}

Work Group::reduce(const at::Tensor& tensor, Rank root, Reduce reduce, Site site) const {
  if (auto* ours = at_once(tensor)) {
    ours->run_now(engine::Op::reduce, tensor, reduce, root, to_call_site(site));
    return Work(nullptr);
  }
  const SiteScope scope(site);
  std::vector<at::Tensor> tensors{tensor};
  c10d::ReduceOptions options;
  options.reduceOp = to_c10d(reduce);
  options.rootRank = to_int(root);
  return finish(backend(tensors[0])->reduce(tensors, asked(options)));
}

Work Group::broadcast(const at::Tensor& tensor, Rank root, Site site) const {
  if (auto* ours = at_once(tensor)) {
    ours->run_now(engine::Op::broadcast, tensor, ReduceOp::sum, root, to_call_site(site));
    return Work(nullptr);
  }
  const SiteScope scope(site);
  std::vector<at::Tensor> tensors{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = to_int(root);
  return finish(backend(tensors[0])->broadcast(tensors, asked(options)));
}

Work Group::all_gather(std::vector<at::Tensor> outputs, at::Tensor input, Site site) const {
  const SiteScope scope(site);
  std::vector<std::vector<at::Tensor>> lists{std::move(outputs)};
  std::vector<at::Tensor> inputs{std::move(input)};
  return finish(backend(inputs[0])->allgather(lists, inputs, asked(c10d::AllgatherOptions())));
}

Work Group::all_gather(at::Tensor output, at::Tensor input, Site site) const {
  const SiteScope scope(site);
  return finish(backend(input)->_allgather_base(output, input, asked(c10d::AllgatherOptions())));
}

Work Group::reduce_scatter(at::Tensor output, std::vector<at::Tensor> inputs, Reduce reduce, Site site) const {
  const SiteScope scope(site);
  std::vector<at::Tensor> outputs{std::move(output)};
  std::vector<std::vector<at::Tensor>> lists{std::move(inputs)};
  c10d::ReduceScatterOptions options;
  options.reduceOp = to_c10d(reduce);
  return finish(backend(outputs[0])->reduce_scatter(outputs, lists, asked(options)));
}

Work Group::reduce_scatter(at::Tensor output, at::Tensor input, Reduce reduce, Site site) const {
  const SiteScope scope(site);
  c10d::ReduceScatterOptions options;
  options.reduceOp = to_c10d(reduce);
  return finish(backend(output)->_reduce_scatter_base(output, input, asked(options)));
}

Work Group::all_to_all(std::vector<at::Tensor> outputs, std::vector<at::Tensor> inputs, Site site) const {
  const SiteScope scope(site);
  if (inputs.empty()) {
    throw Exception({Code::invalid_argument, "all_to_all: no inputs given"});
  }
  return finish(backend(inputs[0])->alltoall(outputs, inputs, asked(c10d::AllToAllOptions())));
}

Work Group::all_to_all(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits,
                       std::vector<int64_t> input_splits, Site site) const {
  const SiteScope scope(site);
  return finish(
      backend(input)->alltoall_base(output, input, output_splits, input_splits, asked(c10d::AllToAllOptions())));
}

Work Group::gather(std::vector<at::Tensor> outputs, at::Tensor input, Rank root, Site site) const {
  const SiteScope scope(site);
  std::vector<at::Tensor> inputs{std::move(input)};
  std::vector<std::vector<at::Tensor>> lists;
  if (!outputs.empty()) {
    lists.push_back(std::move(outputs));
  }
  c10d::GatherOptions options;
  options.rootRank = to_int(root);
  return finish(backend(inputs[0])->gather(lists, inputs, asked(options)));
}

Work Group::scatter(at::Tensor output, std::vector<at::Tensor> inputs, Rank root, Site site) const {
  const SiteScope scope(site);
  std::vector<at::Tensor> outputs{std::move(output)};
  std::vector<std::vector<at::Tensor>> lists;
  if (!inputs.empty()) {
    lists.push_back(std::move(inputs));
  }
  c10d::ScatterOptions options;
  options.rootRank = to_int(root);
  return finish(backend(outputs[0])->scatter(outputs, lists, asked(options)));
}

Work Group::send(at::Tensor tensor, Rank to, int tag) const {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return finish(backend(tensors[0])->send(tensors, to_int(to), tag));
}

Work Group::receive(at::Tensor tensor, Rank from, int tag) const {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return finish(backend(tensors[0])->recv(tensors, to_int(from), tag));
}

Work Group::receive_any(at::Tensor tensor, int tag) const {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return finish(backend(tensors[0])->recvAnysource(tensors, tag));
}

Work Group::barrier(Site site) const {
  if (blocking_ && state_->ours != nullptr && state_->ours == state_->process_group->getDefaultBackend().get()) {
    state_->ours->barrier_now(to_call_site(site));
    return Work(nullptr);
  }
  const SiteScope scope(site);
  return finish(state_->process_group->getDefaultBackend()->barrier(asked(c10d::BarrierOptions())));
}

void Group::monitored_barrier(std::chrono::milliseconds timeout, Site site) const {
  const SiteScope scope(site);
  c10d::BarrierOptions options;
  options.timeout = timeout;
  state_->process_group->getDefaultBackend()->monitoredBarrier(options, true);
}

void Group::abort() const { state_->process_group->getDefaultBackend()->abort(); }

/// What a foreign backend started for a blocking group is waited for here.
Work Group::finish(c10::intrusive_ptr<c10d::Work> work) const {
  if (blocking_ && work) {
    work->wait();
  }
  return Work(std::move(work));
}

}  // namespace tutti
