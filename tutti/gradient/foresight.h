#pragma once
// Which request for memory will be the one for which gradient. Pure.

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tutti::gradient {

/// A request for memory, as it is known again in the next pass.
struct MemoryRequest {
  std::size_t gradients = 0;  ///< so many had arrived
  std::size_t bytes = 0;
  std::size_t number = 0;  ///< of those for so many bytes, since the last gradient

  auto operator<=>(const MemoryRequest&) const = default;
};

/// Learns from backward passes. A request is known again by its place among the others: so many gradients had arrived,
/// and it was the n-th for so many bytes since then. What two passes in a row showed is foretold for the next.
class Foresight {
 public:
  /// Requests for less are not looked at: there are many, and a copy of so little costs nothing.
  static constexpr std::size_t kSmallest = std::size_t{32} << 10;

  /// By parameter, how large its gradient is.
  explicit Foresight(std::vector<std::size_t> bytes);

  /// Whether there is any gradient that could be foretold.
  bool has_any() const { return !sizes_.empty(); }

  void begin_pass();

  /// Somebody asks for memory. The parameter whose gradient it is for, if that can be foretold. `given` has to follow.
  std::optional<std::size_t> asked(std::size_t bytes);
  void given(const void* data);

  /// A parameter's gradient arrived, and lies there.
  void arrived(std::size_t parameter, const void* data);

  /// It was wrong about this one, which is not foretold any more.
  void mistaken(std::size_t parameter);

 private:
  struct Parameter {
    std::size_t bytes = 0;
    std::optional<MemoryRequest> last = {};  // of the last pass
    bool foretold = false;
    bool hopeless = false;
  };

  void forget(Parameter& parameter);

  std::vector<Parameter> parameters_;
  std::vector<std::size_t> sizes_;  // of parameters that are large enough, in order
  std::map<MemoryRequest, std::size_t> foretold_;
  // Of this pass.
  std::vector<std::pair<MemoryRequest, const void*>> requests_;
  std::size_t gradients_ = 0;
  std::size_t since_ = 0;  // requests since the last gradient begin here
};

}  // namespace tutti::gradient
