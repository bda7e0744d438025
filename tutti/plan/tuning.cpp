#include "tutti/plan/tuning.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tutti/base/file_descriptor.h"
#include "tutti/base/whole_file.h"

namespace tutti::plan {
namespace {

using Json = nlohmann::json;  // the ordered one looks for each key among all before it
using OrderedJson = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMostEntries = 20'000;  // each is looked for among all before it
constexpr std::array kMemories{Memory::ordinary, Memory::symmetric};

Error bad(const std::string& sentence) { return {Code::invalid_argument, sentence}; }

Result<Memory> parse_memory(const std::string& text) {
  const auto* const found =
      std::find_if(kMemories.begin(), kMemories.end(), [&](Memory memory) { return text == to_string(memory); });
  return found == kMemories.end() ? Result<Memory>(bad(fmt::format("no memory '{}'", text))) : *found;
}

/// Written only where they are known.
Result<TimedSizes> parse_timed(const Json& json) {
  const auto found = json.is_object() ? json.find("timed") : json.end();
  if (!json.is_object() || found == json.end()) {
    return TimedSizes{};
  }
  const auto size = [&](std::size_t i) { return (*found)[i].get<std::size_t>(); };
  if (!found->is_array() || found->size() != 2 || !(*found)[0].is_number_unsigned() ||
      !(*found)[1].is_number_unsigned() || size(0) > size(1)) {
    return bad("'timed' is the smallest and the largest size that were timed");
  }
  return TimedSizes{size(0), size(1)};
}

constexpr auto kEnd = SIZE_MAX;

/// A choice holds for a factor of two beyond what was timed.
std::size_t end_of(const TimedSizes& timed) { return timed.largest > kEnd / 2 ? kEnd : 2 * timed.largest; }

/// The new choices around the sizes that they are based on, and where nothing was timed before; the old ones where they
/// were timed well beyond.
Choices merged(const Tuned& before, const Tuned& now) {
  const auto below = now.timed.smallest / 2;
  const auto above = end_of(now.timed);
  const auto from = before.timed.smallest < below ? std::min(below, end_of(before.timed)) : 0;
  const auto to = before.timed.largest >= above ? std::max(above, before.timed.smallest / 2) : kEnd;
  std::set<std::size_t> places{0, from, to};
  for (const auto* const choices : {&before.choices, &now.choices}) {
    for (const auto& entry : choices->entries()) {
      places.insert(entry.from);
    }
  }
  places.erase(kEnd);  // nothing begins there
  Choices merged;
  for (const auto place : places) {
    const auto& which = place >= from && place < to ? now.choices : before.choices;
    const auto* const choice = which.find(place);
    merged.add(place, choice == nullptr ? std::nullopt : std::optional(*choice));
  }
  return merged;
}

Result<Tuned> parse_entry(const Json& json) {
  const auto text = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto op = parse_op(text("operation"));
  if (!op) {
    return op.error();
  }
  const auto memory = parse_memory(text("memory"));
  if (!memory) {
    return memory.error();
  }
  auto choices = Choices::parse(text("choices"));
  if (!choices) {
    return choices.error();
  }
  const auto timed = parse_timed(json);
  if (!timed) {
    return timed.error();
  }
  Tuned tuned{.machine = text("machine"),
              .shape = text("group"),
              .op = op.value(),
              .memory = memory.value(),
              .choices = std::move(choices).value(),
              .when = text("when"),
              .timed = timed.value()};
  if (tuned.machine.empty() || tuned.shape.empty()) {
    return bad("an entry needs a machine and a group");
  }
  return tuned;
}

/// Held as long as it lives: writers come one after the other.
Result<FileDescriptor> lock_for(const std::string& path) {
  if (auto made = make_folder_for(path); !made) {
    return made.error();
  }
  const auto lock_path = path + ".lock";
  FileDescriptor lock(::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0) {
    return Error{Code::system, fmt::format("{}: cannot lock: {}", lock_path, std::strerror(errno))};
  }
  return lock;
}

}  // namespace

std::string_view to_string(Memory memory) { return memory == Memory::ordinary ? "private" : "symmetric"; }

Result<Tuning> Tuning::parse(std::string_view json) {
  const auto whole = Json::parse(json, nullptr, false);
  if (!whole.is_object() || !whole.contains("tuned") || !whole["tuned"].is_array()) {
    return bad("no JSON object with a list 'tuned'");
  }
  if (whole.value("version", Json()) != kVersion) {
    return bad(fmt::format("not of version {}", kVersion));
  }
  if (whole["tuned"].size() > kMostEntries) {
    return bad(fmt::format("more than {} entries", kMostEntries));
  }
  Tuning tuning;
  for (const auto& each : whole["tuned"]) {
    auto tuned = parse_entry(each);
    if (!tuned) {
      return bad(fmt::format("entry {}: {}", tuning.all_.size() + 1, tuned.error().message));
    }
    tuning.put(std::move(tuned).value());
  }
  return tuning;
}

std::string Tuning::json() const {
  auto list = OrderedJson::array();
  for (const auto& tuned : all_) {
    list.push_back({{"machine", tuned.machine},
                    {"group", tuned.shape},
                    {"operation", to_string(tuned.op)},
                    {"memory", to_string(tuned.memory)},
                    {"choices", tuned.choices.text()},
                    {"when", tuned.when}});
    if (tuned.timed.largest != SIZE_MAX) {
      list.back()["timed"] = {tuned.timed.smallest, tuned.timed.largest};
    }
  }
  return OrderedJson{{"version", kVersion}, {"tuned", std::move(list)}}.dump(1) + "\n";
}

std::vector<Tuned>::iterator Tuning::same(const Tuned& tuned) {
  return std::find_if(all_.begin(), all_.end(), [&](const Tuned& each) {
    return each.machine == tuned.machine && each.shape == tuned.shape && each.op == tuned.op &&
           each.memory == tuned.memory;
  });
}

void Tuning::add(Tuned tuned) {
  if (const auto found = same(tuned); found != all_.end()) {
    tuned.choices = merged(*found, tuned);
    tuned.timed = {std::min(found->timed.smallest, tuned.timed.smallest),
                   std::max(found->timed.largest, tuned.timed.largest)};
  }
  put(std::move(tuned));
}

void Tuning::put(Tuned tuned) {
  const auto found = same(tuned);
  if (found == all_.end()) {
    all_.push_back(std::move(tuned));
  } else {
    *found = std::move(tuned);
  }
}

const Choices* Tuning::find(std::string_view machine, std::string_view shape, Op op, Memory memory) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Tuned& each) {
    return each.machine == machine && each.shape == shape && each.op == op && each.memory == memory;
  });
  return found == all_.end() ? nullptr : &found->choices;
}

