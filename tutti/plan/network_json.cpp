#include "tutti/plan/network_json.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tutti/base/whole_file.h"

namespace tutti::plan {
namespace {

using Json = nlohmann::json;  // the ordered one looks for each key among all before it
using OrderedJson = nlohmann::ordered_json;

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

/// Beyond these something is misspelt, and times would have hundreds of digits.
constexpr double kSlowest = 1e3;     // bytes per second
constexpr double kLongest = 1e5;     // seconds
constexpr double kMostBytes = 1e18;  // also what fits an integer
constexpr double kMostFactor = 1e6;  // and its reciprocal

/// Reads the keys of one object. The first thing that is wrong stays: what follows is read as if it were not there.
class Reader {
 public:
  Reader(const Json& json, std::string place, std::string* wrong)
      : json_(json), place_(std::move(place)), wrong_(wrong) {
    if (!json_.is_object()) {
      complain("", "an object");
    }
  }

  double number(const std::string& key, double unit, double otherwise = 0) {
    const auto* value = find(key);
    if (value == nullptr) {
      return otherwise;
    }
    if (!value->is_number() || value->get<double>() < 0) {
      complain(key, "a number, not negative");
      return otherwise;
    }
    return value->get<double>() * unit;
  }

  double seconds(const std::string& key) {
    return up_to(kLongest, key, kMicro, "at most 1e11 us, which is more than a day");
  }
  double bytes(const std::string& key, double otherwise = 0) {
    return up_to(kMostBytes, key, 1, "at most 1e18 bytes", otherwise);
  }
  double speed(const std::string& key) {
    const auto value = number(key, kGiga);
    if (value != 0 && (value < kSlowest || !std::isfinite(value))) {
      complain(key, "0 (no limit), or from 1e-6 on, which is a KB each second");
    }
    return value;
  }
  double factor(const std::string& key) {
    const auto value = number(key, 1, 1);
    if (value < 1 / kMostFactor || value > kMostFactor) {
      complain(key, "a factor from 1e-6 to 1e6");
    }
    return value;
  }

  int count(const std::string& key, int otherwise = 0) {
    const auto* value = find(key);
    if (value == nullptr) {
      return otherwise;
    }
    if (!value->is_number_integer() || value->get<std::int64_t>() < 0 || value->get<std::int64_t>() > (1 << 30)) {
      complain(key, "a whole number, not negative");
      return otherwise;
    }
    return value->get<int>();
  }

  bool flag(const std::string& key) {
    const auto* value = find(key);
    if (value != nullptr && !value->is_boolean()) {
      complain(key, "true or false");
    }
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }

  std::string text(const std::string& key, bool needed = false) {
    const auto* value = find(key);
    if ((value == nullptr && needed) || (value != nullptr && !value->is_string())) {
      complain(key, "a text");
    }
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }

  const Json* array(const std::string& key, bool needed = false) {
    const auto* value = find(key);
    if ((value == nullptr && needed) || (value != nullptr && !value->is_array())) {
      complain(key, "a list");
      return nullptr;
    }
    return value;
  }

  const Json* object(const std::string& key) { return find(key); }

  std::string place_of(const std::string& key) const { return place_.empty() ? key : place_ + "." + key; }

  /// A key that nobody asked for is a key misspelt.
  void end() {
    if (!json_.is_object()) {
      return;
    }
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) {
        complain(key, fmt::format("none of that name; there are {}", fmt::join(known_, ", ")));
      }
    }
  }

  void complain(const std::string& key, const std::string& expected) {
    if (wrong_->empty()) {
      const auto at = key.empty() ? place_ : place_of(key);
      *wrong_ = fmt::format("{}: expected {}", at.empty() ? "the whole" : at, expected);
    }
  }

 private:
  double up_to(double most, const std::string& key, double unit, const std::string& expected, double otherwise = 0) {
    const auto value = number(key, unit, otherwise);
    if (value <= most) {
      return value;
    }
    complain(key, expected);
    return otherwise;
  }

  const Json* find(const std::string& key) {
    known_.insert(key);
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    return json_.is_object() && found != json_.end() ? &*found : nullptr;
  }

  const Json& json_;
  std::string place_;
  std::string* wrong_;
  std::set<std::string> known_;
};

MessageCost read_cost(Reader& level, const std::string& key, std::string* wrong) {
  const auto* json = level.object(key);
  if (json == nullptr) {
    return {};
  }
  Reader reader(*json, level.place_of(key), wrong);
  const auto seconds = reader.seconds("us");
  const auto speed = reader.speed("gb_per_s");
  const auto ramp = reader.seconds("ramp_us");
  const auto ramp_bytes = reader.bytes("ramp_bytes");
  reader.end();
  return {seconds, speed > 0 ? 1 / speed : 0, ramp, ramp_bytes};
}

