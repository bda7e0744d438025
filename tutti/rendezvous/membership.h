#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/wire.h"

namespace tutti::rendezvous {

/// Number of a job's world: a program that leaves and inits again is in the next one.
enum class Generation : std::uint64_t {};

/// Who is in which generation of a job. Pure: no I/O, no clock. One thread at a time.
///
/// A rank that comes gets the first generation that it has not been in and that is still open; so the n-th world of one
/// rank meets the n-th of the others, even while some are still in the one before. A generation closes when all who
/// came have left: who is late then goes to the next one, where those who gave up waiting and came again are.
class Membership {
 public:
  Membership(int world_size, std::string version) : world_size_(world_size), version_(std::move(version)) {}

  /// Lets a rank in, or says why not (Code::refused), naming both sides.
  Result<Generation> admit(const Hello& hello);

  /// The rank leaves in peace. True when it was the last one: the generation is closed and can be forgotten.
  bool leave(Generation generation, Rank rank);

  /// The rank's connection broke. Marks the generation as failed; true as for `leave`.
  bool lose(Generation generation, Rank rank);

  /// A rank is known to have failed. Marks all open generations, and the one that this rank would be in next.
  void declare_lost(Rank rank, const std::string& sentence);

  /// Why no call of this generation can succeed any more; nullptr while all is well.
  const Error* failure(Generation generation) const;

  /// Whether every rank has come to it, including those who left again.
  bool complete(Generation generation) const;

 private:
  struct World {
    std::map<Rank, Hello> present;
    int came = 0;
    std::optional<Error> failure;
  };

  std::optional<Error> objection(const Hello& hello) const;
  Generation next_of(Rank rank) const;
  bool remove(Generation generation, Rank rank);

  int world_size_;
  std::string version_;
  std::map<Generation, World> worlds_;  ///< those that are open and have been joined or declared lost
  std::map<Rank, Generation> next_;     ///< the generation after the last one that a rank was in
  Generation open_{0};                  ///< all before it are closed
};

/// "pid 123 on host a"
std::string describe(const Hello& hello);

}  // namespace tutti::rendezvous
