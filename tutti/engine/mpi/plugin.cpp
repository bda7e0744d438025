// Compiled once for each MPI, against its own mpi.h.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tutti/engine/mpi/mpi_api.h"

namespace tutti::engine::mpi {
namespace {

Communicator wrap(MPI_Comm comm) {
  static_assert(sizeof(MPI_Comm) <= sizeof(Communicator));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &comm, sizeof(MPI_Comm));
  return Communicator{bits};
}

MPI_Comm unwrap(Communicator which) {
  const auto bits = static_cast<std::uint64_t>(which);
  MPI_Comm comm;
  std::memcpy(&comm, &bits, sizeof(MPI_Comm));
  return comm;
}

MPI_Datatype type_of(Element element) {
  switch (element) {
    case Element::int8: return MPI_INT8_T;
    case Element::uint8: return MPI_UINT8_T;
    case Element::int16: return MPI_INT16_T;
    case Element::uint16: return MPI_UINT16_T;
    case Element::int32: return MPI_INT32_T;
    case Element::uint32: return MPI_UINT32_T;
    case Element::int64: return MPI_INT64_T;
    case Element::uint64: return MPI_UINT64_T;
    case Element::float32: return MPI_FLOAT;
    case Element::float64: return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op op_of(Reducer reducer) {
  switch (reducer) {
    case Reducer::sum: return MPI_SUM;
    case Reducer::product: return MPI_PROD;
    case Reducer::min: return MPI_MIN;
    case Reducer::max: return MPI_MAX;
    case Reducer::bit_and: return MPI_BAND;
    case Reducer::bit_or: return MPI_BOR;
    case Reducer::bit_xor: return MPI_BXOR;
  }
  return MPI_OP_NULL;
}

class PendingRequests final : public Requests {
 public:
  explicit PendingRequests(std::size_t longest) : longest_(longest) {}

  int send(Communicator where, int to, int tag, const std::byte* data, std::size_t bytes,
           std::uint32_t number) override {
    return in_parts({Kind::send, bytes, number}, [&](std::size_t begin, int count, MPI_Request& request) {
      return MPI_Isend(data + begin, count, MPI_BYTE, to, tag, unwrap(where), &request);
    });
  }

  int send_until_taken(Communicator where, int to, int tag, const std::byte* data, std::size_t bytes,
                       std::uint32_t number) override {
    return in_parts({Kind::send, bytes, number}, [&](std::size_t begin, int count, MPI_Request& request) {
      return MPI_Issend(data + begin, count, MPI_BYTE, to, tag, unwrap(where), &request);
    });
  }

  int receive(Communicator where, int from, int tag, std::byte* data, std::size_t bytes,
              std::uint32_t number) override {
    const int source = from == kAnySource ? MPI_ANY_SOURCE : from;
    return in_parts({Kind::receive, bytes, number}, [&](std::size_t begin, int count, MPI_Request& request) {
      return MPI_Irecv(data + begin, count, MPI_BYTE, source, tag, unwrap(where), &request);
    });
  }

  int all_reduce(Communicator where, const std::byte* in, std::byte* out, std::size_t count, Element element,
                 Reducer reducer, std::uint32_t number) override {
    const auto type = type_of(element);
    int size = 0;
    MPI_Type_size(type, &size);
    const auto width = static_cast<std::size_t>(size);
    const Whole whole{Kind::collective, count * width, number, width};
    return in_parts(whole, [&](std::size_t begin, int bytes, MPI_Request& request) {
      const void* from = in == out ? MPI_IN_PLACE : static_cast<const void*>(in + begin);
      return MPI_Iallreduce(from, out + begin, bytes / size, type, op_of(reducer), unwrap(where), &request);
    });
  }

  int broadcast(Communicator where, std::byte* data, std::size_t bytes, int root, std::uint32_t number) override {
    return in_parts({Kind::collective, bytes, number}, [&](std::size_t begin, int count, MPI_Request& request) {
      return MPI_Ibcast(data + begin, count, MPI_BYTE, root, unwrap(where), &request);
    });
  }

  int all_gather(Communicator where, const std::byte* in, std::byte* out, std::size_t bytes,
                 std::uint32_t number) override {
    int me = 0;
    MPI_Comm_rank(unwrap(where), &me);
    const bool in_place = in == out + static_cast<std::size_t>(me) * bytes;
    const auto count = static_cast<int>(bytes);
    return keep(Kind::collective, number, [&](MPI_Request& request) {
      return MPI_Iallgather(in_place ? MPI_IN_PLACE : static_cast<const void*>(in), count, MPI_BYTE, out, count,
                            MPI_BYTE, unwrap(where), &request);
    });
  }

  int all_to_all(Communicator where, const std::byte* in, std::byte* out, std::size_t bytes,
                 std::uint32_t number) override {
    const auto count = static_cast<int>(bytes);
    return keep(Kind::collective, number, [&](MPI_Request& request) {
      return MPI_Ialltoall(in, count, MPI_BYTE, out, count, MPI_BYTE, unwrap(where), &request);
    });
  }

  std::size_t pending() const override { return requests_.size(); }

  int poll(std::vector<Over>& over) override {
    const auto count = static_cast<int>(requests_.size());
    if (count == 0) {
      return MPI_SUCCESS;
    }
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int done = 0;
    const int error = MPI_Testsome(count, requests_.data(), &done, indices_.data(), statuses_.data());
    if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) {
      return error;
    }
    for (int i = 0; i < done; ++i) {
      note_end(static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]), statuses_[static_cast<std::size_t>(i)],
               error == MPI_ERR_IN_STATUS, over);
    }
    if (done > 0) {
      forget_ended();
    }
    return MPI_SUCCESS;
  }