RingCost read_ring(Reader& level, std::string* wrong) {
  const auto* json = level.object("ring");
  if (json == nullptr) {
    return {};
  }
  Reader reader(*json, level.place_of("ring"), wrong);
  const RingCost cost{.bytes = static_cast<std::uint64_t>(reader.bytes("bytes")),
                      .portion = static_cast<std::uint64_t>(reader.bytes("portion_bytes")),
                      .host_bytes = static_cast<std::uint64_t>(reader.bytes("host_bytes")),
                      .seconds = reader.seconds("us"),
                      .answer = reader.seconds("answer_us")};
  reader.end();
  return cost;
}

MeetingCost read_meeting(Reader& level, std::string* wrong) {
  const auto* json = level.object("meeting");
  if (json == nullptr) {
    return {};
  }
  Reader reader(*json, level.place_of("meeting"), wrong);
  const MeetingCost cost{reader.seconds("us"), reader.seconds("us_per_member")};
  reader.end();
  return cost;
}

Level read_level(const Json& json, const std::string& place, std::string* wrong) {
  Reader reader(json, place, wrong);
  Level level;
  level.name = reader.text("name", true);
  level.members = reader.count("members");
  const auto joined = reader.text("joined");
  if (!joined.empty() && joined != "switch" && joined != "pairs") {
    reader.complain("joined", "\"switch\" or \"pairs\"");
  }
  level.joined = joined == "pairs" ? Level::Joined::by_pairs : Level::Joined::by_switch;
  level.latency = reader.seconds("latency_us");
  level.stream = reader.speed("stream_gb_per_s");
  level.link = reader.speed("link_gb_per_s");
  level.burst = reader.bytes("burst_bytes");
  level.send = read_cost(reader, "send", wrong);
  level.receive = read_cost(reader, "receive", wrong);
  if (const auto eager = reader.bytes("eager_bytes", -1); eager >= 0) {
    level.eager_bytes = static_cast<std::uint64_t>(eager);
  }
  level.meeting = read_meeting(reader, wrong);
  level.ring = read_ring(reader, wrong);
  level.source = reader.text("source");
  reader.end();
  return level;
}

Processors read_processors(const Json& json, std::string* wrong) {
  Reader reader(json, "processors", wrong);
  Processors processors;
  processors.cores = reader.count("cores_of_host");
  processors.copy = reader.speed("copy_gb_per_s");
  processors.reduce = reader.speed("reduce_gb_per_s");
  processors.sum = reader.speed("sum_gb_per_s");
  processors.combine_seconds = reader.seconds("combine_us");
  processors.step_seconds = reader.seconds("step_us");
  processors.switch_seconds = reader.seconds("switch_us");
  processors.memory = reader.speed("memory_gb_per_s");
  if (const auto* caches = reader.array("caches")) {
    for (std::size_t i = 0; i < caches->size(); ++i) {
      Reader cache((*caches)[i], fmt::format("processors.caches[{}]", i), wrong);
      const auto speed = cache.speed("gb_per_s");
      processors.caches.push_back({.bytes = cache.bytes("bytes"),
                                   .seconds_per_byte = speed > 0 ? 1 / speed : 0,
                                   .shared = cache.flag("shared")});
      cache.end();
    }
  }
  if (const auto* steps = reader.array("crowding")) {
    for (std::size_t i = 0; i < steps->size(); ++i) {
      Reader step((*steps)[i], fmt::format("processors.crowding[{}]", i), wrong);
      processors.crowding.push_back({step.count("ranks"), step.factor("factor")});
      step.end();
    }
  }
  processors.source = reader.text("source");
  reader.end();
  return processors;
}

SlowLink read_slow(const Json& json, const std::string& place, const Network& network, std::string* wrong) {
  Reader reader(json, place, wrong);
  SlowLink slow;
  const auto name = reader.text("level", true);
  const auto found = std::find_if(network.levels.begin(), network.levels.end(),
                                  [&](const Level& level) { return level.name == name; });
  if (found == network.levels.end() || found == network.levels.begin()) {
    reader.complain("level", "the name of a level above the first");
  }
  slow.level = static_cast<std::size_t>(found - network.levels.begin());
  slow.group = reader.count("group");
  slow.factor = reader.factor("factor");
  reader.end();
  return slow;
}

OrderedJson to_json(const MessageCost& cost) {
  OrderedJson json{{"us", cost.seconds / kMicro}};
  if (cost.seconds_per_byte > 0) {
    json["gb_per_s"] = 1 / cost.seconds_per_byte / kGiga;
  }
  if (cost.ramp > 0) {
    json["ramp_us"] = cost.ramp / kMicro;
    json["ramp_bytes"] = cost.ramp_bytes;
  }
  return json;
}

void set_unless_zero(OrderedJson& json, const char* key, double value) {
  if (value != 0) {
    json[key] = value;
  }
}

