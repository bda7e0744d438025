// One operation each: from c10d's tensors and options to a call of the engine.

#include <algorithm>

#include <fmt/format.h>

#include "tutti/comm/backend.h"
#include "tutti/comm/exception.h"

namespace tutti {
namespace {

using engine::Op;

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
engine::BlockList<BlockType> cut(BlockType block, const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                 int size, Op op) {
  engine::BlockList<BlockType> parts;
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

PreparedCall prepare(Op op, int64_t root = 0) {
  PreparedCall prepared(engine::to_string(op));
  prepared.call.op = op;
  prepared.call.root = Rank{static_cast<std::int32_t>(root)};
  return prepared;
}

PreparedCall prepare(Op op, const c10d::ReduceOp& op_of_c10d, int64_t root = 0) {
  auto prepared = prepare(op, root);
  const auto reduce = value_or_throw(to_reduce(op_of_c10d));
  prepared.call.reduce = reduce.op;
  prepared.call.factor = reduce.factor;
  prepared.read_as = reduce.read_as;
  return prepared;
}

}  // namespace

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  auto prepared = prepare(Op::broadcast, options.rootRank);
  const bool root = options.rootRank == rank_;
  prepared.add_in_place(only(tensors, Op::broadcast), root, !root);
  return submit({c10d::OpType::BROADCAST, "tutti:broadcast", options.timeout, options.asyncOp}, std::move(prepared),
                tensors);
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const auto& tensor = only(tensors, Op::all_reduce);
  if (tensor.defined() && tensor.is_sparse()) {
    return sparse_all_reduce(tensor, options);
  }
  auto prepared = prepare(Op::all_reduce, options.reduceOp);
  prepared.add_in_place(tensor, true, true);
  return submit({c10d::OpType::ALLREDUCE, "tutti:all_reduce", options.timeout, options.asyncOp}, std::move(prepared),
                tensors);
}

Backend::WorkPtr Backend::round_sums(const at::Tensor& result, const Summands& summands, std::int64_t divisor,
                                     bool async) {
  auto prepared = prepare(Op::round_sums);
  auto& call = prepared.call;
  call.reduce = kernels::ReduceOp::reproducible_avg;
  call.divisor = static_cast<std::size_t>(std::max<std::int64_t>(divisor, 0));
  call.ends_with_sums = summands.sums.defined();
  prepared.add_output(result);
  need(prepared.copy_back.empty(), Op::round_sums, "the result is not contiguous");
  for (const auto& addend : summands.addends) {
    check_tensor(addend, prepared.name);
    need(addend.is_contiguous() && addend.scalar_type() == result.scalar_type(), Op::round_sums,
         "an addend is not contiguous, or of another type than the result");
    prepared.add_input(addend);
  }
  if (call.ends_with_sums) {
    check_tensor(summands.sums, prepared.name);
    need(summands.sums.is_contiguous() && summands.sums.scalar_type() == at::kByte, Op::round_sums,
         "accumulators are not contiguous bytes");
    call.in.push_back(bytes_of(summands.sums));
    prepared.kept.push_back(summands.sums);
  }
  return submit({c10d::OpType::ALLREDUCE, "tutti:round_sums", c10d::kUnsetTimeout, async}, std::move(prepared),
                {result});
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  auto prepared = prepare(Op::reduce, options.reduceOp, options.rootRank);
  prepared.add_in_place(only(tensors, Op::reduce), true, options.rootRank == rank_);
  return submit({c10d::OpType::REDUCE, "tutti:reduce", options.timeout, options.asyncOp}, std::move(prepared), tensors);
}

Backend::WorkPtr Backend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto prepared = prepare(Op::all_gather);
  prepared.add_input(only(inputs, Op::all_gather));
  for (const auto& output : only_list(outputs, Op::all_gather, size_)) {
    prepared.add_output(output);
  }
  return submit({c10d::OpType::ALLGATHER, "tutti:all_gather", options.timeout, options.asyncOp}, std::move(prepared),
                outputs[0]);
}

PreparedCall Backend::prepare_all_gather(const at::Tensor& output, const at::Tensor& input) const {
  auto prepared = prepare(Op::all_gather);
  prepared.add_input(input);
  prepared.add_output(output);
  need(output.numel() == input.numel() * size_, Op::all_gather,
       fmt::format("the output has {} elements; {} ranks with {} each need {}", output.numel(), size_, input.numel(),
                   input.numel() * size_));
  prepared.call.out = cut(prepared.call.out[0], output, {}, size_, Op::all_gather);
  return prepared;
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& options) {
  return submit({c10d::OpType::_ALLGATHER_BASE, "tutti:all_gather_into_tensor", options.timeout, options.asyncOp},
                prepare_all_gather(output, input), {output});
}

