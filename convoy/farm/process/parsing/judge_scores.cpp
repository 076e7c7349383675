// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/judge_scores.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/core/base/lower_case.h"

namespace convoy::process {
namespace {

bool is_letter(char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0; }
bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

// Marks that a reply puts around names and numbers.
constexpr std::string_view kMarks = " \t*_`\"'[({|~=$#>\\";

std::string_view skip(std::string_view text, std::string_view letters) {
  const size_t first = text.find_first_not_of(letters);
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

// Skips a label before a number, such as "score" or "rating".
std::string_view skip_label(std::string_view text) {
  for (const std::string_view label : {"score", "rating", "value"}) {
    if (text.size() <= label.size()) continue;
    bool equal = true;
    for (size_t at = 0; at < label.size(); ++at) equal = equal && lower_case(text[at]) == label[at];
    if (!equal || is_letter(text[label.size()])) continue;
    const std::string_view rest = skip(text.substr(label.size()), kMarks);
    return rest.starts_with(':') ? skip(rest.substr(1), kMarks) : rest;
  }
  return text;
}

// A number without sign or exponent. Moves `text` to the character after it.
std::optional<double> take_number(std::string_view& text) {
  size_t end = 0;
  int dots = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) {
    // A dot that ends the sentence does not belong to the number.
    if (text[end] == '.' && (end + 1 == text.size() || !is_digit(text[end + 1]))) break;
    dots += text[end++] == '.';
  }
  double value = 0;
  if (end == 0 || dots > 1) return std::nullopt;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + end, value);
  if (failure != std::errc() || stop != text.data() + end) return std::nullopt;
  text.remove_prefix(end);
  return value;
}

// The scale that follows a number in a reply, if there is one.
std::optional<double> take_scale(std::string_view& text) {
  std::string_view rest = skip(text, " \t");
  if (rest.starts_with("\\%")) rest.remove_prefix(1);
  if (rest.starts_with('%')) {
    text = rest.substr(1);
    return 100;
  }
  for (const std::string_view word : {"/", "out of ", "of "}) {
    if (!rest.starts_with(word)) continue;
    std::string_view behind = skip(rest.substr(word.size()), " \t");
    const std::optional<double> whole = take_number(behind);
    if (!whole) return word == "/" ? std::optional<double>(0) : std::nullopt;
    text = behind;
    return whole;
  }
  return std::nullopt;
}

// True if a number that ends before `rest` is a part of something else: a range, a decimal comma, a
// unit, an exponent, a second dot.
bool goes_on(std::string_view rest) {
  if (rest.empty()) return false;
  if (is_letter(rest[0]) || is_digit(rest[0]) || rest[0] == '/') return true;
  if (rest.size() > 1 && (rest[0] == '.' || rest[0] == ',') && is_digit(rest[1])) return true;
  const std::string_view behind = skip(rest, " \t");
  for (const std::string_view dash : {"-", "\u2013", "to "})
    if (behind.starts_with(dash)) {
      const std::string_view next = skip(behind.substr(dash.size()), " \t");
      if (!next.empty() && is_digit(next[0])) return true;
    }
  return false;
}

// The position after the name of a criterion in `line`; its words may be separated by any of " -_".
// npos = not found.
size_t end_of_name(std::string_view line, std::string_view name, size_t from) {
  for (size_t begin = from; begin < line.size(); ++begin) {
    if (begin > 0 && is_letter(line[begin - 1])) continue;
    size_t at = begin;
    size_t letter = 0;
    for (; letter < name.size() && at < line.size(); ++letter, ++at) {
      const bool gap = line[at] == ' ' || line[at] == '-' || line[at] == '_';
      if (name[letter] == '_' ? !gap : lower_case(line[at]) != lower_case(name[letter])) break;
    }
    if (letter == name.size() && (at == line.size() || !is_letter(line[at]))) return at;
  }
  return std::string_view::npos;
}

// The text after a name and its separator, which is ":", "=", "|" or a dash. Empty if the line ends
// after the name; nullopt if other text follows the name.
std::optional<std::string_view> behind_separator(std::string_view rest) {
  rest = skip(rest, " \t*_`\"'#");
  if (rest.starts_with('(')) {  // "(weight 0.4)"
    const size_t close = rest.find(')');
    if (close == std::string_view::npos) return std::nullopt;
    rest = skip(rest.substr(close + 1), " \t*_`\"'");
  }
  for (const std::string_view separator : {":", "=", "|", "- ", "\u2013", "\u2014"})
    if (rest.starts_with(separator)) return rest.substr(separator.size());
  if (rest.empty()) return rest;
  return std::nullopt;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!skip(line, " \t").empty()) lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

std::optional<double> score_of(const std::vector<std::string_view>& lines, std::string_view name) {
  for (size_t number = 0; number < lines.size(); ++number) {
    const std::string_view line = lines[number];
    for (size_t end = end_of_name(line, name, 0); end != std::string_view::npos;
         end = end_of_name(line, name, end)) {
      const std::optional<std::string_view> text = behind_separator(line.substr(end));
      if (!text) continue;
      if (!skip(*text, kMarks).empty()) return read_score(*text);
      // The line is a heading, and its score is at the start of the next line.
      if (number + 1 < lines.size())
        if (const auto score = read_score(skip(lines[number + 1], "- \t"))) return score;
    }
  }
  return std::nullopt;
}

// `score_of(criterion)`: the score of one criterion.
template <class ScoreOf>
JudgeScores weighed(const std::map<std::string, double>& weights, const ScoreOf& score_of) {
  JudgeScores scores;
  double sum = 0;
  bool whole = true;
  for (const auto& [name, weight] : weights) {
    const std::optional<double> score = score_of(name);
    scores.criteria[name] = score;
    whole = whole && score.has_value();
    sum += weight * score.value_or(0);
  }
  // Weights such as 0.2 are not exact in binary, so the sum is rounded: four criteria with a score
  // of 0.8 must give 0.8.
  if (whole) scores.score = std::round(sum * 1e9) / 1e9;
  return scores;
}

std::optional<double> member_score(const nlohmann::json& reply, const std::string& name) {
  if (!reply.is_object() || !reply.contains(name)) return std::nullopt;
  const nlohmann::json& value = reply[name];
  if (value.is_string()) return read_score(value.get<std::string>());
  if (!value.is_number()) return std::nullopt;
  const double score = value.get<double>();
  return score >= 0 && score <= 1 ? std::optional(score) : std::nullopt;
}

}  // namespace

std::optional<double> read_score(std::string_view text) {
  text = skip(skip_label(skip(text, kMarks)), kMarks);
  std::optional<double> value = take_number(text);
  if (!value) return std::nullopt;
  if (const std::optional<double> whole = take_scale(text)) {
    if (*whole <= 0) return std::nullopt;
    *value /= *whole;
  }
  if (goes_on(text) || *value > 1) return std::nullopt;
  return value;
}

JudgeScores read_judge_scores(std::string_view reply,
                              const std::map<std::string, double>& weights) {
  const std::vector<std::string_view> lines = lines_of(reply);
  return weighed(weights, [&lines](const std::string& name) { return score_of(lines, name); });
}

JudgeScores read_json_scores(std::string_view reply, const std::map<std::string, double>& weights) {
  const nlohmann::json read = nlohmann::json::parse(reply, nullptr, false);
  return weighed(weights, [&read](const std::string& name) { return member_score(read, name); });
}

}  // namespace convoy::process
