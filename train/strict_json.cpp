#include "train/strict_json.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tutti::train {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 32;
constexpr std::size_t kLongestWord = 40;

bool is_of_word(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         letter == '+' || letter == '-' || letter == '.';
}

/// The number or name around the parser's place, which is counted from 1 and may be just behind it.
std::string_view word_at(std::string_view text, std::size_t place) {
  auto begin = std::min(place, text.size());
  if (begin > 0 && !is_of_word(text[begin - 1])) {
    --begin;
  }
  auto end = begin;
  while (begin > 0 && is_of_word(text[begin - 1])) {
    --begin;
  }
  while (end < text.size() && is_of_word(text[end])) {
    ++end;
  }
  return text.substr(begin, end - begin);
}

/// What other writers of JSON put for a value that is none.
bool is_not_a_number(std::string_view word) {
  std::string name(word.substr(!word.empty() && (word[0] == '-' || word[0] == '+') ? 1 : 0));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return name == "nan" || name == "inf" || name == "infinity";
}

/// Follows the parser without building anything, and stops it at the first thing that must not be.
class Follower final : public nlohmann::json_sax<Json> {
 public:
  explicit Follower(std::string_view text) : text_(text) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(Json::number_integer_t) override { return true; }
  bool number_unsigned(Json::number_unsigned_t) override { return true; }
  bool number_float(Json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(std::string& name) override {
    key_ = name;
    return keys_.back().insert(name).second || stop(fmt::format("the key {} stands twice", shown(name)));
  }
  bool parse_error(std::size_t place, const std::string&, const Json::exception& error) override {
    constexpr int kNumberTooLarge = 406;  // the library's own
    const auto word = word_at(text_, place);
    if (error.id == kNumberTooLarge || is_not_a_number(word)) {
      const auto key = shown(key_);
      return stop(fmt::format("{} is {}, which is {}", key.substr(1, key.size() - 2), word.substr(0, kLongestWord),
                              is_not_a_number(word) ? "no number" : "too large a number"));
    }
    return stop(fmt::format("no JSON: byte {} makes no sense", place));
  }

  const std::string& why() const { return why_; }

 private:
  bool enter() {
    if (keys_.size() == kDeepest) {
      return stop(fmt::format("nested deeper than {}", kDeepest));
    }
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }
  bool stop(std::string why) {
    why_ = std::move(why);
    return false;
  }

  std::string_view text_;
  std::string key_;                          // the last one
  std::vector<std::set<std::string>> keys_;  // of every object that is open
  std::string why_;
};

}  // namespace

Result<Json> parse_strictly(std::string_view text) {
  Follower follower(text);
  if (!Json::sax_parse(text, &follower)) {
    return Error{Code::invalid_argument, follower.why().empty() ? "no JSON" : follower.why()};
  }
  auto value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return Error{Code::invalid_argument, "no JSON"};
  }
  return value;
}

std::string shown(const Json& value) {
  constexpr std::size_t kMost = 80;
  // ASCII alone: a cut between two bytes of a letter would leave half of it.
  const auto text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

}  // namespace tutti::train
