#include "tutti/comm/backend.h"

#include <unistd.h>

#include <thread>

#include <fmt/format.h>

#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"

namespace tutti {
namespace {

using engine::Op;

[[noreturn]] void refuse(std::string message) { throw Exception({Code::invalid_argument, std::move(message)}); }

void need(bool condition, std::string_view name, std::string_view sentence) {
  if (!condition) {
    refuse(fmt::format("{}: {}", name, sentence));
  }
}

void need(bool condition, Op op, std::string_view sentence) { need(condition, engine::to_string(op), sentence); }

/// c10d passes lists of one tensor per device; a CPU group has one device.
const at::Tensor& only(const std::vector<at::Tensor>& tensors, std::string_view name) {
  need(tensors.size() == 1, name, fmt::format("one tensor is expected, and {} were given", tensors.size()));
  return tensors[0];
}

const at::Tensor& only(const std::vector<at::Tensor>& tensors, Op op) { return only(tensors, engine::to_string(op)); }

const std::vector<at::Tensor>& only_list(const std::vector<std::vector<at::Tensor>>& lists, Op op, int size) {
  need(lists.size() == 1, op, fmt::format("one list of tensors is expected, and {} were given", lists.size()));
  need(lists[0].size() == static_cast<std::size_t>(size), op,
       fmt::format("the list has {} tensors, and the group {} ranks", lists[0].size(), size));
  return lists[0];
}

/// Cuts a contiguous block into one part per rank: equal ones, or along dimension 0 by `splits`.
template <class BlockType>
std::vector<BlockType> cut(BlockType block, const at::Tensor& tensor, const std::vector<int64_t>& splits, int size,
                           Op op) {
  std::vector<BlockType> parts;
  if (splits.empty()) {
    const auto count = static_cast<std::size_t>(size);
    need(tensor.numel() % size == 0, op,
         fmt::format("{} elements cannot be divided into {} equal parts; give the splits", tensor.numel(), size));
    for (std::size_t rank = 0; rank < count; ++rank) {
      parts.push_back(block.subspan(rank * (block.size() / count), block.size() / count));
    }
    return parts;
  }
  need(splits.size() == static_cast<std::size_t>(size), op,
       fmt::format("{} splits given for {} ranks", splits.size(), size));
  const auto rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  int64_t total = 0;
  for (const auto rows_here : splits) {
    need(rows_here >= 0 && rows_here <= rows - total, op, "the splits do not add up to the size of dimension 0");
    total += rows_here;
  }
  need(total == rows, op, "the splits do not add up to the size of dimension 0");
  const auto row_bytes = rows == 0 ? 0 : block.size() / static_cast<std::size_t>(rows);
  std::size_t begin = 0;
  for (const auto rows_here : splits) {
    const auto bytes = static_cast<std::size_t>(rows_here) * row_bytes;
    parts.push_back(block.subspan(begin, bytes));
    begin += bytes;
  }
  return parts;
}

/// Into outputs that were not contiguous, on a thread of ours, whatever mode the caller was in.
Status copy_results(const std::vector<std::pair<at::Tensor, at::Tensor>>& copies) {
  try {
    const at::AutoDispatchBelowADInplaceOrView plain_copies;
    for (const auto& [to, from] : copies) {
      to.copy_(from);
    }
    return {};
  } catch (const std::exception& exception) {
    return Error{Code::system, fmt::format("the result could not be copied out: {}", exception.what())};
  }
}

PreparedCall prepare(Op op, int64_t root = 0) {
  PreparedCall prepared{.name = engine::to_string(op), .call = {.op = op}, .kept = {}, .copy_back = {}};
  prepared.call.root = Rank{static_cast<std::int32_t>(root)};
  return prepared;
}

PreparedCall prepare(Op op, const c10d::ReduceOp& reduce, int64_t root = 0) {
  auto prepared = prepare(op, root);
  prepared.call.reduce = value_or_throw(to_reduce_op(reduce));
  return prepared;
}

}  // namespace

Backend::Backend(std::unique_ptr<engine::Engine> engine, std::chrono::milliseconds timeout)
    : c10d::Backend(to_int(engine->rank()), engine->ranks()),
      process_(::getpid()),
      engine_name_(engine->name()),
      progress_(std::make_unique<engine::Progress>(std::move(engine))),
      timeout_ms_(timeout.count()) {
  init();
}

Backend::~Backend() {
  if (::getpid() != process_) {
    (void)progress_.release();  // a forked child has none of its threads, and is not the rank
    return;
  }
  if (progress_->on_own_thread()) {  // the last handle went in a callback, which cannot wait for its own thread to end
    std::thread([progress = std::move(progress_)]() mutable { progress.reset(); }).detach();
    return;
  }
  shutdown();
}

std::shared_lock<std::shared_mutex> Backend::hold_open() {
  if (::getpid() != process_) {
    throw Exception(
        {Code::unsupported,
         "this process was forked after the group was made, and is not its rank: communicate in the parent, "
         "or start processes with spawn instead of fork"});
  }
  std::shared_lock lock(open_mutex_);
  if (!open_) {
    throw Exception({Code::aborted, "this group was shut down"});
  }
  return lock;
}

Deadline Backend::deadline_for(std::chrono::milliseconds asked) const {
  const auto timeout = asked < std::chrono::milliseconds(0) ? std::chrono::milliseconds(timeout_ms_) : asked;
  return Deadline::after_or_never(timeout);
}

Backend::WorkPtr Backend::submit(c10d::OpType type, const char* title, PreparedCall prepared, Tensors outputs,
                                 std::chrono::milliseconds timeout) {
  throw_if_failed(engine::check_call(prepared.call, Rank{rank_}, size_));
  const auto open = hold_open();
  const std::scoped_lock lock(submit_mutex_);
  auto& engine = progress_->engine();
  if (!engine.can(prepared.call.op)) {
    throw Exception({Code::unsupported, fmt::format("{}: the engine '{}' of this group cannot do that",
                                                    engine::to_string(prepared.call.op), engine.name())});
  }
  auto work = c10::make_intrusive<BackendWork>(rank_, type, title, std::move(outputs), ++sequence_);
  progress_->submit(std::move(prepared.call), deadline_for(timeout),
                    [work, kept = std::move(prepared.kept), copy_back = std::move(prepared.copy_back)](
                        const Status& status) { work->complete(status ? copy_results(copy_back) : status); });
  return work;
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  auto prepared = prepare(Op::broadcast, options.rootRank);
  const bool root = options.rootRank == rank_;
  prepared.add_in_place(only(tensors, Op::broadcast), root, !root);
  return submit(c10d::OpType::BROADCAST, "tutti:broadcast", std::move(prepared), tensors, options.timeout);
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  auto prepared = prepare(Op::all_reduce, options.reduceOp);
  prepared.add_in_place(only(tensors, Op::all_reduce), true, true);
  return submit(c10d::OpType::ALLREDUCE, "tutti:all_reduce", std::move(prepared), tensors, options.timeout);
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  auto prepared = prepare(Op::reduce, options.reduceOp, options.rootRank);
  prepared.add_in_place(only(tensors, Op::reduce), true, options.rootRank == rank_);
  return submit(c10d::OpType::REDUCE, "tutti:reduce", std::move(prepared), tensors, options.timeout);
}

Backend::WorkPtr Backend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                    const c10d::AllgatherOptions& options) {
  auto prepared = prepare(Op::all_gather);
  prepared.add_input(only(inputs, Op::all_gather));
  for (const auto& output : only_list(outputs, Op::all_gather, size_)) {
    prepared.add_output(output);
  }
  return submit(c10d::OpType::ALLGATHER, "tutti:all_gather", std::move(prepared), outputs[0], options.timeout);
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& options) {
  auto prepared = prepare(Op::all_gather);
  need(output.numel() == input.numel() * size_, Op::all_gather,
       fmt::format("the output has {} elements; {} ranks with {} each need {}", output.numel(), size_, input.numel(),
                   input.numel() * size_));
  prepared.add_input(input);
  prepared.add_output(output);
  prepared.call.out = cut(prepared.call.out[0], output, {}, size_, Op::all_gather);
  return submit(c10d::OpType::_ALLGATHER_BASE, "tutti:all_gather_into_tensor", std::move(prepared), {output},
                options.timeout);
}

