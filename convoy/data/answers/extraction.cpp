// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/extraction.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "convoy/data/answers/announcements.h"
#include "convoy/data/answers/formulas.h"
#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/narrow.h"
#include "convoy/data/answers/options.h"

namespace convoy::answers {
namespace {

constexpr size_t kLongestBare = 400;    // bytes; a longer text is not an answer as a whole
constexpr size_t kLongestBetween = 70;  // bytes of text between two boxes of one answer
constexpr size_t kMostBareWords = 6;
constexpr size_t kMostWordsOfModel = 3;  // words beside formulas; more are prose

// The text behind the last <think> block; an unclosed block hides everything behind it.
std::string_view without_thoughts(std::string_view text) {
  constexpr std::string_view kClose = "</think>";
  if (const size_t at = text.rfind(kClose); at != std::string_view::npos)
    text.remove_prefix(at + kClose.size());
  return text.substr(0, text.find("<think>"));
}

struct Box {
  size_t begin;          // position of the backslash
  size_t content_begin;  // position behind the opening brace
  size_t content_end;
  size_t end;
};

// End of the content of a \boxed without braces: "\\boxed 5". Returns `from` when the text only
// mentions the command: "I used \\boxed as you asked".
size_t unbraced_end(std::string_view text, size_t behind, size_t from) {
  if (from == text.size() || is_letter(text[behind])) return from;
  size_t end = from;
  while (end < text.size() && !is_space(text[end]) && text[end] != '$') ++end;
  const std::string_view content = text.substr(from, end - from);
  const bool is_number = std::any_of(content.begin(), content.end(), is_digit);
  const bool is_symbol =
      is_letter(content.front()) && content.size() == 1 && (end == text.size() || text[end] == '$');
  const bool is_command = content.size() > 1 && content[0] == '\\' && is_letter(content[1]);
  return is_number || is_symbol || is_command ? end : from;
}

// True for the content of a box that repeats the instructions: "\\boxed{}", "\\boxed{...}".
bool is_placeholder(std::string_view content) {
  for (const std::string_view none :
       {"", "...", "\\ldots", "\\dots", "\\cdots", "\xe2\x80\xa6", "\\cdot", "\\,", "\\ ", "?",
        "answer", "your answer", "\\text{answer}", "\\text{your answer}", "\\text{}"})
    if (content == none) return true;
  return false;
}

// The boxes with a closing brace, in the order in which they begin.
std::vector<Box> closed_boxes(std::string_view text) {
  std::vector<Box> boxes;
  std::vector<std::optional<size_t>> open;  // by open brace: the box that it opened, if any
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      size_t behind = 0;
      for (const std::string_view name : {"\\boxed", "\\fbox"})
        if (starts_at(text, at, name)) behind = at + name.size();
      if (behind == 0) {
        // A backslash escapes the next character: \{. The first backslash of a doubly escaped
        // command (\\frac) does not escape the second.
        if (!starts_at(text, at + 1, "\\")) ++at;
        continue;
      }
      size_t brace = behind;
      while (brace < text.size() && is_space(text[brace])) ++brace;
      if (brace < text.size() && text[brace] == '{') {
        boxes.push_back({at, brace + 1, 0, 0});
        open.push_back(boxes.size() - 1);
        at = brace;
      } else if (const size_t end = unbraced_end(text, behind, brace); end > brace) {
        boxes.push_back({at, brace, end, end});
        at = end - 1;
      }
    } else if (text[at] == '{') {
      open.push_back(std::nullopt);
    } else if (text[at] == '}' && !open.empty()) {
      if (open.back()) {
        boxes[*open.back()].content_end = at;
        boxes[*open.back()].end = at + 1;
      }
      open.pop_back();
    }
  }
  std::erase_if(boxes, [text](const Box& box) {
    return box.end == 0 || is_placeholder(trimmed(text.substr(
                               box.content_begin, box.content_end - box.content_begin)));
  });
  return boxes;
}

// The length of an "x =" or "\text{width}: " at the front; a name is one word.
size_t name_length(std::string_view text) {
  constexpr size_t kLongestName = 12;
  size_t at = 0;
  while (at < text.size() && at <= kLongestName &&
         (is_letter(text[at]) || is_digit(text[at]) ||
          std::string_view("_{}\\'()").find(text[at]) != std::string_view::npos))
    ++at;
  if (at == 0 || at > kLongestName) return 0;
  while (at < text.size() && is_space(text[at])) ++at;
  return at < text.size() && text[at] == '=' ? at + 1 : 0;
}