OrderedJson to_json(const Level& level) {
  OrderedJson json{{"name", level.name}};
  if (level.members != 0) {
    json["members"] = level.members;
  }
  if (level.joined == Level::Joined::by_pairs) {
    json["joined"] = "pairs";
  }
  json["latency_us"] = level.latency / kMicro;
  set_unless_zero(json, "stream_gb_per_s", level.stream / kGiga);
  set_unless_zero(json, "link_gb_per_s", level.link / kGiga);
  set_unless_zero(json, "burst_bytes", level.burst);
  json["send"] = to_json(level.send);
  json["receive"] = to_json(level.receive);
  if (level.eager_bytes != UINT64_MAX) {
    json["eager_bytes"] = level.eager_bytes;
  }
  if (level.meeting.seconds != 0 || level.meeting.seconds_per_member != 0) {
    json["meeting"] = {{"us", level.meeting.seconds / kMicro},
                       {"us_per_member", level.meeting.seconds_per_member / kMicro}};
  }
  if (level.ring.bytes != 0) {
    json["ring"] = {{"bytes", level.ring.bytes}, {"us", level.ring.seconds / kMicro}};
    set_unless_zero(json["ring"], "answer_us", level.ring.answer / kMicro);
    if (level.ring.portion != 0) {
      json["ring"]["portion_bytes"] = level.ring.portion;
    }
    if (level.ring.host_bytes != 0) {
      json["ring"]["host_bytes"] = level.ring.host_bytes;
    }
  }
  json["source"] = level.source;
  return json;
}

}  // namespace

Result<Network> parse_network(const std::string& text, const std::string& where) {
  const auto fails = [&](const std::string& sentence) {
    return Error{Code::invalid_argument, fmt::format("{}: {}", where, sentence)};
  };
  const auto json = Json::parse(text, nullptr, false, true);
  if (json.is_discarded()) {
    return fails("not JSON");
  }
  std::string wrong;
  Network network;
  Reader reader(json, "", &wrong);
  network.name = reader.text("name", true);
  reader.text("about");
  if (const auto* processors = reader.object("processors")) {
    network.processors = read_processors(*processors, &wrong);
  }
  if (const auto* levels = reader.array("levels", true)) {
    for (std::size_t i = 0; i < levels->size(); ++i) {
      network.levels.push_back(read_level((*levels)[i], fmt::format("levels[{}]", i), &wrong));
    }
  }
  if (const auto* slow = reader.array("slow_links")) {
    for (std::size_t i = 0; i < slow->size(); ++i) {
      network.slow.push_back(read_slow((*slow)[i], fmt::format("slow_links[{}]", i), network, &wrong));
    }
  }
  reader.end();
  if (!wrong.empty()) {
    return fails(wrong);
  }
  if (auto good = check(network, 1); !good) {
    return fails(good.error().message);
  }
  return network;
}

Result<Network> read_network(const std::string& path) {
  const auto text = read_whole(path);
  return text ? parse_network(text.value(), path) : text.error();
}

std::string to_json(const Network& network) {
  OrderedJson json{{"name", network.name}};
  const auto& processors = network.processors;
  auto& host = json["processors"];
  host = OrderedJson::object();
  if (processors.cores != 0) {
    host["cores_of_host"] = processors.cores;
  }
  set_unless_zero(host, "copy_gb_per_s", processors.copy / kGiga);
  set_unless_zero(host, "reduce_gb_per_s", processors.reduce / kGiga);
  set_unless_zero(host, "sum_gb_per_s", processors.sum / kGiga);
  set_unless_zero(host, "combine_us", processors.combine_seconds / kMicro);
  set_unless_zero(host, "step_us", processors.step_seconds / kMicro);
  set_unless_zero(host, "switch_us", processors.switch_seconds / kMicro);
  set_unless_zero(host, "memory_gb_per_s", processors.memory / kGiga);
  for (const auto& cache : processors.caches) {
    auto& json_of = host["caches"].emplace_back(OrderedJson{{"bytes", cache.bytes}});
    if (cache.seconds_per_byte > 0) {
      json_of["gb_per_s"] = 1 / cache.seconds_per_byte / kGiga;
    }
    if (cache.shared) {
      json_of["shared"] = true;
    }
  }
  for (const auto& step : processors.crowding) {
    host["crowding"].push_back({{"ranks", step.ranks}, {"factor", step.factor}});
  }
  host["source"] = processors.source;
  for (const auto& level : network.levels) {
    json["levels"].push_back(to_json(level));
  }
  for (const auto& slow : network.slow) {
    json["slow_links"].push_back(
        {{"level", network.levels[slow.level].name}, {"group", slow.group}, {"factor", slow.factor}});
  }
  return json.dump(2) + "\n";
}

}  // namespace tutti::plan
