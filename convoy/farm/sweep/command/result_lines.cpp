// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/result_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/sweep/command/program_answer.h"
#include "convoy/farm/sweep/results/summary.h"
#include "convoy/farm/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kQuotes = "\"'`";
constexpr size_t kShownBytes = 200;

bool is_one_of(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

bool is_word_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

// The end of the terminal escape sequence that begins at `at`: ESC [ ... letter, ESC ] ... BEL or
// ESC \, ESC and one letter.
size_t escape_end(std::string_view line, size_t at) {
  if (at + 1 >= line.size()) return line.size();
  if (line[at + 1] == '[') {
    for (at += 2; at < line.size(); ++at)
      if (line[at] >= 0x40 && line[at] <= 0x7e) return at + 1;
    return line.size();
  }
  if (line[at + 1] != ']') return at + 2;
  for (at += 2; at < line.size(); ++at) {
    if (line[at] == '\a') return at + 1;
    if (line[at] == '\x1b') return std::min(at + 2, line.size());
  }
  return line.size();
}

std::string without_escapes(std::string_view line) {
  std::string text;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      at = escape_end(line, at);
      continue;
    }
    text += line[at++];
  }
  return text;
}

// An object in a line, from its opening brace to its closing brace.
struct Piece {
  std::string_view text;
  bool closed = false;
  bool enclosed = false;  // part of something larger: a list, another object's value
};

// True if a key of a larger object, such as "train":, comes just before the piece.
bool follows_a_key(std::string_view before) {
  before = trimmed(before, kBlanks);
  if (!before.ends_with(':')) return false;
  before = trimmed(before.substr(0, before.size() - 1), kBlanks);
  return !before.empty() && is_one_of(kQuotes, before.back());
}

std::vector<Piece> objects_in(std::string_view line) {
  std::vector<Piece> pieces;
  int open_lists = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (is_one_of("[(", line[at])) ++open_lists;
    if (is_one_of("])", line[at])) open_lists = std::max(0, open_lists - 1);
    if (line[at] != '{') continue;
    const size_t close = closing_brace(line, at);
    const bool closed = close != std::string_view::npos;
    const size_t end = closed ? close + 1 : line.size();
    pieces.push_back({.text = line.substr(at, end - at),
                      .closed = closed,
                      .enclosed = open_lists > 0 || follows_a_key(line.substr(0, at))});
    at = end - 1;
  }
  return pieces;
}