// True when two boxes with this text between them are parts of one answer: only commas, "and", "or"
// and names join them. A full stop or any other word begins another attempt.
bool joins(std::string_view between) {
  static constexpr std::string_view kPasses[] = {
      "$",   "\\(", "\\)", "\\[",  "\\]", "\\quad", "\\qquad", "\\text", "{",   "}",
      "\\ ", "\\,", "\\;", "\\\\", "~",   "&",      ",",       ";",      "and", "or"};
  if (between.size() >= kLongestBetween) return false;
  if (trimmed(between).empty()) return between.find('\n') == std::string_view::npos;
  for (std::string_view rest = trimmed(between); !rest.empty(); rest = trimmed(rest)) {
    size_t length = name_length(rest);
    for (const std::string_view pass : kPasses)
      if (length == 0 && rest.starts_with(pass) &&
          (!is_letter(pass.back()) || rest.size() == pass.size() || !is_letter(rest[pass.size()])))
        length = pass.size();
    if (length == 0) return false;
    rest.remove_prefix(length);
  }
  return true;
}

std::string boxed_answer(std::string_view text) {
  const std::vector<Box> boxes = closed_boxes(text);
  if (boxes.empty()) return {};
  const auto content = [&](const Box& box) {
    return trimmed(text.substr(box.content_begin, box.content_end - box.content_begin));
  };
  std::vector<std::string_view> parts = {content(boxes.back())};
  for (size_t index = boxes.size() - 1; index > 0; --index) {
    const Box& before = boxes[index - 1];
    const Box& box = boxes[index];
    if (before.end > box.begin || !joins(text.substr(before.end, box.begin - before.end))) break;
    if (content(before) != parts.back()) parts.push_back(content(before));
  }
  std::string answer;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!answer.empty()) answer += ", ";
    answer += *part;
  }
  // A unit may stand outside the box: \boxed{28} percent.
  const std::string_view behind = trimmed(text.substr(boxes.back().end));
  std::string_view rest = behind;
  while (!rest.empty() &&
         (rest.front() == '$' || is_space(rest.front()) || starts_at(rest, 0, "\\)")))
    rest.remove_prefix(rest.front() == '\\' ? 2 : 1);
  for (const std::string_view percent : {"\\%", "%", "percent", "pct"})
    if (rest.starts_with(percent)) answer += "\\%";
  return answer;
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// The text behind GSM8K's mark "####". A Markdown heading of level four is not such a mark.
std::string hashed_answer(std::string_view text) {
  const size_t at = text.rfind("####");
  if (at == std::string_view::npos) return {};
  return std::string(trimmed(first_line(text.substr(at + 4))));
}

bool has_mathematics(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_digit) ||
         text.find('$') != std::string_view::npos || text.find("\\(") != std::string_view::npos ||
         text.find("\\[") != std::string_view::npos;
}

bool is_bare(std::string_view text, Author author) {
  if (text.size() > kLongestBare) return false;
  // A bare answer is one sentence: "x = 5. So y = 6" is prose.
  const std::string_view head = sentence(text);
  if (trimmed(text.substr(head.size())).size() > 1) return false;
  const size_t words = words_around_formulas(text);
  if (author == Author::Reference) return words <= kMostBareWords;
  return words <= (has_mathematics(text) ? kMostWordsOfModel : kMostBareWords);
}

// The text behind the last verb of a sentence: 34 of "The largest n is 34".
std::string_view behind_verb(std::string_view text) {
  size_t behind = 0;
  for (const std::string_view verb : {" is ", " are ", " equals ", " be "})
    if (const size_t at = text.rfind(verb); at != std::string_view::npos)
      behind = std::max(behind, at + verb.size());
  return behind == 0 ? std::string_view() : trimmed(text.substr(behind));
}

// The formula at the end of a sentence, when only words precede it: A of "The matrix is $A$", but
// nothing of "$5$ miles".
std::string closing_formulas(std::string_view text) {
  const std::vector<Formula> all = formulas(text);
  if (all.empty() || plain_words(text.substr(0, all.back().begin)) == 0) return {};
  for (const char letter : text.substr(all.back().end))
    if (!is_space(letter) && letter != '.' && letter != '*') return {};
  return joined_to(text, all, all.size() - 1);
}

// The content of a box without a closing brace, as in a text that was cut.
std::string open_box(std::string_view text) {
  const size_t at = text.rfind("\\boxed{");
  return at == std::string_view::npos ? std::string()
                                      : std::string(trimmed(first_line(text.substr(at + 7))));
}

