// What `tutti bench` runs as every rank: our own collectives, through the same Group that a user has.

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include "bench/links.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/report.h"
#include "tutti/comm/symmetric.h"
#include "tutti/comm/world.h"
#include "tutti/version.h"

namespace {

using tutti::Group;
using tutti::Rank;

class GroupWorld final : public bench::World {
 public:
  explicit GroupWorld(const Group& group) : group_(group.blocking()) {}
  std::size_t rank() const override { return tutti::to_index(group_.rank()); }
  std::size_t ranks() const override { return static_cast<std::size_t>(group_.size()); }
  void barrier() override { group_.barrier(); }
  double agree(double value) override {
    auto tensor = at::scalar_tensor(value, at::kDouble);
    group_.broadcast(tensor);
    return tensor.item<double>();
  }
  std::vector<double> slowest(std::vector<double> values) override {
    group_.all_reduce(at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble),
                      tutti::ReduceOp::max);
    return values;
  }

 private:
  Group group_;
};

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
  bench::fail("no dtype '" + name +
              "'; there are float32, float64, float16, bfloat16, float8_e4m3fn, float8_e5m2, int64, "
              "int32, int16, int8, uint8, bool, complex64, complex128");
}

/// One operation on tensors of one size: how to run it, and what must be true afterwards.
struct Trial {
  std::vector<at::Tensor> tensors;  ///< all that the operation touches
  std::function<void()> fill = {};
  std::function<void()> run = {};
  std::function<bool()> right = {};
  std::size_t bytes = 0;
};

class Trials {
 public:
  Trials(const Group& group, const std::string& dtype, bool symmetric, bool reproducible)
      : group_(group.blocking()),
        type_(type_of(dtype)),
        symmetric_(symmetric),
        sum_(reproducible ? tutti::ReduceOp::reproducible_sum : tutti::ReduceOp::sum) {}

  Trial make(const std::string& op, std::size_t bytes) const {
    const auto size = static_cast<int64_t>(group_.size());
    const auto width = static_cast<int64_t>(c10::elementSize(type_));
    const auto whole = std::max<int64_t>(static_cast<int64_t>(bytes) / width, 1);
    const auto part = std::max<int64_t>(whole / size, 1);
    const int me = tutti::to_int(group_.rank());
    const Group group = group_;
    if (op == "barrier") {
      return {{}, [] {}, [group] { group.barrier(); }, [] { return true; }, 0};
    }
    if (op == "all_reduce" || op == "reduce" || op == "broadcast") {
      auto data = empty(whole);
      Trial trial{.tensors = {data}, .bytes = data.nbytes()};
      trial.fill = [=] { data.fill_(me == 0 || op != "broadcast" ? 1 : 0); };
      if (op == "all_reduce") {
        trial.run = [=, this] { group.all_reduce(data, sum_); };
      } else if (op == "reduce") {
        trial.run = [=, this] { group.reduce(data, Rank{0}, sum_); };
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
    Trial trial{.tensors = {in, out}, .bytes = static_cast<std::size_t>(part * size * width)};
    trial.fill = [=] {
      in.fill_(1);
      out.fill_(0);
    };
    trial.right = [=] { return all_are(out, op == "reduce_scatter" ? size : 1); };
    if (op == "all_gather") {
      trial.run = [=] { group.all_gather(out, in); };
    } else if (op == "reduce_scatter") {
      trial.run = [=, this] { group.reduce_scatter(out, in, sum_); };
    } else if (op == "all_to_all") {
      trial.run = [=] { group.all_to_all(out, in); };
    } else if (op == "gather") {
      const auto outs = me == 0 ? out.chunk(size) : std::vector<at::Tensor>();
      trial.run = [=] { group.gather(outs, in); };
    } else if (op == "scatter") {
      const auto ins = me == 0 ? in.chunk(size) : std::vector<at::Tensor>();
      trial.run = [=] { group.scatter(out, ins); };
    } else {
      bench::fail("no operation '" + op +
                  "'; there are all_reduce, reduce, broadcast, all_gather, reduce_scatter, "
                  "all_to_all, gather, scatter, barrier");
    }
    return trial;
  }

 private:
  at::Tensor empty(int64_t count) const {
    const auto options = at::TensorOptions().dtype(type_);
    return (symmetric_ ? tutti::symmetric_empty({count}, options, group_) : at::empty({count}, options)).fill_(0);
  }
  static bool all_are(const at::Tensor& tensor, int64_t value) {
    const auto wanted = tensor.scalar_type() == at::kBool ? 1.0 : static_cast<double>(value);
    return tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble).eq(wanted).all().item<bool>();
  }

  Group group_;
  at::ScalarType type_;
  bool symmetric_;
  tutti::ReduceOp sum_;
};

bench::Line measure_size(GroupWorld& world, const bench::Options& options, const std::string& memory,
                         const Trial& trial) {
  const auto verify = [&] {
    trial.fill();
    world.barrier();  // a peer may write what we fill
    trial.run();
    world.barrier();
    if (!trial.right()) {
      bench::fail("wrong result on rank " + std::to_string(world.rank()));
    }
    world.barrier();
  };
  const auto touch = [&] {
    for (const auto& tensor : trial.tensors) {
      tensor.zero_();
    }
  };
  verify();
  touch();
  world.barrier();
  const auto summary = bench::measure(
      world, options, [&] { trial.run(); }, touch);
  world.barrier();
  verify();
  return {.op = options.op,
          .ranks = world.ranks(),
          .bytes = trial.bytes,
          .dtype = options.dtype,
          .memory = memory,
          .summary = summary};
}

int bench_main(const bench::Options& options, const bench::ReportOptions& report) {
  const auto world = tutti::init();
  at::set_num_threads(1);
  GroupWorld ranks(world.group());
  std::vector<bench::Line> lines;
  const auto sizes = options.op == "barrier" ? std::vector<std::size_t>{0} : options.sizes;
  for (const auto& memory : report.memories) {
    const Trials trials(world.group(), options.dtype, memory == "symmetric", report.reproducible);
    for (const auto size : sizes) {
      lines.push_back(measure_size(ranks, options, memory, trials.make(options.op, size)));
      if (ranks.rank() == 0) {
        bench::show_progress(report, lines);
      }
    }
  }
  return ranks.rank() == 0 ? bench::finish_report(report, lines) : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    if (bench::wants_links(count, words)) {
      return bench::links_main(count, words);
    }
    auto [report, rest] = bench::split_report_options(count, words);
    return bench_main(bench::parse_options(static_cast<int>(rest.size()), rest.data()), report);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}
