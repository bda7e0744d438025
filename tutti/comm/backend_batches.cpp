// Several operations as one, and those that take several steps.

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "tutti/comm/backend.h"
#include "tutti/comm/call_site.h"
#include "tutti/comm/exception.h"

namespace tutti {
namespace {

using engine::Op;

void need_as_many(std::size_t outputs, std::size_t inputs, std::string_view name) {
  if (outputs != inputs) {
    refuse(fmt::format("{}: {} outputs were given for {} inputs", name, outputs, inputs));
  }
}

/// What one rank says about its sparse tensor before the others take it.
std::vector<int64_t> shape_of(const at::Tensor& tensor) {
  std::vector<int64_t> shape{tensor._nnz(), tensor.sparse_dim(), tensor.dense_dim()};
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
  return shape;
}

/// The sum of every rank's sparse tensor: indices and values are gathered from all and added where they meet, in rank
/// order.
class SparseSum {
 public:
  SparseSum(at::Tensor tensor, Deadline deadline, engine::CallSite site)
      : tensor_(std::move(tensor)), deadline_(deadline), site_(site), mine_(tensor_.detach().coalesce()) {}

  Status run(engine::Engine& engine, bool average) {
    const at::AutoDispatchBelowADInplaceOrView plain;
    const auto ranks = static_cast<std::size_t>(engine.ranks());
    const auto shape = shape_of(mine_);
    std::vector<int64_t> shapes(shape.size() * ranks);
    if (auto met = gather(engine, kernels::DType::int64, std::as_bytes(std::span(shape)), equal_parts(shapes, ranks));
        !met) {
      return met;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (!std::equal(shape.begin() + 1, shape.end(),
                      shapes.begin() + static_cast<std::ptrdiff_t>(rank * shape.size()) + 1)) {
        return Error{Code::mismatch,
                     fmt::format("sparse all_reduce: tensors of rank {} and rank {} have different shapes",
                                 to_int(engine.rank()), rank),
                     to_rank(rank)};
      }
    }
    std::vector<at::Tensor> indices;
    std::vector<at::Tensor> values;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto count = shapes[rank * shape.size()];
      auto value_sizes = mine_._values().sizes().vec();
      value_sizes[0] = count;
      indices.push_back(at::empty({mine_.sparse_dim(), count}, at::kLong));
      values.push_back(at::empty(value_sizes, mine_._values().options()));
    }
    const auto my_indices = mine_._indices().contiguous();
    const auto my_values = mine_._values().contiguous();
    if (auto met = gather(engine, kernels::DType::int64, bytes_of(my_indices), parts(indices)); !met) {
      return met;
    }
    const auto dtype = to_dtype(my_values.scalar_type());
    if (!dtype) {
      return dtype.error();
    }
    if (auto met = gather(engine, dtype.value(), bytes_of(my_values), parts(values)); !met) {
      return met;
    }
    auto sum = at::_sparse_coo_tensor_unsafe(at::cat(indices, 1), at::cat(values, 0), mine_.sizes()).coalesce();
    if (average) {
      sum = sum.div_(static_cast<double>(ranks));
    }
    tensor_.copy_(sum);
    return {};
  }

 private:
  static engine::BlockList<engine::Block> equal_parts(std::vector<int64_t>& values, std::size_t count) {
    engine::BlockList<engine::Block> blocks;
    const auto all = std::as_writable_bytes(std::span(values));
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(all.subspan(i * (all.size() / count), all.size() / count));
    }
    return blocks;
  }

  static engine::BlockList<engine::Block> parts(const std::vector<at::Tensor>& tensors) {
    engine::BlockList<engine::Block> blocks;
    for (const auto& tensor : tensors) {
      blocks.push_back(writable_bytes_of(tensor));
    }
    return blocks;
  }

  Status gather(engine::Engine& engine, kernels::DType dtype, engine::ConstBlock in,
                engine::BlockList<engine::Block> out) const {
    engine::Call call{.op = Op::all_gather, .dtype = dtype, .in = {in}};
    call.out = std::move(out);
    call.site = site_;
    return engine.run(call, deadline_);
  }

  at::Tensor tensor_;
  Deadline deadline_;
  engine::CallSite site_;
  at::Tensor mine_;
};

}  // namespace

/// Of each thread its own. One that was never ended, because something in it threw, is forgotten.
void Backend::startCoalescing() {
  const std::scoped_lock lock(coalescing_mutex_);
  coalescing_[std::this_thread::get_id()].clear();
}