Backend::WorkPtr Backend::gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  auto prepared = prepare(Op::gather, options.rootRank);
  prepared.add_input(only(inputs, Op::gather));
  Tensors results;
  if (options.rootRank == rank_) {
    results = only_list(outputs, Op::gather, size_);
    for (const auto& output : results) {
      prepared.add_output(output);
    }
  } else {
    need(outputs.empty(), Op::gather, "only the root has outputs");
  }
  return submit(c10d::OpType::GATHER, "tutti:gather", std::move(prepared), std::move(results), options.timeout);
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
  auto prepared = prepare(Op::scatter, options.rootRank);
  prepared.add_output(only(outputs, Op::scatter));
  if (options.rootRank == rank_) {
    for (const auto& input : only_list(inputs, Op::scatter, size_)) {
      prepared.add_input(input);
    }
  } else {
    need(inputs.empty(), Op::scatter, "only the root has inputs");
  }
  return submit(c10d::OpType::SCATTER, "tutti:scatter", std::move(prepared), outputs, options.timeout);
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                         const c10d::ReduceScatterOptions& options) {
  auto prepared = prepare(Op::reduce_scatter, options.reduceOp);
  for (const auto& input : only_list(inputs, Op::reduce_scatter, size_)) {
    prepared.add_input(input);
  }
  prepared.add_output(only(outputs, Op::reduce_scatter));
  return submit(c10d::OpType::REDUCE_SCATTER, "tutti:reduce_scatter", std::move(prepared), outputs, options.timeout);
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& options) {
  auto prepared = prepare(Op::reduce_scatter, options.reduceOp);
  need(input.numel() == output.numel() * size_, Op::reduce_scatter,
       fmt::format("the input has {} elements; {} ranks with {} each need {}", input.numel(), size_, output.numel(),
                   output.numel() * size_));
  prepared.add_input(input);
  prepared.add_output(output);
  prepared.call.in = cut(prepared.call.in[0], input, {}, size_, Op::reduce_scatter);
  return submit(c10d::OpType::_REDUCE_SCATTER_BASE, "tutti:reduce_scatter_tensor", std::move(prepared), {output},
                options.timeout);
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  auto prepared = prepare(Op::all_to_all);
  prepared.add_input(input);
  prepared.add_output(output);
  prepared.call.in = cut(prepared.call.in[0], input, input_splits, size_, Op::all_to_all);
  prepared.call.out = cut(prepared.call.out[0], output, output_splits, size_, Op::all_to_all);
  return submit(c10d::OpType::ALLTOALL_BASE, "tutti:all_to_all_single", std::move(prepared), {output}, options.timeout);
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  auto prepared = prepare(Op::all_to_all);
  for (const auto& input : inputs) {
    prepared.add_input(input);
  }
  for (const auto& output : outputs) {
    prepared.add_output(output);
  }
  return submit(c10d::OpType::ALLTOALL, "tutti:all_to_all", std::move(prepared), outputs, options.timeout);
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  return submit(c10d::OpType::BARRIER, "tutti:barrier", prepare(Op::barrier), {}, options.timeout);
}

