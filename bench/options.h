#pragma once
// What every program of the benchmark is asked: the same words for the peers and the bare loop.

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

inline constexpr std::size_t kMostSamples = 20000;

/// `bytes` is the size that NCCL's tests mean: the buffer (all_reduce, broadcast), the whole output (all_gather), the
/// whole input (reduce_scatter, all_to_all of one rank).
struct Options {
  std::string op = "all_reduce";
  std::vector<std::size_t> sizes = {8, 4096, 1 << 20, 25 << 20};
  std::string dtype = "float32";
  double seconds_per_size = 1;
  std::size_t min_iterations = 20;
  bool touch = false;
  std::size_t ranks = 2;           // only the bare loop starts its ranks itself
  std::string algorithm = "best";  // only the bare loop has several
};

[[noreturn]] inline void fail(const std::string& sentence) {
  std::fprintf(stderr, "bench: %s\n", sentence.c_str());
  std::exit(2);
}

template <typename Number>
Number number_of(std::string_view text, std::string_view option) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(std::string(option) + " wants a number, not '" + std::string(text) + "'");
  }
  return value;
}

/// A whole number that makes sense there.
template <typename Number>
Number number_in(std::string_view text, std::string_view option, Number least, Number most) {
  const auto value = number_of<Number>(text, option);
  if (value < least || value > most) {
    fail(std::string(option) + " wants a number from " + std::to_string(least) + " to " + std::to_string(most) +
         ", not '" + std::string(text) + "'");
  }
  return value;
}

/// More than that nobody waits for.
inline constexpr double kMostSeconds = 86400;

inline double seconds_of(std::string_view text, std::string_view option) {
  const auto value = number_of<double>(text, option);
  if (!(value > 0) || value > kMostSeconds) {  // also what is no number
    fail(std::string(option) + " wants seconds, more than 0 and up to a day, not '" + std::string(text) + "'");
  }
  return value;
}

/// "8", "4Ki", "25Mi", "1Gi".
inline std::size_t parse_size(std::string_view text) {
  std::size_t unit = 1;
  for (const auto& [suffix, factor] :
       {std::pair<std::string_view, std::size_t>{"Ki", 1UL << 10}, {"Mi", 1UL << 20}, {"Gi", 1UL << 30}}) {
    if (text.ends_with(suffix)) {
      unit = factor;
      text.remove_suffix(suffix.size());
      break;
    }
  }
  constexpr std::size_t kMost = std::size_t{1} << 40;
  return number_in<std::size_t>(text, "--sizes", 1, kMost / unit) * unit;
}

inline std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  while (true) {
    const auto comma = text.find(',');
    sizes.push_back(parse_size(text.substr(0, comma)));
    if (comma == std::string_view::npos) {
      return sizes;
    }
    text.remove_prefix(comma + 1);
  }
}

/// Ends the program with a sentence where an option is not known or has no value.
inline Options parse_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = words[i];
    if (i + 1 == count) {
      fail("option " + std::string(name) + " needs a value");
    }
    const std::string_view value = words[i + 1];
    if (name == "--op") {
      options.op = value;
    } else if (name == "--sizes") {
      options.sizes = parse_sizes(value);
    } else if (name == "--dtype") {
      options.dtype = value;
    } else if (name == "--seconds-per-size") {
      options.seconds_per_size = seconds_of(value, name);
    } else if (name == "--min-iterations") {
      options.min_iterations = number_in<std::size_t>(value, name, 1, kMostSamples);
    } else if (name == "--touch") {
      options.touch = value == "yes";
    } else if (name == "-n") {
      options.ranks = number_in<std::size_t>(value, name, 1, 4096);
    } else if (name == "--algorithm") {
      options.algorithm = value;
    } else {
      fail("no option '" + std::string(name) + "'");
    }
  }
  return options;
}

}  // namespace bench