// The last word of a key: "loss" for "final.loss".
std::string_view last_word(std::string_view key) {
  const size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

// False if the line certainly does not contain the key. JSON may write any letter as \u0000, and a
// few letters with a backslash.
bool may_mention(std::string_view line, std::string_view key) {
  const std::string_view word = last_word(key);
  const bool may_be_escaped = word.find_first_of("\"\\/\b\f\n\r\t") != std::string_view::npos;
  return line.find(word) != std::string_view::npos ||
         line.find(may_be_escaped ? "\\" : "\\u") != std::string_view::npos;
}

// The text after the word if the word is a key: quoted or not, and followed by : or =, or by the
// end of a cut line. Nullopt if the word is no key.
std::optional<std::string_view> behind_key(std::string_view text, size_t at, size_t length) {
  std::string_view rest = text.substr(at + length);
  if (at > 0 && is_one_of(kQuotes, text[at - 1])) {
    if (rest.starts_with('\\')) rest.remove_prefix(1);
    if (rest.empty()) return rest;
    if (rest.front() != text[at - 1]) return std::nullopt;
    rest.remove_prefix(1);
  } else {
    const std::string_view before = trimmed(text.substr(0, at), kBlanks);
    if (before.empty() || !is_one_of("{,:", before.back())) return std::nullopt;
  }
  rest = trimmed(rest, kBlanks);
  if (rest.empty()) return rest;
  if (!is_one_of(":=", rest.front())) return std::nullopt;
  rest.remove_prefix(rest.starts_with("=>") ? 2 : 1);
  return trimmed(rest, kBlanks);
}

// The text after the last place where the word is a key.
std::optional<std::string_view> behind_word(std::string_view text, std::string_view word) {
  for (size_t at = text.rfind(word); at != std::string_view::npos && !word.empty();
       at = at == 0 ? std::string_view::npos : text.rfind(word, at - 1))
    if (const auto rest = behind_key(text, at, word.size())) return rest;
  return std::nullopt;
}

std::optional<std::string_view> behind_last_key(std::string_view text, std::string_view key) {
  if (const auto rest = behind_word(text, key)) return rest;
  const size_t dot = key.find('.');
  const bool may_hold =
      dot != std::string_view::npos && text.find(key.substr(0, dot)) != std::string_view::npos;
  return may_hold ? behind_word(text, last_word(key)) : std::nullopt;
}

// True if the text begins with a number that is not finite, as in `np.float64(nan), 'epoch': 2}`.
bool begins_not_finite(std::string_view text) {
  for (size_t open = text.find('('); open != std::string_view::npos; open = text.find('(')) {
    const std::string_view name = text.substr(0, open);
    const bool is_call = !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
      return is_word_letter(letter) || letter == '.';
    });
    if (is_not_finite(text.substr(0, text.find(')') + 1))) return true;
    if (!is_call) break;
    text.remove_prefix(open + 1);
  }
  while (!text.empty() && is_one_of("\"'\\ [", text.front())) text.remove_prefix(1);
  return is_not_finite(text.substr(0, text.find_first_of(",)}]\"'\\ \t;")));
}

constexpr std::string_view kMarks = "\"'`*";  // quotes, and the stars of Markdown

// The word of a number that the text may begin with: "0.4" of `0.4, epoch 2` and `tensor(0.4)`.
std::string_view number_word(std::string_view text) {
  while (!text.empty() && is_one_of("\"'`*\\ [", text.front())) text.remove_prefix(1);
  std::string_view word = text.substr(0, text.find_first_of(",)}]\"'`*\\ \t;|"));
  if (const size_t open = word.find('('); open != word.npos) word.remove_prefix(open + 1);
  if (word.starts_with('+')) word.remove_prefix(1);
  if (word.ends_with('.') || word.ends_with('%')) word.remove_suffix(1);
  return word;
}

// True if the text begins with a finite number.
bool begins_number(std::string_view text) { return text_as<double>(number_word(text)).has_value(); }

// True if that number is written with a point or an exponent: "loss 0.3" gives a value where
// "loss 3" may count something.
bool begins_fraction(std::string_view text) {
  const std::string_view word = number_word(text);
  return begins_number(text) && word.find_first_of(".e") != word.npos;
}

struct BehindName {
  std::string_view value;  // empty: the text after the name gives no value
  bool is_assigned = false;
};

// Finds the value that a text gives to the name before it: "nan" in ": nan", "=nan", " nan",
// " is nan" and "| nan".
BehindName behind_name(std::string_view text) {
  while (!text.empty() && is_one_of(kMarks, text.front())) text.remove_prefix(1);
  if (text.empty() || !is_one_of(" \t:=|", text.front())) return {};
  text = trimmed(text, kBlanks);
  const bool is_assigned = !text.empty() && is_one_of(":=", text.front());
  if (is_assigned) {
    while (!text.empty() && is_one_of(":=>*", text.front())) text.remove_prefix(1);
  } else {
    for (const std::string_view word : {"|", "is ", "was "})
      if (text.starts_with(word)) {
        text.remove_prefix(word.size());
        break;
      }
  }
  return {trimmed(text, kBlanks), is_assigned};
}