Backend::WorkPtr Backend::send(Tensors& tensors, int to, int tag) {
  PreparedCall prepared{.name = "send", .call = {}, .kept = {}, .copy_back = {}};
  prepared.add_input(only(tensors, "send"));
  const auto open = hold_open();
  auto work = c10::make_intrusive<BackendWork>(rank_, c10d::OpType::SEND, "tutti:send", Tensors{}, sequence_);
  progress_->engine().send(Rank{to}, static_cast<std::uint64_t>(tag), prepared.call.in[0],
                           deadline_for(c10d::kUnsetTimeout),
                           [work, kept = std::move(prepared.kept)](const Status& status) { work->complete(status); });
  return work;
}

Backend::WorkPtr Backend::receive(c10d::OpType type, Tensors& tensors, Rank from, int tag) {
  PreparedCall prepared{.name = "recv", .call = {}, .kept = {}, .copy_back = {}};
  prepared.add_output(only(tensors, "recv"));
  const auto open = hold_open();
  auto work = c10::make_intrusive<BackendWork>(rank_, type, "tutti:recv", tensors, sequence_);
  progress_->engine().receive(
      from, static_cast<std::uint64_t>(tag), prepared.call.out[0], deadline_for(c10d::kUnsetTimeout),
      [work, kept = std::move(prepared.kept), copy_back = std::move(prepared.copy_back)](const Result<Rank>& result) {
        if (!result) {
          work->complete(result.error());
          return;
        }
        work->set_source(to_int(result.value()));
        work->complete(copy_results(copy_back));
      });
  return work;
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int from, int tag) {
  return receive(c10d::OpType::RECV, tensors, Rank{from}, tag);
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  return receive(c10d::OpType::RECVANYSOURCE, tensors, engine::kAnyRank, tag);
}

void Backend::abort() {
  if (::getpid() != process_) {
    return;
  }
  const std::shared_lock lock(open_mutex_);
  if (open_) {
    progress_->engine().abort({Code::aborted, fmt::format("rank {} aborted the group", rank_), Rank{rank_}});
  }
}

void Backend::shutdown() {
  if (::getpid() != process_) {
    return;
  }
  {
    const std::scoped_lock lock(open_mutex_);
    open_ = false;
  }
  if (!progress_->on_own_thread()) {  // else the destructor does it
    progress_->close();
  }
}

}  // namespace tutti
