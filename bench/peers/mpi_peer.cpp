// Collectives of an MPI library. One source, compiled by each library's own wrapper; the library says which one it is.

#include <mpi.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/peers/peer.h"

namespace {

void succeed(int code, const char* call) {
  if (code != MPI_SUCCESS) {
    bench::fail(std::string(call) + " failed with code " + std::to_string(code));
  }
}

class MpiWorld final : public bench::World {
 public:
  MpiWorld() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  [[nodiscard]] std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] std::size_t ranks() const override { return static_cast<std::size_t>(ranks_); }
  void barrier() override { succeed(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }
  double agree(double value) override {
    succeed(MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return value;
  }
  std::vector<double> slowest(std::vector<double> values) override {
    std::vector<double> most(values.size());
    succeed(
        MPI_Allreduce(values.data(), most.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
        "MPI_Allreduce");
    return most;
  }

 private:
  int rank_ = 0;
  int ranks_ = 0;
};

MPI_Datatype datatype_of(bench::Dtype dtype) {
  switch (dtype) {
    case bench::Dtype::float32: return MPI_FLOAT;
    case bench::Dtype::float64: return MPI_DOUBLE;
    case bench::Dtype::int32: return MPI_INT32_T;
    case bench::Dtype::bfloat16:
#ifdef MPIX_BFLOAT16
      return MPIX_BFLOAT16;
#else
      break;
#endif
  }
  bench::fail("this MPI has no bfloat16");
}

void run(const bench::Shape& shape, MPI_Datatype type, const bench::Buffers& at) {
  const int part = static_cast<int>(shape.part);
  MPI_Comm world = MPI_COMM_WORLD;
  switch (shape.op) {
    case bench::Op::all_reduce:
      return succeed(MPI_Allreduce(MPI_IN_PLACE, at.output, part, type, MPI_SUM, world), "MPI_Allreduce");
    case bench::Op::broadcast: return succeed(MPI_Bcast(at.output, part, type, 0, world), "MPI_Bcast");
    case bench::Op::all_gather:
      return succeed(MPI_Allgather(at.input, part, type, at.output, part, type, world), "MPI_Allgather");
    case bench::Op::reduce_scatter:
      return succeed(MPI_Reduce_scatter_block(at.input, at.output, part, type, MPI_SUM, world),
                     "MPI_Reduce_scatter_block");
    case bench::Op::all_to_all:
      return succeed(MPI_Alltoall(at.input, part, type, at.output, part, type, world), "MPI_Alltoall");
    case bench::Op::barrier: return succeed(MPI_Barrier(world), "MPI_Barrier");
  }
}

/// The first number in the library's own words, after its name.
bench::Contestant who_is_it() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string words(text.data());
  const std::string name = words.starts_with("Open MPI") ? "Open MPI"
                           : words.starts_with("Intel")  ? "Intel MPI"
                                                         : "MPICH";
  const auto begin = words.find_first_of("0123456789");
  const auto end = words.find_first_not_of("0123456789.", begin);
  return {name, words.substr(begin, end - begin), "private"};
}

}  // namespace

int main(int count, char** words) {
  const bench::Options options = bench::parse_options(count, words);
  MPI_Init(nullptr, nullptr);
  {
    MpiWorld world;
    MPI_Datatype type = datatype_of(bench::parse_dtype(options.dtype));
    bench::measure_sizes(world, options, who_is_it(),
                         [&](const bench::Shape& shape, const bench::Buffers& at) { run(shape, type, at); });
  }
  MPI_Finalize();
  return 0;
}