// The name that the word at `at` ends: "val" for "val loss". Empty if the word is a name by itself,
// as in "loss", "Epoch 2, loss" and "step=2 loss".
std::string_view name_before(std::string_view text, size_t at) {
  const std::string_view line = text.substr(0, at);
  const std::string_view before = trimmed(line, kBlanks);
  if (before.empty() || is_one_of(",;|([{", before.back())) return {};
  const size_t blank = before.find_last_of(kBlanks);
  const std::string_view word = blank == before.npos ? before : before.substr(blank + 1);
  if (before.size() == line.size()) return word;  // no blank before the word: "eval/loss"
  const bool ends_before =
      is_one_of(")]}:-.!", word.back()) || word.find_first_of("=0123456789") != word.npos;
  return ends_before ? std::string_view() : word;
}

bool is_listed(std::string_view names, std::string_view word) {
  return names.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

// True if a text without braces gives the key a value, as in "final loss: nan", "epoch=2 loss=0.4",
// "loss nan" and "| loss | nan |". Such a text is no result, and it shows that the value of the
// last object is an older one. Words before the key may make it another's name: "val loss" always,
// "aux loss" for a finite number. Upper and lower case are one here. Sets `not_finite`.
bool gives_value(std::string_view given, const std::string& given_key, bool& not_finite) {
  constexpr std::string_view kOtherData =
      " val valid validation eval evaluation test testing dev holdout ";
  constexpr std::string_view kSameValue =
      " the its final last total mean average avg overall current new latest best lowest min "
      "minimum end epoch step iter iteration running smoothed resulting result with and is ";
  const std::string line = lower_case(std::string(given));
  const std::string key = lower_case(given_key);
  const std::string_view text = line;
  for (size_t at = text.rfind(key); at != std::string_view::npos && !key.empty();
       at = at == 0 ? std::string_view::npos : text.rfind(key, at - 1)) {
    const auto [rest, is_assigned] = behind_name(text.substr(at + key.size()));
    if (rest.empty()) continue;
    size_t begin = at;
    while (begin > 0 && is_one_of(kMarks, text[begin - 1])) --begin;
    const std::string_view before = name_before(text, begin);
    const bool is_whole_word = before.empty() || is_one_of(kBlanks, text[begin - 1]);
    if (!is_whole_word || is_listed(kOtherData, before)) continue;
    not_finite = begins_not_finite(rest);
    if (not_finite) return true;
    const bool is_number = is_assigned ? begins_number(rest) : begins_fraction(rest);
    if (is_number && (before.empty() || is_listed(kSameValue, before))) return true;
  }
  return false;
}

// The text of a line around its objects.
std::vector<std::string_view> texts_around(std::string_view line,
                                           const std::vector<Piece>& pieces) {
  std::vector<std::string_view> texts;
  size_t begin = 0;
  for (const Piece& piece : pieces) {
    const auto at = static_cast<size_t>(piece.text.data() - line.data());
    texts.push_back(line.substr(begin, at - begin));
    begin = at + piece.text.size();
  }
  texts.push_back(line.substr(begin));
  return texts;
}

// The number that the key has deeper in an object, {"metrics": {"loss": 0.4}}; nullptr if there is
// none. A text, as in {"settings": {"loss": "mse"}}, is no number, but null and NaN stand for one.
const nlohmann::json* nested_number(const nlohmann::json& value, const std::string& key) {
  if (!value.is_structured()) return nullptr;
  for (const nlohmann::json& inner : value) {
    const nlohmann::json* const found = inner.is_object() ? find_key(inner, key) : nullptr;
    if (found != nullptr &&
        (found->is_number() || found->is_null() ||
         (found->is_string() && is_not_finite(found->get_ref<const std::string&>()))))
      return found;
    if (const nlohmann::json* const deeper = nested_number(inner, key)) return deeper;
  }
  return nullptr;
}

// True if the last object of the line was cut: it does not continue in the next line either, as an
// object that is printed over several lines would.
bool is_cut(const OutputLine& line, std::string_view text, const std::vector<Piece>& pieces) {
  if (pieces.empty() || pieces.back().closed) return false;
  if (!line.ended) return true;
  text = trimmed(text, kBlanks);
  return text.size() > 1 && text.front() == '{' && is_one_of(kQuotes, text[1]) &&
         !is_one_of(",{[(", text.back());
}

}  // namespace