// The text without Markdown's marks for bold: "are **9** ways". The operators of 2**3 and a ** b
// stay.
std::string without_bold(std::string_view text) {
  std::string plain;
  bool open = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (starts_at(text, at, "**")) {
      const char before = at == 0 ? ' ' : text[at - 1];
      const char behind = at + 2 < text.size() ? text[at + 2] : ' ';
      const bool opens = !open && !is_space(behind) && !is_letter(before) && !is_digit(before) &&
                         before != ')' && before != '}';
      const bool closes = open && !is_space(before) && !is_letter(behind) && !is_digit(behind);
      if (opens || closes) {
        open = opens;
        ++at;
        continue;
      }
    }
    plain += text[at];
  }
  return plain;
}

// The answer up to the first comma behind which a clause in words begins: "72 apples" of "72
// apples, out of 100".
std::string_view without_clause(std::string_view answer) {
  if (answer.size() > kLongestBare) return answer;
  for (size_t at = answer.find(", "); at != std::string_view::npos;
       at = answer.find(", ", at + 1)) {
    const std::string_view rest = trimmed(answer.substr(at + 1));
    size_t word = 0;
    while (word < rest.size() && is_letter(rest[word])) ++word;
    size_t next = word;
    while (next < rest.size() && is_space(rest[next])) ++next;
    const std::string_view first = rest.substr(0, word);
    const bool prose = word >= 2 && next > word && first != "and" && first != "or" &&
                       next < rest.size() && is_letter(rest[next]);
    if (prose && has_mathematics(answer.substr(0, at)) && formulas(answer.substr(at)).empty())
      return answer.substr(0, at);
  }
  return answer;
}

// The first number and the text behind it: "36 minutes" of "It takes 36 minutes". Empty when
// another number follows, or something other than words precedes.
std::string_view behind_prose(std::string_view answer) {
  const size_t digit =
      static_cast<size_t>(std::find_if(answer.begin(), answer.end(), is_digit) - answer.begin());
  if (digit == answer.size() || answer.find_first_of("=<>\\^_") < digit) return {};
  if (plain_words(answer.substr(0, digit)) < 2) return {};
  size_t end = digit;
  while (end < answer.size() && is_number_letter(answer[end])) ++end;
  if (std::any_of(answer.begin() + static_cast<std::ptrdiff_t>(end), answer.end(), is_digit))
    return {};
  size_t begin = digit;
  while (begin > 0 && !is_space(answer[begin - 1])) --begin;
  // A single dollar sign is a currency ("$36"); two enclose a formula ("$36$").
  if (std::count(answer.begin(), answer.end(), '$') > 1) return {};
  return answer.substr(begin);
}

// The announced answer without surrounding prose.
std::string without_prose(std::string_view answer, Author author) {
  if (author == Author::Model) {
    answer = without_clause(without_reason(without_remark(answer)));
    if (const size_t label = option_length(answer);
        label > 0 && !is_bare(trimmed(answer.substr(label)), author))
      return std::string(trimmed(answer.substr(0, label)));
  }
  const std::string_view rest = behind_verb(answer);
  // The sentence begins with its answer: "x < 5 is the solution".
  if (!rest.empty() && is_bare(rest, author) && (has_mathematics(rest) || !has_mathematics(answer)))
    return std::string(rest);
  if (std::string formula = closing_formulas(answer); author == Author::Model && !formula.empty())
    return formula;
  if (const std::string_view number = behind_prose(answer);
      author == Author::Model && !number.empty() && is_bare(number, author))
    return std::string(number);
  if (is_bare(answer, author)) return std::string(answer);
  std::string found = last_mathematics(answer);
  return found.empty() && author == Author::Reference ? std::string(answer) : found;
}

// True for a reference that marks a question without an answer: NuminaMath writes "proof" or
// "notfound", sometimes in a box or a formula.
bool stands_for_none(std::string_view reference) {
  const std::string low = lowered(trimmed(reference));
  if (low == "n/a") return true;
  std::string letters;
  for (const char letter : low) {
    if (is_digit(letter)) return false;
    if (letter >= 'a' && letter <= 'z') letters.push_back(letter);
  }
  for (const std::string_view around : {"boxed", "text", "mathrm"})
    if (letters.starts_with(around)) letters.erase(0, around.size());
  return letters == "proof" || letters == "notfound" || letters == "noanswer";
}

