#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/plan/topology.h"
#include "tutti/plan/tuner.h"

namespace tutti::plan {

/// Where tensors lie: in a rank's private memory, as usual, or where its peers reach them.
enum class Memory { ordinary, symmetric };

std::string_view to_string(Memory memory);

/// Of blocks that were timed, the smallest and the largest; all, where that is not known.
struct TimedSizes {
  std::size_t smallest = 0;
  std::size_t largest = SIZE_MAX;
};

/// What was found quickest for one operation, by measuring it.
struct Tuned {
  std::string machine;  ///< see machine_name
  std::string shape;    ///< of the group
  Op op = Op::all_reduce;
  Memory memory = Memory::ordinary;
  Choices choices;
  std::string when = {};  ///< for people
  TimedSizes timed = {};  ///< what the choices are based on
};

/// All that was found, on any machine, for any group.
class Tuning {
 public:
  /// From JSON. An error says where it makes no sense.
  static Result<Tuning> parse(std::string_view json);
  std::string json() const;

  /// In place of what was there for the same.
  void put(Tuned tuned);
  /// The same, but what was found for sizes well beyond those timed now stays: below half the smallest of them, and
  /// from twice the largest on.
  void add(Tuned tuned);
  /// Null when there is none.
  const Choices* find(std::string_view machine, std::string_view shape, Op op, Memory memory) const;
  /// What there is for groups of so many ranks on that machine.
  Tuning part(std::string_view machine, int ranks) const;

  const std::vector<Tuned>& all() const { return all_; }

 private:
  std::vector<Tuned>::iterator same(const Tuned& tuned);

  std::vector<Tuned> all_;
};

/// What stands for all machines of the kind: "AMD EPYC 9B14, 2 cores, 1 node, L3 32 MiB".
std::string machine_name(const Topology& topology);

/// A file that is not there has nothing in it.
Result<Tuning> read_tuning(const std::string& path);

/// Adds these to what is in the file (see Tuning::add); makes it, and its folder, when it is not there. Who reads
/// meanwhile gets the old or the new whole; several writers come one after the other. Blocks. Returns what is there
/// now.
Result<Tuning> add_to_tuning(const std::string& path, const std::vector<Tuned>& found);
/// Whether that can be, for those who work long before: the file makes sense or is not there, and there can be one.
Status can_add_to_tuning(const std::string& path);

}  // namespace tutti::plan
