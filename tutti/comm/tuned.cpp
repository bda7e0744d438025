#include "tutti/comm/tuned.h"

#include <algorithm>

#include <fmt/format.h>

#include "tutti/base/log.h"
#include "tutti/comm/exception.h"

namespace tutti {
namespace {

using Kind = plan::Choice::Kind;

/// What only ranks on several hosts can do, others pass over: it was meant for the larger groups of the job.
plan::Choices without_hosts(const plan::Choices& choices) {
  plan::Choices kept;
  for (const auto& entry : choices.entries()) {
    const bool between_hosts =
        entry.choice && (entry.choice->kind == Kind::library ||
                         (entry.choice->kind == Kind::plan && entry.choice->algorithm == plan::Algorithm::hybrid));
    kept.add(entry.from, between_hosts ? std::nullopt : entry.choice);
  }
  return kept;
}

const plan::Choices* find(const plan::Tuning& tuning, const std::string& shape, plan::Op op, plan::Memory memory) {
  return tuning.all().empty() ? nullptr : tuning.find(tuning.all().front().machine, shape, op, memory);
}

void choose_found(engine::Engine& engine, const std::string& found) {
  if (found.empty()) {
    return;
  }
  const auto tuning = plan::Tuning::parse(found);
  if (!tuning) {
    throw Exception({Code::protocol, fmt::format("what rank 0 tells of its tuning: {}", tuning.error().message)});
  }
  const auto shape = engine.shape().text();
  for (std::size_t i = 0; i < std::size(engine::kOpNames); ++i) {
    const auto op = static_cast<engine::Op>(i);
    if (!engine::plan_op(op)) {
      continue;
    }
    engine::OpChoices choices;
    for (const auto memory : {plan::Memory::ordinary, plan::Memory::symmetric}) {
      if (const auto* const known = find(tuning.value(), shape, *engine::plan_op(op), memory)) {
        (memory == plan::Memory::ordinary ? choices.ordinary : choices.symmetric) = *known;
      }
    }
    if (auto chosen = engine.choose(op, choices); !chosen) {
      throw Exception({Code::invalid_argument,
                       fmt::format("what was found for {} on {} cannot be: {} (TUTTI_TUNING=off does without)",
                                   to_string(op), shape, chosen.error().message)});
    }
  }
}

void choose_preferred(engine::Engine& engine, const Preferences& preferences) {
  for (std::size_t i = 0; i < std::size(engine::kOpNames); ++i) {
    const auto wanted = preferences.plans.find(std::string(engine::kOpNames[i]));
    if (wanted == preferences.plans.end()) {
      continue;
    }
    const auto choices = plan::Choices::parse(wanted->second);
    const auto chosen = choices
                            ? engine.choose(static_cast<engine::Op>(i),
                                            engine.name() == "mpi" ? choices.value() : without_hosts(choices.value()))
                            : Status(choices.error());
    if (!chosen) {
      std::string variable(wanted->first);
      std::transform(variable.begin(), variable.end(), variable.begin(), [](char c) { return std::toupper(c); });
      throw Exception(
          {Code::invalid_argument, fmt::format("TUTTI_{}={}: {}", variable, wanted->second, chosen.error().message)});
    }
  }
}

}  // namespace

std::string TuningCache::text_for(int ranks) {
  if (path_.empty() || ranks == 1) {
    return "";
  }
  const std::scoped_lock lock(mutex_);
  if (!tuning_) {
    auto read = plan::read_tuning(path_);
    if (!read) {
      warn(make_log("tutti", log_level_), fmt::format("{}; it is not used", read.error().message));
    }
    tuning_ = read ? std::move(read).value() : plan::Tuning();
    machine_ = tuning_->all().empty() ? "" : this_machine();
  }
  const auto part = tuning_->part(machine_, ranks);
  return part.all().empty() ? "" : part.json();
}

std::string this_machine() {
  const auto topology = plan::read_topology();
  return topology ? plan::machine_name(topology.value()) : "unknown";
}

void choose_ways(engine::Engine& engine, const std::string& found, const Preferences& preferences) {
  choose_found(engine, found);
  choose_preferred(engine, preferences);
}

}  // namespace tutti
