#include "tutti/plan/tuning.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tutti/base/file_descriptor.h"
#include "tutti/base/whole_file.h"

namespace tutti::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::array kMemories{Memory::ordinary, Memory::symmetric};

Error bad(const std::string& sentence) { return {Code::invalid_argument, sentence}; }

Result<Memory> parse_memory(const std::string& text) {
  const auto* const found =
      std::find_if(kMemories.begin(), kMemories.end(), [&](Memory memory) { return text == to_string(memory); });
  return found == kMemories.end() ? Result<Memory>(bad(fmt::format("no memory '{}'", text))) : *found;
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
  Tuned tuned{.machine = text("machine"),
              .shape = text("group"),
              .op = op.value(),
              .memory = memory.value(),
              .choices = std::move(choices).value(),
              .when = text("when")};
  if (tuned.machine.empty() || tuned.shape.empty()) {
    return bad("an entry needs a machine and a group");
  }
  return tuned;
}

Error failed(const std::string& path, const char* what) {
  return {Code::system, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
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
  Json list = Json::array();
  for (const auto& tuned : all_) {
    list.push_back({{"machine", tuned.machine},
                    {"group", tuned.shape},
                    {"operation", to_string(tuned.op)},
                    {"memory", to_string(tuned.memory)},
                    {"choices", tuned.choices.text()},
                    {"when", tuned.when}});
  }
  return Json{{"version", kVersion}, {"tuned", std::move(list)}}.dump(1) + "\n";
}

void Tuning::put(Tuned tuned) {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Tuned& each) {
    return each.machine == tuned.machine && each.shape == tuned.shape && each.op == tuned.op &&
           each.memory == tuned.memory;
  });
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
  std::ifstream file(path);
  if (!file) {
    return errno == ENOENT ? Result<Tuning>(Tuning()) : failed(path, "open");
  }
  std::ostringstream text;
  text << file.rdbuf();
  auto tuning = Tuning::parse(text.str());
  if (!tuning) {
    return bad(fmt::format("{}: {}", path, tuning.error().message));
  }
  return tuning;
}

Status add_to_tuning(const std::string& path, const std::vector<Tuned>& found) {
  if (auto made = make_folder_for(path); !made) {
    return made;
  }
  const auto lock_path = path + ".lock";
  const FileDescriptor lock(::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0) {
    return failed(lock_path, "lock");
  }
  auto tuning = read_tuning(path);
  if (!tuning) {
    return tuning.error();
  }
  for (const auto& tuned : found) {
    tuning.value().put(tuned);
  }
  return write_whole(path, tuning.value().json());
}

}  // namespace tutti::plan