  bool cancel_all() override {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (entries_[i].kind == Kind::receive) {
        MPI_Cancel(&requests_[i]);
      }
    }
    // Who sends gives a little, too, or whoever waits for the rest of a message would do so in vain.
    constexpr std::chrono::milliseconds kLittle{30};
    constexpr std::chrono::milliseconds kMoment{100};
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Over> over;
    while (!requests_.empty() && poll(over) == MPI_SUCCESS &&
           std::chrono::steady_clock::now() - begin < (writing() ? kMoment : kLittle)) {
    }
    const bool safe = !writing();
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (entries_[i].kind == Kind::send) {  // of others MPI keeps what it needs
        MPI_Request_free(&requests_[i]);
      }
    }
    requests_.clear();
    entries_.clear();
    arrived_.clear();
    return safe;
  }

 private:
  enum class Kind : std::uint8_t { send, receive, collective };
  struct Entry {
    Kind kind = Kind::send;
    std::uint32_t number = 0;
    bool ended = false;
    std::size_t bytes = 0;
  };

  bool writing() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.kind != Kind::send; });
  }

  template <class Begin>
  int keep(Kind kind, std::uint32_t number, Begin&& begin) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = begin(request);
    if (error == MPI_SUCCESS) {
      requests_.push_back(request);
      entries_.push_back({.kind = kind, .number = number});
    }
    return error;
  }

  struct Whole {
    Kind kind;
    std::size_t bytes;
    std::uint32_t number;
    std::size_t unit = 1;  ///< bytes that stay together
  };

  template <class Begin>
  int in_parts(const Whole& whole, Begin&& begin) {
    const auto longest = std::max(longest_ / whole.unit, std::size_t{1}) * whole.unit;
    std::size_t at = 0;
    do {
      const auto part = std::min(longest, whole.bytes - at);
      const int error = keep(whole.kind, whole.number,
                             [&](MPI_Request& request) { return begin(at, static_cast<int>(part), request); });
      if (error != MPI_SUCCESS) {
        return error;
      }
      at += part;
    } while (at < whole.bytes);
    return MPI_SUCCESS;
  }

  void note_end(std::size_t index, const MPI_Status& status, bool errors, std::vector<Over>& over) {
    auto& entry = entries_[index];
    entry.ended = true;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    entry.bytes = count > 0 ? static_cast<std::size_t>(count) : 0;
    Over end{.number = entry.number, .error = errors ? status.MPI_ERROR : MPI_SUCCESS, .from = status.MPI_SOURCE};
    for (auto& [number, bytes] : arrived_) {  // of parts that were over before
      if (number == entry.number) {
        entry.bytes += std::exchange(bytes, 0);
      }
    }
    end.bytes = entry.bytes;
    // One that went in parts is over with the last of them.
    const auto same = std::count_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& each) { return !each.ended && each.number == entry.number; });
    if (same == 0 || end.error != MPI_SUCCESS) {
      over.push_back(end);
      std::erase_if(arrived_, [&](const auto& each) { return each.first == entry.number; });
    } else {
      arrived_.emplace_back(entry.number, entry.bytes);
    }
  }

  void forget_ended() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (!entries_[i].ended) {
        requests_[kept] = requests_[i];
        entries_[kept++] = entries_[i];
      }
    }
    requests_.resize(kept);
    entries_.resize(kept);
  }

  const std::size_t longest_;
  std::vector<MPI_Request> requests_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::uint32_t, std::size_t>> arrived_;  // bytes of those that are not over, by number
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

