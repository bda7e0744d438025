#include "tutti/verify/report.h"

#include <cstdio>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tutti/comm/exception.h"
#include "tutti/verify/words.h"

namespace tutti {
namespace {

using verifying::factor_text;
using verifying::ranks_text;

std::string times(double factor) { return factor == 1 ? "" : fmt::format(", times {}", factor_text(factor)); }

/// What is the matter with it: "is scaled by 4".
std::string phrase(const Finding& it) {
  const auto blamed = ranks_text(it.blamed);
  switch (it.cause) {
    case Cause::scaled: return fmt::format("is scaled by {}", factor_text(it.factor));
    case Cause::not_synchronized: return "is not synchronized: it is the rank's own" + times(it.factor);
    case Cause::partly_synchronized: return fmt::format("is not averaged over {}", it.detail) + times(it.factor);
    case Cause::over_other_axis:
      return fmt::format("is {} over {}", it.factor == 1 ? "summed" : "averaged", it.detail) + times(it.factor);
    case Cause::missing: return fmt::format("misses the contribution of {}", blamed) + times(it.factor);
    case Cause::counted_twice: return fmt::format("counts the contribution of {} twice", blamed) + times(it.factor);
    case Cause::replaced: return fmt::format("has the rows of rank {} in the place of those of {}", it.detail, blamed);
    case Cause::wrong_sign: return fmt::format("has the contribution of {} with the wrong sign", blamed);
    case Cause::weighted: return fmt::format("weighs the contribution of {} wrongly", blamed);
    case Cause::lost_microbatch: return fmt::format("misses microbatch {} of {}", it.detail, blamed) + times(it.factor);
    case Cause::stale_weights: return fmt::format("was computed with the weights of the step before by {}", blamed);
    case Cause::rounded: return fmt::format("was rounded to {}", it.detail);
    case Cause::gradient_missing: return "has no gradient";
    case Cause::gradient_unexpected: return "has a gradient, and should have none";
    case Cause::not_finite:
      return it.blamed.empty() ? "is not finite" : fmt::format("is not finite, and neither is the loss of {}", blamed);
    case Cause::rows_coupled: return "is the sum of ranks' gradients, which is not that of the whole batch";
    case Cause::random: return "is different each time it is computed from the same rows and weights";
    case Cause::started_differently: return fmt::format("started with different values on {}", blamed);
    case Cause::step_skipped: return fmt::format("did not change on {} in the step before", blamed);
    case Cause::parameter_diverged: return fmt::format("became different on {} in the step before", blamed);
    case Cause::buffer_diverged: return fmt::format("(a buffer) is different on {}", blamed);
    case Cause::other_loss: return "is not the mean over all rows";
    case Cause::other_weights: return "is not what it is when one process takes the same steps";
    case Cause::unknown: return "is wrong";
  }
  return "";
}

/// Findings of one step that say the same of several parameters.
std::string key_of(const Finding& it) {
  return fmt::format("{} {}", phrase(it), it.ranks.empty() ? "" : ranks_text(it.ranks));
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const auto value : values) {
    texts.push_back(fmt::format("{:.4g}", value));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string block(const Finding& first, const std::vector<std::string>& others) {
  auto text = fmt::format("  {}\n", first.sentence());
  if (first.error > 0) {
    text += fmt::format("    relative error {:.3g}, allowed {:.3g}\n", first.error, first.bound);
  }
  if (!first.norms.empty()) {
    text += fmt::format("    norms by rank: {}; of one process for each rank's rows: {}\n", numbers(first.norms),
                        numbers(first.contributions));
  }
  if (!others.empty()) {
    const auto shown = std::min<std::size_t>(others.size(), 5);
    text +=
        fmt::format("    the same: {}{}\n", fmt::join(others.begin(), others.begin() + static_cast<long>(shown), ", "),
                    shown < others.size() ? fmt::format(" and {} more", others.size() - shown) : "");
  }
  return text;
}

}  // namespace

std::string Finding::sentence() const {
  return fmt::format("step {}: {} {}{}: {}", step, what.empty() ? "the loss" : what, phrase(*this),
                     ranks.empty() ? "" : " (on " + ranks_text(ranks) + ")", hint);
}

std::string VerifyReport::text() const {
  const auto head =
      fmt::format("verify: {}: {} rank{} ({}), {} step{}, {} parameters of {} elements", ok() ? "PASS" : "FAIL", ranks,
                  ranks == 1 ? "" : "s", mesh, steps, steps == 1 ? "" : "s", parameters, elements);
  std::string text = head;
  if (ok()) {
    text += fmt::format(
        "\n  gradients: errors are at most {:.2g} of what rounding allows; weights after the last step differ by "
        "{:.2g} of how far they moved\n",
        closeness, weights_error);
  } else {
    text += "\n";
    std::vector<std::string> order;
    std::map<std::string, std::pair<const Finding*, std::vector<std::string>>> groups;
    for (const auto& one : findings) {
      const auto [place, is_new] = groups.try_emplace(key_of(one), &one, std::vector<std::string>{});
      if (is_new) {
        order.push_back(key_of(one));
      } else {
        place->second.second.push_back(one.what);
      }
    }
    for (const auto& key : order) {
      text += block(*groups[key].first, groups[key].second);
    }
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    text +=
        fmt::format("  loss of step {}: {:.9g} on many ranks, {:.9g} on one\n", i, losses[i].together, losses[i].alone);
  }
  return text;
}

std::string VerifyReport::json() const {
  const auto list = [](const std::vector<Rank>& some) {
    auto result = nlohmann::json::array();
    for (const auto rank : some) {
      result.push_back(to_int(rank));
    }
    return result;
  };
  nlohmann::json result{{"ok", ok()},
                        {"mesh", mesh},
                        {"ranks", ranks},
                        {"group", group},
                        {"steps", steps},
                        {"parameters", parameters},
                        {"elements", elements},
                        {"closeness", closeness},
                        {"weights_error", weights_error},
                        {"losses", nlohmann::json::array()},
                        {"findings", nlohmann::json::array()}};
  for (const auto& one : losses) {
    result["losses"].push_back({{"together", one.together}, {"alone", one.alone}});
  }
  for (const auto& one : findings) {
    result["findings"].push_back({{"step", one.step},
                                  {"what", one.what},
                                  {"cause", to_string(one.cause)},
                                  {"ranks", list(one.ranks)},
                                  {"blamed", list(one.blamed)},
                                  {"factor", one.factor},
                                  {"detail", one.detail},
                                  {"error", one.error},
                                  {"bound", one.bound},
                                  {"norms", one.norms},
                                  {"contributions", one.contributions},
                                  {"sentence", one.sentence()}});
  }
  return result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append(const VerifyReport& report, const std::string& path) {
  std::ofstream file(path, std::ios::app);
  file << nlohmann::json::parse(report.json()).dump() << '\n';
  if (!file.flush()) {
    throw Exception({Code::system, fmt::format("verify: cannot write its report to {}", path)});
  }
}

int conclude(const VerifyReport& report, Rank rank) {
  if (rank == Rank{0}) {
    const auto text = report.text();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  return report.ok() ? 0 : 1;
}

}  // namespace tutti
