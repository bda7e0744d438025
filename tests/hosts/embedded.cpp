// A program that uses MPI itself and trains on the side: it initializes MPI, keeps half of the ranks for something
// else, and gives Tutti a communicator of the other half, numbered backwards. Compiled against each MPI.
#include <cstdio>
#include <cstring>

#include <tutti/mpi.h>

namespace {

/// The program's own messages, with whatever tags Tutti may use, before and after.
bool own_messages_arrive(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int tag = 0; tag < 20; ++tag) {
    const int mine = 100 * rank + tag;
    int theirs = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, tag, &theirs, 1, MPI_INT, (rank + size - 1) % size, tag, comm,
                 MPI_STATUS_IGNORE);
    if (theirs != 100 * ((rank + size - 1) % size) + tag) {
      return false;
    }
  }
  return true;
}

/// After a world of another communicator.
bool is_refused(MPI_Comm comm) {
  try {
    const auto second = tutti::init(comm);
  } catch (const tutti::Exception& error) {
    return std::strstr(error.what(), "one communicator of a process") != nullptr;
  }
  return false;
}

int train(MPI_Comm comm) {
  int expected_rank = 0;
  int expected_size = 0;
  MPI_Comm_rank(comm, &expected_rank);
  MPI_Comm_size(comm, &expected_size);
  const auto world = tutti::init(comm);
  if (tutti::to_int(world.rank()) != expected_rank || world.size() != expected_size) {
    std::fprintf(stderr, "rank %d of %d in the communicator, %d of %d in the world\n", expected_rank, expected_size,
                 tutti::to_int(world.rank()), world.size());
    return 1;
  }
  for (const std::int64_t count : {1, 1003, 1'000'003}) {
    auto tensor = torch::full({count}, 1.0 + expected_rank);
    world.group().all_reduce(tensor).wait();
    const double sum = expected_size * (expected_size + 1) / 2.0;
    if (!torch::equal(tensor, torch::full({count}, sum))) {
      std::fprintf(stderr, "wrong sum of %lld\n", static_cast<long long>(count));
      return 1;
    }
  }
  std::printf("trained as rank %d of %d, engine %s, %d here\n", expected_rank, expected_size,
              world.group().engine().c_str(), world.local_size());
  return own_messages_arrive(comm) && is_refused(MPI_COMM_SELF) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--plain") == 0) {
    MPI_Init(&argc, &argv);  // for one thread: Tutti warns
  } else {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  int failed = own_messages_arrive(MPI_COMM_WORLD) ? 0 : 1;
  if (rank % 2 == 0) {
    try {
      failed |= train(half);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      failed = 1;
    }
  }
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return any;
}