Backend::WorkPtr Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
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
  return submit({c10d::OpType::GATHER, "tutti:gather", options.timeout, options.asyncOp}, std::move(prepared), results);
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  auto prepared = prepare(Op::scatter, options.rootRank);
  prepared.add_output(only(outputs, Op::scatter));
  if (options.rootRank == rank_) {
    for (const auto& input : only_list(inputs, Op::scatter, size_)) {
      prepared.add_input(input);
    }
  } else {
    need(inputs.empty(), Op::scatter, "only the root has inputs");
  }
  return submit({c10d::OpType::SCATTER, "tutti:scatter", options.timeout, options.asyncOp}, std::move(prepared),
                outputs);
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                         const c10d::ReduceScatterOptions& options) {
  auto prepared = prepare(Op::reduce_scatter, options.reduceOp);
  for (const auto& input : only_list(inputs, Op::reduce_scatter, size_)) {
    prepared.add_input(input);
  }
  prepared.add_output(only(outputs, Op::reduce_scatter));
  return submit({c10d::OpType::REDUCE_SCATTER, "tutti:reduce_scatter", options.timeout, options.asyncOp},
                std::move(prepared), outputs);
}

PreparedCall Backend::prepare_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                             const c10d::ReduceOp& op) const {
  auto prepared = prepare(Op::reduce_scatter, op);
  prepared.add_input(input);
  prepared.add_output(output);
  need(input.numel() == output.numel() * size_, Op::reduce_scatter,
       fmt::format("the input has {} elements; {} ranks with {} each need {}", input.numel(), size_, output.numel(),
                   output.numel() * size_));
  prepared.call.in = cut(prepared.call.in[0], input, {}, size_, Op::reduce_scatter);
  return prepared;
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& options) {
  return submit({c10d::OpType::_REDUCE_SCATTER_BASE, "tutti:reduce_scatter_tensor", options.timeout, options.asyncOp},
                prepare_reduce_scatter(output, input, options.reduceOp), {output});
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  auto prepared = prepare(Op::all_to_all);
  prepared.add_input(input);
  prepared.add_output(output);
  prepared.call.in = cut(prepared.call.in[0], input, input_splits, size_, Op::all_to_all);
  prepared.call.out = cut(prepared.call.out[0], output, output_splits, size_, Op::all_to_all);
  return submit({c10d::OpType::ALLTOALL_BASE, "tutti:all_to_all_single", options.timeout, options.asyncOp},
                std::move(prepared), {output});
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  auto prepared = prepare(Op::all_to_all);
  for (const auto& input : inputs) {
    prepared.add_input(input);
  }
  for (const auto& output : outputs) {
    prepared.add_output(output);
  }
  return submit({c10d::OpType::ALLTOALL, "tutti:all_to_all", options.timeout, options.asyncOp}, std::move(prepared),
                outputs);
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  return submit({c10d::OpType::BARRIER, "tutti:barrier", options.timeout, options.asyncOp}, prepare(Op::barrier), {});
}

/// Every barrier of ours names all ranks that are missing; this one throws at once instead of from a Work.
void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool) {
  submit({c10d::OpType::BARRIER, "tutti:monitored_barrier", options.timeout, false}, prepare(Op::barrier), {});
}

Backend::WorkPtr Backend::send(Tensors& tensors, int to, int tag) {
  PreparedCall prepared("send");
  prepared.add_input(only(tensors, "send"));
  const auto open = hold_open();
  auto work = make_work(c10d::OpType::SEND, "tutti:send", {}, getSequenceNumberForGroup());
  const auto bytes = prepared.call.in[0];
  progress_->engine().send(
      Rank{to}, static_cast<std::uint64_t>(tag), bytes, deadline_for(c10d::kUnsetTimeout),
      [kept = std::move(prepared.kept), finish = finisher(work)](const Status& status) { finish(status); });
  return work;
}

Backend::WorkPtr Backend::receive(c10d::OpType type, Tensors& tensors, Rank from, int tag) {
  PreparedCall prepared("recv");
  prepared.add_output(only(tensors, "recv"));
  const auto open = hold_open();
  auto work = make_work(type, "tutti:recv", tensors, getSequenceNumberForGroup());
  const auto bytes = prepared.call.out[0];
  progress_->engine().receive(
      from, static_cast<std::uint64_t>(tag), bytes, deadline_for(c10d::kUnsetTimeout),
      [work, prepared = std::move(prepared), finish = finisher(work)](const Result<Rank>& result) {
        if (!result) {
          finish(result.error());
          return;
        }
        work->set_source(to_int(result.value()));
        finish(prepared.copy_results());
      });
  return work;
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int from, int tag) {
  return receive(c10d::OpType::RECV, tensors, Rank{from}, tag);
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  return receive(c10d::OpType::RECVANYSOURCE, tensors, engine::kAnyRank, tag);
}

}  // namespace tutti