KeyInLine key_in_line(const OutputLine& line, const std::string& key) {
  if (line.too_long) return {.held = line.text.find('{') != std::string_view::npos};
  const bool mentions = may_mention(line.text, key);
  const bool has_brace = line.text.find('{') != std::string_view::npos;
  const bool may_give_value = line.text.find_first_of(":=|") != std::string_view::npos;
  if (!mentions && !has_brace && !may_give_value) return {};
  const std::string text = without_escapes(line.text);
  const std::vector<Piece> pieces = objects_in(text);
  const auto unreadable = [](std::string_view rest) {
    return KeyInLine{.held = true, .not_finite = begins_not_finite(rest)};
  };
  if (mentions)
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      auto object = piece->closed ? json_line(piece->text) : std::nullopt;
      if (object && find_key(*object, key) == nullptr) {
        if (const nlohmann::json* const nested = nested_number(*object, key))
          return {.held = true, .not_finite = nested->is_string()};
        continue;
      }
      if (object && !piece->enclosed) return {.held = true, .object = std::move(object)};
      if (const auto rest = behind_last_key(piece->text, key)) return unreadable(*rest);
    }
  if (is_cut(line, text, pieces)) return {.held = true};
  // The line may be one of several lines of an object.
  const std::string_view words = trimmed(text, kBlanks);
  if (mentions && pieces.empty() && !words.empty() && is_one_of(kQuotes, words.front()))
    if (const auto rest = behind_last_key(words, key)) return unreadable(*rest);
  for (const std::string_view around : texts_around(text, pieces)) {
    bool not_finite = false;
    if (gives_value(around, key, not_finite))
      return {.held = true, .not_finite = not_finite, .without_object = true};
  }
  // {"Loss": NaN}: the key in other letters is no result, but it shows that the run has diverged.
  for (const Piece& piece : pieces) {
    bool not_finite = false;
    if (!piece.enclosed && gives_value(piece.text, key, not_finite) && not_finite)
      return {.held = true, .not_finite = true, .without_object = true};
  }
  return {};
}

void ResultLines::take(const OutputLine& line) {
  const std::string_view words = trimmed(line.text, kBlanks);
  if (words.empty()) return;
  last_line_ = words.substr(0, kShownBytes);
  for (auto& [key, last] : last_) {
    const KeyInLine found = key_in_line(line, key);
    if (!found.held || (found.without_object && last.text.empty())) continue;
    last = {.text = last_line_, .too_long = line.too_long, .not_finite = found.not_finite};
    if (found.object) last.value = *find_key(*found.object, key);
  }
}

double ResultLines::value(const std::string& key) const {
  const Last& last = last_.at(key);
  if (last.value) return number_of(*last.value, key);
  jobs::Failure failure;
  failure.kind = "output";
  if (last.text.empty()) {
    failure.message =
        fmt::format("no line of stdout is a JSON object with `{}`; {}", key,
                    last_line_.empty() ? "it is empty"
                                       : fmt::format("its last is `{}`", escaped_line(last_line_)));
  } else if (last.too_long) {
    failure.message = fmt::format(
        "a line of stdout that may hold `{}` is too long to be kept; it begins with `{}`", key,
        escaped_line(last.text));
  } else {
    if (last.not_finite) failure.kind = "non_finite";
    failure.message = fmt::format(
        "the last line of stdout with `{}` {}: `{}`; wanted a JSON object on one line", key,
        last.not_finite ? "has no finite number" : "cannot be read", escaped_line(last.text));
  }
  throw TaskFailure(std::move(failure));
}

}  // namespace convoy::sweep