// From the first digit to the last; the whole answer when it has none.
std::string_view numeric_part(std::string_view answer) {
  const auto first = std::find_if(answer.begin(), answer.end(), is_digit);
  if (first == answer.end()) return answer;
  const auto behind = std::find_if(answer.rbegin(), answer.rend(), is_digit).base();
  return answer.substr(static_cast<size_t>(first - answer.begin()),
                       static_cast<size_t>(behind - first));
}

// The last place of `number` from `from` on that is not a part of a longer number or word.
size_t last_place(std::string_view text, std::string_view number, size_t from) {
  const auto continues = [](char a, char b) {
    return (is_digit(a) && is_digit(b)) || (is_letter(a) && is_letter(b));
  };
  for (size_t at = text.rfind(number); at != std::string_view::npos && at >= from;
       at = at == 0 ? std::string_view::npos : text.rfind(number, at - 1)) {
    const size_t end = at + number.size();
    if ((at == 0 || !continues(text[at - 1], text[at])) &&
        (end == text.size() || !continues(text[end - 1], text[end])))
      return at;
  }
  return std::string_view::npos;
}

// The sentence that holds the text from `begin` to `end`, in its parts before and behind it.
NumberContext sentence_around(std::string_view text, size_t begin, size_t end) {
  size_t start = begin;
  const auto ends = [text](size_t at) {
    return text[at] == '\n' || (is_space(text[at]) && at > 0 && text[at - 1] == '.') ||
           text[at] == '?' || text[at] == '!';
  };
  while (start > 0 && !ends(start - 1)) --start;
  return {std::string(text.substr(start, begin - start)), std::string(sentence(text.substr(end)))};
}

std::string find_answer(std::string_view text, Author author) {
  const std::string plain = without_bold(trimmed(without_thoughts(narrowed(text))));
  text = trimmed(plain);
  if (std::string answer = boxed_answer(text); !answer.empty()) return answer;
  if (const std::string answer = hashed_answer(text); !answer.empty())
    return without_prose(answer, author);
  if (const std::string announced = announced_answer(text); !announced.empty())
    if (std::string answer = without_prose(announced, author); !answer.empty()) return answer;
  if (std::string answer = open_box(text); !answer.empty()) return answer;
  if (is_bare(text, author)) return without_prose(trimmed(sentence(text)), author);
  // The answer stands before a reason: "The sum is 42 because B has 6 elements."
  const std::string_view reasonless = without_reason(sentence(text));
  if (author == Author::Model && reasonless.size() < sentence(text).size() &&
      sentence(text).size() + 1 >= text.size() && has_mathematics(reasonless))
    return without_prose(reasonless, author);
  if (author == Author::Model)
    if (std::string option = option_told(text, true); !option.empty()) return option;
  std::string found = last_mathematics(text);
  return found.empty() && author == Author::Reference ? std::string(text.substr(0, kLongestBare))
                                                      : found;
}

}  // namespace

std::string extract_answer(std::string_view text, Author author) {
  std::string answer = find_answer(text, author);
  if (author == Author::Reference && stands_for_none(answer)) return {};
  return answer;
}

NumberContext number_context(std::string_view text, std::string_view answer) {
  const std::string plain = without_bold(trimmed(without_thoughts(narrowed(text))));
  const std::string_view number = numeric_part(answer);
  if (number.empty()) return {};
  const bool is_boxed = !boxed_answer(plain).empty();
  if (is_boxed) {
    const size_t at = answer.find(number);
    return {std::string(answer.substr(0, at)), std::string(answer.substr(at + number.size()))};
  }
  const std::string hashed = hashed_answer(plain);
  const std::string announced = hashed.empty() ? announced_answer(plain) : hashed;
  if (announced.empty() && !is_digit(number.front())) return {};
  const size_t from = announced.empty() ? 0 : plain.rfind(announced);
  if (from == std::string::npos) return {};
  const std::string_view until =
      std::string_view(plain).substr(0, announced.empty() ? plain.size() : from + announced.size());
  const size_t at = last_place(until, number, from);
  if (at == std::string_view::npos) return {};
  return sentence_around(plain, at, at + number.size());
}

bool marks_answer(std::string_view text) {
  const std::string plain = without_bold(trimmed(without_thoughts(narrowed(text))));
  return !boxed_answer(plain).empty() || !hashed_answer(plain).empty() ||
         !announced_answer(plain).empty();
}

}  // namespace convoy::answers