Tuning Tuning::part(std::string_view machine, int ranks) const {
  Tuning part;
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(part.all_), [&](const Tuned& each) {
    return each.machine == machine && GroupShape::parse(each.shape).ranks() == ranks;
  });
  return part;
}

std::string machine_name(const Topology& topology) {
  const auto largest = std::max_element(topology.caches.begin(), topology.caches.end(),
                                        [](const Cache& a, const Cache& b) { return a.level < b.level; });
  auto name = fmt::format("{}, {} cores, {} node{}", topology.model.empty() ? "unknown" : topology.model,
                          topology.machine_cores, topology.nodes.size(), topology.nodes.size() == 1 ? "" : "s");
  if (largest != topology.caches.end()) {
    name += fmt::format(", L{} {} KiB", largest->level, largest->bytes >> 10);
  }
  return name;
}

Result<Tuning> read_tuning(const std::string& path) {
  const auto text = read_whole(path);
  if (!text) {
    return text.error().code == Code::not_found ? Result<Tuning>(Tuning()) : text.error();
  }
  auto tuning = Tuning::parse(text.value());
  if (!tuning) {
    return bad(fmt::format("{}: {}", path, tuning.error().message));
  }
  return tuning;
}

Result<Tuning> add_to_tuning(const std::string& path, const std::vector<Tuned>& found) {
  const auto lock = lock_for(path);
  if (!lock) {
    return lock.error();
  }
  auto tuning = read_tuning(path);
  if (!tuning) {
    return tuning;
  }
  for (const auto& tuned : found) {
    tuning.value().add(tuned);
  }
  if (auto written = write_whole(path, tuning.value().json()); !written) {
    return written.error();
  }
  return tuning;
}

Status can_add_to_tuning(const std::string& path) {
  const auto tuning = read_tuning(path);  // before a folder is made for it
  if (!tuning) {
    return tuning.error();
  }
  const auto lock = lock_for(path);
  return lock ? can_write_whole(path) : lock.error();
}

}  // namespace tutti::plan
