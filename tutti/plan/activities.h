#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

namespace tutti::plan {

/// What several things may use at once, and then each gets its share of.
struct Resource {
  enum class Shared : std::uint8_t {
    evenly,  ///< what one leaves of its share nobody gets: keeps a change local, and is exact where users are alike
    fully,   ///< what some leave of their share the others get
  };

  double capacity = 0;  ///< of whatever its users ask for per second; 0: no limit
  Shared shared = Shared::evenly;
  /// How much slower its users are when they are so many (at 0: none); the last one counts for more. Empty: no slower.
  std::vector<double> crowding = {};
};

/// Things that take time and share resources: a fluid model. Alone, an activity takes so many seconds. An activity goes
/// on as fast as the resource that gives it least allows. One thread.
class Activities {
 public:
  static constexpr std::size_t kMostUsed = 12;
  static constexpr std::uint32_t kMany = 32;

  explicit Activities(const std::vector<Resource>& resources);

  double now() const { return now_; }

  /// Begins now. `demand`: what it asks for per second of each resource while nobody else does.
  void start(std::uint32_t id, double seconds, double demand, std::span<const std::uint32_t> uses);

  /// Goes on to when the next ones are over, and gives all that are over then, in the order in which they were started.
  /// False: nothing is left.
  bool advance(std::vector<std::uint32_t>& over);

  /// Seconds in which somebody used it, up to now.
  double busy(std::uint32_t resource) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Active {
    double rest = 0;  // seconds, alone
    double rate = 0;
    double since = 0;  // when rest was right
    double demand = 0;
    std::uint32_t id = 0;
    std::uint32_t version = 0;  // of the prediction when it is over
    std::uint64_t looked_at = 0;
    std::uint32_t count = 0;
    std::array<std::uint32_t, kMostUsed> uses{};
    std::array<std::uint32_t, kMostUsed> places{};  // among the users of each
  };
  struct Use {
    std::uint32_t slot = 0;
    std::uint32_t which = 0;  // of the slot's uses
  };
  struct Shared {
    Resource resource;
    double most = 0;  // asked for by one user
    std::vector<Use> users = {};
    double asked = 0;   // by all users
    double level = 0;   // the most that one gets, where they share fully and ask for too much; otherwise 0
    double slower = 1;  // by its crowd
    bool changed = false;
    std::uint32_t seen = 0;  // its crowd when its users last looked
    double busy = 0;
    double since = 0;  // somebody uses it
  };
  struct Prediction {
    double time;
    std::uint64_t order;
    std::uint32_t slot;  // or none: nothing can change it
    std::uint32_t id_or_version;
    bool operator>(const Prediction& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  std::uint32_t take_slot();
  /// Users, when they ask for more than there is; otherwise none that anybody notices.
  static std::uint32_t crowd(const Shared& shared);
  void add_user(std::uint32_t resource, Use use);
  void remove_user(std::uint32_t resource, std::uint32_t place);
  void note_change(std::uint32_t resource);
  /// Whether those who use it notice that others came or went.
  static bool is_noticed(const Shared& shared);
  static double slowed_by(const Shared& shared);
  /// Finds what it gives from now on.
  void divide(Shared& shared) const;
  void look_again(std::uint32_t slot);
  void settle();
  bool is_stale(const Prediction& prediction) const;
  void finish(const Prediction& prediction, std::vector<std::uint32_t>& over);

  std::vector<Shared> shared_;
  std::vector<Active> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> fresh_;    // slots without a rate
  std::vector<std::uint32_t> changed_;  // resources that give other shares now
  std::priority_queue<Prediction, std::vector<Prediction>, std::greater<>> predictions_;
  std::uint64_t started_ = 0;
  std::uint64_t round_ = 0;
  double now_ = 0;
};

}  // namespace tutti::plan