Backend::WorkPtr Backend::endCoalescing() {
  const std::scoped_lock lock(coalescing_mutex_);
  auto parts = coalescing_.extract(std::this_thread::get_id());
  if (parts.empty()) {
    refuse("endCoalescing: coalescing was not started");
  }
  return c10::make_intrusive<JoinedWork>(std::move(parts.mapped()));
}

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const auto reduce = value_or_throw(to_reduce(options.reduceOp));
  std::vector<PreparedCall> calls;
  for (const auto& tensor : tensors) {
    auto& prepared = calls.emplace_back("all_reduce");
    prepared.call.op = Op::all_reduce;
    prepared.call.reduce = reduce.op;
    prepared.call.factor = reduce.factor;
    prepared.read_as = reduce.read_as;
    prepared.add_in_place(tensor, true, true);
  }
  return submit_all({c10d::OpType::ALLREDUCE_COALESCED, "tutti:all_reduce_coalesced", options.timeout, options.asyncOp},
                    std::move(calls), tensors);
}

Backend::WorkPtr Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  // c10d's lists are by rank here: outputs[rank][tensor].
  if (outputs.size() != static_cast<std::size_t>(size_)) {
    refuse(fmt::format("all_gather_coalesced: {} lists of outputs were given for {} ranks", outputs.size(), size_));
  }
  std::vector<PreparedCall> calls;
  Tensors results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto& prepared = calls.emplace_back("all_gather");
    prepared.call.op = Op::all_gather;
    prepared.add_input(inputs[i]);
    for (const auto& list : outputs) {
      need_as_many(list.size(), inputs.size(), "all_gather_coalesced");
      prepared.add_output(list[i]);
      results.push_back(list[i]);
    }
  }
  return submit_all({c10d::OpType::ALLGATHER_COALESCED, "tutti:all_gather_coalesced", options.timeout, options.asyncOp},
                    std::move(calls), results);
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
  need_as_many(outputs.size(), inputs.size(), "all_gather_into_tensor_coalesced");
  std::vector<PreparedCall> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    calls.push_back(prepare_all_gather(outputs[i], inputs[i]));
  }
  return submit_all(
      {c10d::OpType::COALESCED, "tutti:all_gather_into_tensor_coalesced", options.timeout, options.asyncOp},
      std::move(calls), outputs);
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::ReduceScatterOptions& options) {
  need_as_many(outputs.size(), inputs.size(), "reduce_scatter_tensor_coalesced");
  std::vector<PreparedCall> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    calls.push_back(prepare_reduce_scatter(outputs[i], inputs[i], options.reduceOp));
  }
  return submit_all(
      {c10d::OpType::COALESCED, "tutti:reduce_scatter_tensor_coalesced", options.timeout, options.asyncOp},
      std::move(calls), outputs);
}

Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() != 1) {
    refuse(fmt::format("all_reduce_sparse: one tensor is expected, and {} were given", tensors.size()));
  }
  return sparse_all_reduce(tensors[0], options);
}

Backend::WorkPtr Backend::sparse_all_reduce(const at::Tensor& tensor, const c10d::AllreduceOptions& options) {
  const auto reduce = value_or_throw(to_reduce(options.reduceOp));
  if (!tensor.defined() || !tensor.is_sparse() || !tensor.device().is_cpu()) {
    refuse("all_reduce_sparse: a sparse COO tensor on the CPU is expected; use all_reduce for dense ones");
  }
  if (reduce.op != ReduceOp::sum && reduce.op != ReduceOp::avg) {
    refuse(fmt::format("all_reduce of a sparse tensor: {} is not possible, sum and avg are; use .to_dense()",
                       kernels::to_string(reduce.op)));
  }
  const auto dtype = value_or_throw(to_dtype(tensor.scalar_type()));
  throw_if_failed(kernels::can_reduce(reduce.op, dtype));
  auto sum = std::make_shared<SparseSum>(tensor, deadline_for(options.timeout), site());
  const bool average = reduce.op == ReduceOp::avg;
  return submit_task({c10d::OpType::_ALLREDUCE_SPARSE, "tutti:all_reduce_sparse", options.timeout, options.asyncOp},
                     [sum, average](engine::Engine& engine) { return sum->run(engine, average); }, {tensor});
}

}  // namespace tutti