class ThisApi final : public Api {
 public:
  std::string version() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string whole(text.data());
    return whole.substr(0, whole.find_first_of("\n,"));
  }

  bool mixes_long_messages() const override {
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
  }

  bool is_initialized() const override {
    int flag = 0;
    MPI_Initialized(&flag);
    return flag != 0;
  }

  bool is_finalized() const override {
    int flag = 0;
    MPI_Finalized(&flag);
    return flag != 0;
  }

  ThreadLevel level() const override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE     ? ThreadLevel::multiple
           : provided == MPI_THREAD_SERIALIZED ? ThreadLevel::serialized
           : provided == MPI_THREAD_FUNNELED   ? ThreadLevel::funneled
                                               : ThreadLevel::single;
  }

  int initialize() override {
#ifdef OPEN_MPI
    // Otherwise it ends the process when a connection to a peer breaks; the user may have said something else.
    ::setenv("OMPI_MCA_mpi_ft_enable", "1", 0);
#endif
    int provided = 0;
    const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (error == MPI_SUCCESS) {
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    return error;
  }

  void finalize() override { MPI_Finalize(); }

  int copy_world(Communicator& made) override { return copy(wrap(MPI_COMM_WORLD), made); }

  int copy(Communicator of, Communicator& made) override {
    MPI_Comm comm = MPI_COMM_NULL;
    const int error = MPI_Comm_dup(unwrap(of), &comm);
    return kept(error, comm, made);
  }

  int make(Communicator of, const std::vector<int>& ranks, int tag, Communicator& made) override {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    int error = MPI_Comm_group(unwrap(of), &all);
    if (error == MPI_SUCCESS) {
      error = MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    }
    if (error == MPI_SUCCESS) {
      error = MPI_Comm_create_group(unwrap(of), some, tag, &comm);
      MPI_Group_free(&some);
    }
    if (all != MPI_GROUP_NULL) {
      MPI_Group_free(&all);
    }
    return kept(error, comm, made);
  }

  void free(Communicator which) override {
    MPI_Comm comm = unwrap(which);
    MPI_Comm_free(&comm);
  }

  int rank(Communicator of) const override {
    int rank = -1;
    MPI_Comm_rank(unwrap(of), &rank);
    return rank;
  }

  int size(Communicator of) const override {
    int size = 0;
    MPI_Comm_size(unwrap(of), &size);
    return size;
  }

  int highest_tag() const override {
    int* highest = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &found);
    return found != 0 ? *highest : 32767;
  }

  int broadcast(Communicator where, std::byte* data, std::size_t bytes, int root) override {
    return MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, unwrap(where));
  }

  std::unique_ptr<Requests> make_requests(std::size_t longest) override {
    return std::make_unique<PendingRequests>(longest);
  }

  void progress(Communicator any) override {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, unwrap(any), &found, MPI_STATUS_IGNORE);
  }

  std::string error_text(int error) const override {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(error, text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
  }

 private:
  static int kept(int error, MPI_Comm comm, Communicator& made) {
    if (error == MPI_SUCCESS) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      made = wrap(comm);
    }
    return error;
  }
};

}  // namespace
}  // namespace tutti::engine::mpi

extern "C" {

__attribute__((visibility("default"))) tutti::engine::mpi::Api* tutti_mpi_api() {
  static tutti::engine::mpi::ThisApi api;
  return &api;
}

__attribute__((visibility("default"))) int tutti_mpi_api_version() { return tutti::engine::mpi::kApiVersion; }
}
