#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tutti::engine::mpi {

/// A communicator, as its library writes it: a number or an address.
enum class Communicator : std::uint64_t {};

/// How many threads may call the library, as MPI knows it.
enum class ThreadLevel { single, funneled, serialized, multiple };

/// An element type and an operation that the library itself may reduce. Those it has no name for are not here.
enum class Element : std::uint8_t { int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 };
enum class Reducer : std::uint8_t { sum, product, min, max, bit_and, bit_or, bit_xor };

/// The end of something that was begun.
struct Over {
  std::uint32_t number = 0;
  int error = 0;  ///< 0: none
  int from = -1;  ///< of a receive
  std::size_t bytes = 0;
};

/// Things begun and not over. One thread at a time. All calls give MPI's error code, 0 for none.
class Requests {
 public:
  static constexpr int kAnySource = -1;
  /// Counts are ints: what is longer than this goes in parts, each of which has a request, all with one number. Parts
  /// of sums are whole elements.
  static constexpr std::size_t kLongest = std::size_t{1} << 30;

  virtual ~Requests() = default;
  virtual int send(Communicator where, int to, int tag, const std::byte* data, std::size_t bytes,
                   std::uint32_t number) = 0;
  /// Over not before the receiver has begun to take it.
  virtual int send_until_taken(Communicator where, int to, int tag, const std::byte* data, std::size_t bytes,
                               std::uint32_t number) = 0;
  /// Up to so many bytes.
  virtual int receive(Communicator where, int from, int tag, std::byte* data, std::size_t bytes,
                      std::uint32_t number) = 0;
  virtual int all_reduce(Communicator where, const std::byte* in, std::byte* out, std::size_t count, Element element,
                         Reducer reducer, std::uint32_t number) = 0;
  virtual int broadcast(Communicator where, std::byte* data, std::size_t bytes, int root, std::uint32_t number) = 0;
  /// Of these two, blocks are no longer than kLongest.
  virtual int all_gather(Communicator where, const std::byte* in, std::byte* out, std::size_t bytes,
                         std::uint32_t number) = 0;
  virtual int all_to_all(Communicator where, const std::byte* in, std::byte* out, std::size_t bytes,
                         std::uint32_t number) = 0;

  virtual std::size_t pending() const = 0;
  /// Lets the library move what it can, and appends what is over.
  virtual int poll(std::vector<Over>& over) = 0;
  /// Ends those that are not over: a receive that nothing came for takes nothing any more, and what MPI has matched
  /// gets a moment to end. A send may go on reading what it sends. False: something may go on writing, whenever MPI is
  /// called.
  virtual bool cancel_all() = 0;
};

/// One MPI library, as far as it is used here: a plugin is built for each that is found, and one is loaded at run time,
/// since libraries differ in what `mpi.h` says. One thread at a time, whichever it is.
class Api {
 public:
  virtual ~Api() = default;

  virtual std::string version() const = 0;  ///< its first line
  /// Whether long messages to the same rank take turns, and end together, where others send one behind the other.
  virtual bool mixes_long_messages() const = 0;
  virtual bool is_initialized() const = 0;
  virtual bool is_finalized() const = 0;
  /// What initializing gave, or gave whoever did it.
  virtual ThreadLevel level() const = 0;
  virtual int initialize() = 0;
  virtual void finalize() = 0;

  /// Copies of them, so that messages do not meet those of the program. A communicator's errors do not end the process.
  virtual int copy_world(Communicator& made) = 0;
  virtual int copy(Communicator of, Communicator& made) = 0;
  /// One of these ranks of another; all of them call it, and nobody else. Blocks until they have.
  virtual int make(Communicator of, const std::vector<int>& ranks, int tag, Communicator& made) = 0;
  virtual void free(Communicator which) = 0;
  virtual int rank(Communicator of) const = 0;
  virtual int size(Communicator of) const = 0;
  virtual int highest_tag() const = 0;
  virtual int broadcast(Communicator where, std::byte* data, std::size_t bytes, int root) = 0;
  /// What is longer than `longest` goes in parts.
  virtual std::unique_ptr<Requests> make_requests(std::size_t longest = Requests::kLongest) = 0;
  /// Has the library move what it can of all that was begun.
  virtual void progress(Communicator any) = 0;
  virtual std::string error_text(int error) const = 0;
};

/// What a plugin exports by this name. The object is the plugin's, and there is one.
inline constexpr const char* kEntry = "tutti_mpi_api";
/// Changes with everything above.
inline constexpr const char* kVersionEntry = "tutti_mpi_api_version";
inline constexpr int kApiVersion = 6;

}  // namespace tutti::engine::mpi
