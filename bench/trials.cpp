#include "bench/trials.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include "tutti/comm/symmetric.h"

namespace bench {
namespace {

using tutti::Group;
using tutti::Rank;

at::ScalarType type_of(const std::string& name) {
  for (const auto& [known, type] :
       std::initializer_list<std::pair<const char*, at::ScalarType>>{{"float32", at::kFloat},
                                                                     {"float64", at::kDouble},
                                                                     {"float16", at::kHalf},
                                                                     {"bfloat16", at::kBFloat16},
                                                                     {"float8_e4m3fn", at::kFloat8_e4m3fn},
                                                                     {"float8_e5m2", at::kFloat8_e5m2},
                                                                     {"int64", at::kLong},
                                                                     {"int32", at::kInt},
                                                                     {"int16", at::kShort},
                                                                     {"int8", at::kChar},
                                                                     {"uint8", at::kByte},
                                                                     {"bool", at::kBool},
                                                                     {"complex64", at::kComplexFloat},
                                                                     {"complex128", at::kComplexDouble}}) {
    if (name == known) {
      return type;
    }
  }
  fail("no dtype '" + name +
       "'; there are float32, float64, float16, bfloat16, float8_e4m3fn, float8_e5m2, int64, "
       "int32, int16, int8, uint8, bool, complex64, complex128");
}

bool all_are(const at::Tensor& tensor, int64_t value) {
  const auto wanted = tensor.scalar_type() == at::kBool ? 1.0 : static_cast<double>(value);
  return tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble).eq(wanted).all().item<bool>();
}

}  // namespace

double GroupWorld::agree(double value) {
  auto tensor = at::scalar_tensor(value, at::kDouble);
  group_.broadcast(tensor);
  return tensor.item<double>();
}

std::vector<double> GroupWorld::slowest(std::vector<double> values) {
  group_.all_reduce(at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble),
                    tutti::ReduceOp::max);
  return values;
}

void CollectiveTrial::touch() const {
  for (const auto& tensor : tensors) {
    tensor.zero_();
  }
}

void verify(World& world, const CollectiveTrial& trial) {
  trial.fill();
  world.barrier();  // a peer may write what we fill
  trial.run();
  world.barrier();
  if (!trial.right()) {
    fail("wrong result on rank " + std::to_string(world.rank()));
  }
  world.barrier();
}

Trials::Trials(const Group& group, const std::string& dtype, bool symmetric, bool reproducible)
    : group_(group.blocking()),
      type_(type_of(dtype)),
      symmetric_(symmetric),
      sum_(reproducible ? tutti::ReduceOp::reproducible_sum : tutti::ReduceOp::sum) {}

CollectiveTrial Trials::make(const std::string& op, std::size_t bytes) const {
  const auto size = static_cast<int64_t>(group_.size());
  const auto width = static_cast<int64_t>(c10::elementSize(type_));
  const auto whole = std::max<int64_t>(static_cast<int64_t>(bytes) / width, 1);
  const auto part = std::max<int64_t>(whole / size, 1);
  const int me = tutti::to_int(group_.rank());
  const Group group = group_;
  if (op == "barrier") {
    return {{}, [] {}, [group] { group.barrier(); }, [] { return true; }, 0, 0};
  }
  const auto sum = sum_;
  if (op == "all_reduce" || op == "reduce" || op == "broadcast") {
    auto data = empty(whole);
    CollectiveTrial trial{.tensors = {data}, .bytes = data.nbytes(), .block = data.nbytes()};
    trial.fill = [=] { data.fill_(me == 0 || op != "broadcast" ? 1 : 0); };
    if (op == "all_reduce") {
      trial.run = [=] { group.all_reduce(data, sum); };
    } else if (op == "reduce") {
      trial.run = [=] { group.reduce(data, Rank{0}, sum); };
    } else {
      trial.run = [=] { group.broadcast(data); };
    }
    trial.right = [=] {
      const bool summed = op == "all_reduce" || (op == "reduce" && me == 0);
      return all_are(data, summed ? size : 1);
    };
    return trial;
  }
  const bool in_parts = op == "reduce_scatter" || op == "all_to_all" || (op == "scatter" && me == 0);
  const bool out_parts = op == "all_gather" || op == "all_to_all" || (op == "gather" && me == 0);
  const bool has_in = op != "scatter" || me == 0;
  const bool has_out = op != "gather" || me == 0;
  auto in = empty(has_in ? (in_parts ? part * size : part) : 0);
  auto out = empty(has_out ? (out_parts ? part * size : part) : 0);
  CollectiveTrial trial{.tensors = {in, out},
                        .bytes = static_cast<std::size_t>(part * size * width),
                        .block = static_cast<std::size_t>(part * width)};
  trial.fill = [=] {
    in.fill_(1);
    out.fill_(0);
  };
  trial.right = [=] { return all_are(out, op == "reduce_scatter" ? size : 1); };
  if (op == "all_gather") {
    trial.run = [=] { group.all_gather(out, in); };
  } else if (op == "reduce_scatter") {
    trial.run = [=] { group.reduce_scatter(out, in, sum); };
  } else if (op == "all_to_all") {
    trial.run = [=] { group.all_to_all(out, in); };
  } else if (op == "gather") {
    const auto outs = me == 0 ? out.chunk(size) : std::vector<at::Tensor>();
    trial.run = [=] { group.gather(outs, in); };
  } else if (op == "scatter") {
    const auto ins = me == 0 ? in.chunk(size) : std::vector<at::Tensor>();
    trial.run = [=] { group.scatter(out, ins); };
  } else {
    fail("no operation '" + op +
         "'; there are all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, "
         "barrier");
  }
  return trial;
}

at::Tensor Trials::empty(int64_t count) const {
  const auto options = at::TensorOptions().dtype(type_);
  return (symmetric_ ? tutti::symmetric_empty({count}, options, group_) : at::empty({count}, options)).fill_(0);
}

}  // namespace bench
