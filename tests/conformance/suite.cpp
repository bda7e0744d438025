#include "tests/conformance/suite.h"

#include <stdexcept>

#include <torch/types.h>

namespace tutti::conformance {
namespace {

using torch::Tensor;

void expect(bool condition, const std::string& sentence) {
  if (!condition) {
    throw std::runtime_error(sentence);
  }
}

void expect_equal(const Tensor& got, const Tensor& wanted, const std::string& what) {
  expect(got.sizes() == wanted.sizes() && torch::equal(got, wanted), what + ": wrong values");
}

/// 0, 1, 2, ... + 100 * rank: odd lengths, whole numbers.
Tensor ramp(int64_t count, int rank, torch::Dtype dtype = torch::kFloat) {
  return (torch::arange(count, torch::kLong) % 97 + 100 * rank).to(dtype);
}

Tensor ramp_sum(int64_t count, int ranks, torch::Dtype dtype = torch::kFloat) {
  auto sum = torch::zeros({count}, torch::kLong);
  for (int rank = 0; rank < ranks; ++rank) {
    sum += ramp(count, rank, torch::kLong);
  }
  return sum.to(dtype);
}

std::vector<Tensor> empty_list(int size, int64_t count) {
  std::vector<Tensor> list;
  for (int i = 0; i < size; ++i) {
    list.push_back(torch::full({count}, -1.0F));
  }
  return list;
}

void all_reduce_sums(const Group& group) {
  for (const int64_t count : {1, 2, 1003, 700'001}) {
    auto grads = ramp(count, to_int(group.rank()));
    group.all_reduce(grads).wait();
    expect_equal(grads, ramp_sum(count, group.size()), "all_reduce");
  }
}

void all_reduce_min_max_product(const Group& group) {
  const int last = group.size() - 1;
  auto least = ramp(37, to_int(group.rank()));
  group.all_reduce(least, ReduceOp::min).wait();
  expect_equal(least, ramp(37, 0), "min");
  auto most = ramp(37, to_int(group.rank()));
  group.all_reduce(most, ReduceOp::max).wait();
  expect_equal(most, ramp(37, last), "max");
  auto power = torch::full({5}, 2.0);
  group.all_reduce(power, ReduceOp::product).wait();
  expect_equal(power, torch::full({5}, static_cast<double>(1 << group.size())), "product");
}

void all_reduce_dtypes(const Group& group) {
  for (const auto dtype : {torch::kDouble, torch::kFloat, torch::kLong, torch::kInt}) {
    auto values = ramp(33, to_int(group.rank()), dtype);
    group.all_reduce(values).wait();
    expect_equal(values, ramp_sum(33, group.size(), dtype), "all_reduce");
  }
}

void all_reduce_small_dtypes(const Group& group) {
  for (const auto dtype : {torch::kHalf, torch::kBFloat16, torch::kByte, torch::kShort, torch::kChar}) {
    auto values = torch::full({33}, 3, dtype);
    group.all_reduce(values).wait();
    expect_equal(values, torch::full({33}, 3 * group.size(), dtype), "all_reduce");
  }
  auto flag = torch::full({3}, to_int(group.rank()) == 0, torch::kBool);
  group.all_reduce(flag).wait();
  expect_equal(flag, torch::ones({3}, torch::kBool), "bool");
  auto number = torch::complex(torch::ones({3}), torch::full({3}, 2.0F));
  group.all_reduce(number).wait();
  expect_equal(torch::view_as_real(number).select(1, 1), torch::full({3}, 2.0F * static_cast<float>(group.size())),
               "complex");
}

void all_reduce_averages(const Group& group) {
  auto value = torch::full({3}, 2.0F * static_cast<float>(to_int(group.rank())));
  group.all_reduce(value, ReduceOp::avg).wait();
  expect_equal(value, torch::full({3}, static_cast<float>(group.size() - 1)), "avg");
}

void all_reduce_of_any_strides(const Group& group) {
  const auto base = ramp(35, to_int(group.rank())).reshape({5, 7});
  auto transposed = base.clone().t();
  group.all_reduce(transposed).wait();
  expect_equal(transposed, ramp_sum(35, group.size()).reshape({5, 7}).t(), "transposed");
  auto wide = torch::zeros({5, 14});
  auto every_second = wide.slice(1, 0, 14, 2);
  every_second.copy_(base);
  group.all_reduce(every_second).wait();
  expect_equal(every_second, ramp_sum(35, group.size()).reshape({5, 7}), "every second column");
  expect_equal(wide.slice(1, 1, 14, 2), torch::zeros({5, 7}), "the columns between");
}

void all_reduce_of_nothing_and_of_a_scalar(const Group& group) {
  auto nothing = torch::empty({0});
  group.all_reduce(nothing).wait();
  auto scalar = torch::tensor(1.5);
  group.all_reduce(scalar).wait();
  expect_equal(scalar, torch::tensor(1.5 * group.size()), "scalar");
}

void all_reduce_of_a_parameter(const Group& group) {
  auto weight = torch::ones({3, 5}, torch::requires_grad());
  (weight * static_cast<float>(to_int(group.rank()) + 1)).sum().backward();
  group.all_reduce(weight.mutable_grad()).wait();
  const auto sum = static_cast<float>(group.size() * (group.size() + 1) / 2);
  expect_equal(weight.grad(), torch::full({3, 5}, sum), "gradient");
}

void broadcast_from_every_root(const Group& group) {
  for (int root = 0; root < group.size(); ++root) {
    auto values = to_int(group.rank()) == root ? ramp(1003, root) : torch::full({1003}, -1.0F);
    group.broadcast(values, Rank{root}).wait();
    expect_equal(values, ramp(1003, root), "broadcast");
  }
}

void reduce_to_every_root(const Group& group) {
  for (int root = 0; root < group.size(); ++root) {
    auto values = ramp(1003, to_int(group.rank()));
    group.reduce(values, Rank{root}).wait();
    if (to_int(group.rank()) == root) {
      expect_equal(values, ramp_sum(1003, group.size()), "reduce");
    }
  }
}

void all_gather_lists(const Group& group) {
  auto outputs = empty_list(group.size(), 1003);
  group.all_gather(outputs, ramp(1003, to_int(group.rank()))).wait();
  for (int rank = 0; rank < group.size(); ++rank) {
    expect_equal(outputs[static_cast<std::size_t>(rank)], ramp(1003, rank), "all_gather");
  }
}

void all_gather_into_one(const Group& group) {
  auto output = torch::full({group.size() * 37}, -1.0F);
  group.all_gather(output, ramp(37, to_int(group.rank()))).wait();
  for (int rank = 0; rank < group.size(); ++rank) {
    expect_equal(output.slice(0, rank * 37, rank * 37 + 37), ramp(37, rank), "all_gather");
  }
}

void all_gather_of_uneven_tensors(const Group& group) {
  std::vector<Tensor> outputs;
  for (int rank = 0; rank < group.size(); ++rank) {
    outputs.push_back(torch::full({11 * rank}, -1.0F));
  }
  group.all_gather(outputs, ramp(11 * to_int(group.rank()), to_int(group.rank()))).wait();
  for (int rank = 0; rank < group.size(); ++rank) {
    expect_equal(outputs[static_cast<std::size_t>(rank)], ramp(11 * rank, rank), "all_gather");
  }
}

void reduce_scatter_lists(const Group& group) {
  std::vector<Tensor> inputs;
  for (int to = 0; to < group.size(); ++to) {
    inputs.push_back(ramp(1003, to_int(group.rank())) + static_cast<float>(to));
  }
  auto output = torch::full({1003}, -1.0F);
  group.reduce_scatter(output, inputs).wait();
  expect_equal(output, ramp_sum(1003, group.size()) + static_cast<float>(group.size() * to_int(group.rank())),
               "reduce_scatter");
}

void reduce_scatter_from_one(const Group& group) {
  auto output = torch::full({37}, -1.0F);
  group.reduce_scatter(output, ramp(37 * group.size(), to_int(group.rank()))).wait();
  const auto begin = 37 * to_int(group.rank());
  expect_equal(output, ramp_sum(37 * group.size(), group.size()).slice(0, begin, begin + 37), "reduce_scatter");
}

void all_to_all_in_equal_parts(const Group& group) {
  const int me = to_int(group.rank());
  auto output = torch::full({group.size() * 5}, -1.0F);
  group.all_to_all(output, ramp(group.size() * 5, me)).wait();
  for (int from = 0; from < group.size(); ++from) {
    expect_equal(output.slice(0, from * 5, from * 5 + 5), ramp(group.size() * 5, from).slice(0, me * 5, me * 5 + 5),
                 "all_to_all");
  }
}

void all_to_all_in_uneven_parts(const Group& group) {
  // Rank i sends i + j + 1 rows of 3 to rank j.
  const int me = to_int(group.rank());
  std::vector<int64_t> splits;
  int64_t rows = 0;
  for (int peer = 0; peer < group.size(); ++peer) {
    splits.push_back(me + peer + 1);
    rows += splits.back();
  }
  const auto input = torch::full({rows, 3}, static_cast<float>(me));
  auto output = torch::full({rows, 3}, -1.0F);
  group.all_to_all(output, input, splits, splits).wait();
  int64_t begin = 0;
  for (int from = 0; from < group.size(); ++from) {
    const auto count = splits[static_cast<std::size_t>(from)];
    expect_equal(output.slice(0, begin, begin + count), torch::full({count, 3}, static_cast<float>(from)),
                 "all_to_all");
    begin += count;
  }
}

void all_to_all_lists(const Group& group) {
  const int me = to_int(group.rank());
  std::vector<Tensor> inputs;
  for (int to = 0; to < group.size(); ++to) {
    inputs.push_back(ramp(17, 10 * me + to));
  }
  auto outputs = empty_list(group.size(), 17);
  group.all_to_all(outputs, inputs).wait();
  for (int from = 0; from < group.size(); ++from) {
    expect_equal(outputs[static_cast<std::size_t>(from)], ramp(17, 10 * from + me), "all_to_all");
  }
}

void gather_and_scatter(const Group& group) {
  const Rank root{group.size() - 1};
  const bool mine = group.rank() == root;
  auto gathered = mine ? empty_list(group.size(), 23) : std::vector<Tensor>{};
  group.gather(gathered, ramp(23, to_int(group.rank())), root).wait();
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
    expect_equal(gathered[rank], ramp(23, static_cast<int>(rank)), "gather");
  }
  auto back = torch::full({23}, -1.0F);
  group.scatter(back, gathered, root).wait();
  expect_equal(back, ramp(23, to_int(group.rank())), "scatter");
}

void send_around_the_ring(const Group& group) {
  if (group.size() == 1) {
    return;
  }
  const int me = to_int(group.rank());
  const Rank next{(me + 1) % group.size()};
  const Rank previous{(me + group.size() - 1) % group.size()};
  auto received = torch::full({100'003}, -1.0F);
  auto sent = group.send(ramp(100'003, me), next, 7);
  auto arrived = group.receive(received, previous, 7);
  sent.wait();
  arrived.wait();
  expect_equal(received, ramp(100'003, to_int(previous)), "receive");
}

void many_in_flight(const Group& group) {
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < 31; ++i) {
    tensors.push_back(ramp(101 + i, to_int(group.rank())));
    works.push_back(group.all_reduce(tensors.back()));
  }
  for (auto& work : works) {
    work.wait();
  }
  for (int i = 0; i < 31; ++i) {
    expect_equal(tensors[static_cast<std::size_t>(i)], ramp_sum(101 + i, group.size()), "one of many");
  }
}

void future_gives_the_result(const Group& group) {
  auto values = ramp(11, to_int(group.rank()));
  auto future = group.all_reduce(values).future();
  future->wait();
  expect(future->completed() && !future->hasError(), "the future is completed");
  const auto tensors = future->value().toTensorVector();
  expect(tensors.size() == 1, "the future holds one tensor");
  expect_equal(tensors[0], ramp_sum(11, group.size()), "future");
}

void barrier_meets(const Group& group) {
  for (int i = 0; i < 5; ++i) {
    group.barrier().wait();
  }
}

constexpr Case kCases[] = {
    {"all_reduce sums", all_reduce_sums},
    {"all_reduce: min, max, product", all_reduce_min_max_product},
    {"all_reduce: double, float, long, int", all_reduce_dtypes},
    {"all_reduce: half, bfloat16, small integers, bool, complex", all_reduce_small_dtypes, false},
    {"all_reduce averages", all_reduce_averages, false},
    {"all_reduce of any strides", all_reduce_of_any_strides, false},
    {"all_reduce of nothing and of a scalar", all_reduce_of_nothing_and_of_a_scalar},
    {"all_reduce of a parameter's gradient", all_reduce_of_a_parameter},
    {"broadcast from every root", broadcast_from_every_root},
    {"reduce to every root", reduce_to_every_root},
    {"all_gather into a list", all_gather_lists},
    {"all_gather into one tensor", all_gather_into_one},
    {"all_gather of uneven tensors", all_gather_of_uneven_tensors, false},
    {"reduce_scatter from a list", reduce_scatter_lists},
    {"reduce_scatter from one tensor", reduce_scatter_from_one},
    {"all_to_all in equal parts", all_to_all_in_equal_parts},
    {"all_to_all in uneven parts", all_to_all_in_uneven_parts},
    {"all_to_all of lists", all_to_all_lists},
    {"gather and scatter", gather_and_scatter},
    {"send around the ring", send_around_the_ring},
    {"many in flight", many_in_flight},
    {"the future gives the result", future_gives_the_result},
    {"barrier", barrier_meets},
};

}  // namespace

std::span<const Case> cases() { return kCases; }

}  // namespace tutti::conformance
