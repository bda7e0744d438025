// Collectives of oneCCL on the CPU. MPI starts the ranks and carries the address at which they meet.

#include <mpi.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <oneapi/ccl.hpp>

#include "bench/peers/peer.h"

// Stands for all hooks of a tracer that is not there: a null pointer is one that nobody calls.
extern "C" {
extern void* const bench_no_trace;
void* const bench_no_trace = nullptr;
}

namespace {

class CclWorld final : public bench::World {
 public:
  explicit CclWorld(ccl::communicator communicator) : communicator_(std::move(communicator)) {}
  [[nodiscard]] std::size_t rank() const override { return static_cast<std::size_t>(communicator_.rank()); }
  [[nodiscard]] std::size_t ranks() const override { return static_cast<std::size_t>(communicator_.size()); }
  // MPI's barrier, not oneCCL's: it takes part of a microsecond, so that the ranks begin closer together.
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  double agree(double value) override {
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return value;
  }
  std::vector<double> slowest(std::vector<double> values) override {
    std::vector<double> most(values.size());
    MPI_Allreduce(values.data(), most.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  }
  [[nodiscard]] const ccl::communicator& communicator() const { return communicator_; }

 private:
  ccl::communicator communicator_;
};

ccl::communicator connect() {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ccl::kvs::address_type address{};
  ccl::shared_ptr_class<ccl::kvs> store;
  if (rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank != 0) {
    store = ccl::create_kvs(address);
  }
  return ccl::create_communicator(ranks, rank, store);
}

ccl::datatype datatype_of(bench::Dtype dtype) {
  switch (dtype) {
    case bench::Dtype::float64: return ccl::datatype::float64;
    case bench::Dtype::int32: return ccl::datatype::int32;
    case bench::Dtype::bfloat16: return ccl::datatype::bfloat16;
    case bench::Dtype::float32: break;
  }
  return ccl::datatype::float32;
}

void run(const bench::Shape& shape, ccl::datatype type, const bench::Buffers& at, const ccl::communicator& world) {
  const auto sum = ccl::reduction::sum;
  switch (shape.op) {
    case bench::Op::all_reduce: return ccl::allreduce(at.input, at.output, shape.part, type, sum, world).wait();
    case bench::Op::broadcast: return ccl::broadcast(at.output, shape.part, type, 0, world).wait();
    case bench::Op::all_gather: return ccl::allgather(at.input, at.output, shape.part, type, world).wait();
    case bench::Op::reduce_scatter:
      return ccl::reduce_scatter(at.input, at.output, shape.part, type, sum, world).wait();
    case bench::Op::all_to_all: return ccl::alltoall(at.input, at.output, shape.part, type, world).wait();
    case bench::Op::barrier: return ccl::barrier(world).wait();
  }
}

bench::Contestant who_is_it() {
  const ccl::library_version version = ccl::get_library_version();
  return {"oneCCL",
          std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' + std::to_string(version.update),
          "private"};
}

}  // namespace

int main(int count, char** words) {
  const bench::Options options = bench::parse_options(count, words);
  const ccl::datatype type = datatype_of(bench::parse_dtype(options.dtype));
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);  // oneCCL's workers call MPI, too
  ccl::init();
  {
    CclWorld world(connect());
    bench::measure_sizes(world, options, who_is_it(), [&](const bench::Shape& shape, const bench::Buffers& at) {
      run(shape, type, at, world.communicator());
    });
  }
  MPI_Finalize();
  return 0;
}
