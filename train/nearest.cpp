#include "train/nearest.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace tutti::train {
namespace {

constexpr std::size_t kLongest = 100;  // nobody means a longer one, and the time is quadratic

/// Letters to insert, drop or replace until one is the other.
std::size_t changes(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view given, const std::vector<std::string>& words) {
  if (given.empty() || given.size() > kLongest) {
    return {};
  }
  std::string best;
  std::size_t fewest = given.size() / 3 + 2;  // from here on it is another word
  for (const auto& word : words) {
    // A beginning is what people type of a long word.
    const auto count = word.starts_with(given) && given.size() >= 3 ? 1 : changes(given, word);
    if (count < fewest && count < word.size()) {
      fewest = count;
      best = word;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& words) {
  const auto word = nearest(given, words);
  return word.empty() ? "" : fmt::format("; did you mean '{}'?", word);
}

}  // namespace tutti::train
