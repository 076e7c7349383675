// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/message_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/text_as.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

// Private-use characters. A mark is such a character, the number of the text, and the character
// again.
constexpr std::string_view kOpening = "\xEE\x80\x9A";
constexpr std::string_view kClosing = "\xEE\x80\x9B";
// Name of an additional member of each part, with the number of its message behind it. Only a
// template that prints the list as data writes this member. The name has plain letters, which no
// notation escapes; a filter may change their case.
constexpr std::string_view kMember = "convoypart";
constexpr std::string_view kTextBlanks = " \t\r\n";

enum class Sides { Both, End, Begin };

constexpr auto kReplaceDamage = ordered_json::error_handler_t::replace;

// Letters of a text in lower case, without white space: templates may strip white space and change
// case.
std::string letters_of(std::string_view text) {
  std::string kept = lower_case(std::string(text));
  std::erase_if(kept,
                [](char letter) { return kTextBlanks.find(letter) != std::string_view::npos; });
  return kept;
}

// The text as Jinja's filter urlencode writes it, without surrounding white space.
std::string url_encoded(std::string_view text) {
  const size_t first = text.find_first_not_of(kTextBlanks);
  if (first == std::string_view::npos) return "";
  std::string encoded;
  for (const char letter : text.substr(first, text.find_last_not_of(kTextBlanks) + 1 - first)) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain =
        byte < 128 && (std::isalnum(byte) != 0 ||
                       std::string_view("-._~/").find(letter) != std::string_view::npos);
    if (is_plain)
      encoded += letter;
    else
      encoded += fmt::format("%{:02X}", byte);
  }
  return encoded;
}

std::string text_mark(std::string_view letter, size_t number) {
  return fmt::format("{}{}{}", letter, number, letter);
}

// A conversation with marks around its texts, and the message of each text.
class MarkedTexts {
 public:
  // `only`: the number of the only text to mark; without it all texts are marked.
  MarkedTexts(const ordered_json& messages, Sides sides, std::optional<size_t> only)
      : messages_(messages), sides_(sides), only_(only) {
    for (size_t message = 0; message < messages_.size(); ++message) {
      if (!messages_[message].is_object() || !messages_[message].contains("content")) continue;
      ordered_json& content = messages_[message]["content"];
      if (content.is_string()) put(content, message);
      if (!content.is_array()) continue;
      for (ordered_json& part : content)
        if (part.is_object() && part.contains("text") && part["text"].is_string() &&
            put(part["text"], message))
          part[fmt::format("{}{}", kMember, message)] = true;
    }
  }

  const ordered_json& messages() const { return messages_; }
  const std::vector<size_t>& owners() const { return owners_; }
  const std::string& text() const { return text_; }  // the marked text; of several the last one

 private:
  // Puts the marks inside the surrounding white space, because templates strip it. Returns true
  // when the text was marked.
  bool put(ordered_json& text, size_t message) {
    const auto& plain = text.get_ref<const std::string&>();
    const size_t first = plain.find_first_not_of(kTextBlanks);
    if (first == std::string::npos) return false;
    const size_t number = owners_.size();
    owners_.push_back(message);
    if (only_ && *only_ != number) return false;
    const size_t last = plain.find_last_not_of(kTextBlanks) + 1;
    text_ = plain.substr(first, last - first);
    std::string marked = plain.substr(0, first);
    if (sides_ != Sides::End) marked += text_mark(kOpening, number);
    marked += plain.substr(first, last - first);
    if (sides_ != Sides::Begin) marked += text_mark(kClosing, number);
    text = marked + plain.substr(last);
    return true;
  }

  ordered_json messages_;
  Sides sides_;
  std::optional<size_t> only_;
  std::vector<size_t> owners_;
  std::string text_;
};

struct ReadMarks {
  std::string text;  // the written text without the marks
  std::vector<TextMark> marks;
  std::vector<bool> is_written;  // by number of the text
};

// Removes the marks from the rendered text. Empty when a mark is broken.
std::optional<ReadMarks> read_marks(const std::string& marked, const std::vector<size_t>& owners) {
  ReadMarks read{.text = {}, .marks = {}, .is_written = std::vector<bool>(owners.size())};
  std::string_view rest = marked;
  while (true) {
    const size_t at = std::min(rest.find(kOpening), rest.find(kClosing));
    read.text += rest.substr(0, at);
    if (at == std::string_view::npos) return read;
    const std::string_view letter = rest.substr(at, kOpening.size());
    rest.remove_prefix(at + letter.size());
    const size_t close = rest.find(letter);
    const auto number = text_as<size_t>(rest.substr(0, close));
    if (close == std::string_view::npos || !number || *number >= owners.size()) return std::nullopt;
    read.marks.push_back({owners[*number], *number, read.text.size(), letter == kOpening});
    read.is_written[*number] = true;
    rest.remove_prefix(close + letter.size());
  }
}

std::optional<size_t> printed_message(const std::string& marked) {
  const std::string text = lower_case(marked);
  const size_t at = text.find(kMember);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(at + kMember.size());
  return text_as<size_t>(rest.substr(0, rest.find_first_not_of("0123456789")));
}

// Finds the texts of one conversation.
class TextFinder {
 public:
  TextFinder(const RenderTexts& render, const ordered_json& messages, const std::string& full)
      : render_(render), messages_(messages), full_(full) {}

  MessageTexts find() {
    const MarkedTexts all(messages_, Sides::Both, std::nullopt);
    if (all.owners().empty()) return found_;
    const auto read = render(all);
    if (read && read->text == full_) {
      found_.marks = read->marks;
      for (size_t text = 0; text < all.owners().size(); ++text)
        if (!read->is_written[text] && !found_.unwritten) found_.unwritten = all.owners()[text];
      return found_;
    }
    found_.exact = false;
    if (found_.printed) return found_;
    for (size_t text = 0; text < all.owners().size(); ++text)
      if (!is_written(text) && !found_.unwritten) found_.unwritten = all.owners()[text];
    const auto place = [](const TextMark& mark) { return mark.position; };
    std::ranges::stable_sort(found_.marks, {}, place);
    return found_;
  }

 private:
  // The marks in the rendered conversation. Empty when the template refuses the marks, or breaks
  // one.
  std::optional<ReadMarks> render(const MarkedTexts& marked) {
    try {
      const std::string text = render_(marked.messages());
      if (!found_.printed) found_.printed = printed_message(text);
      return read_marks(text, marked.owners());
    } catch (const DataError&) {
      is_refused_ = true;
      return std::nullopt;
    }
  }

  // True when the rendered conversation holds the longest word of the text. A text that is written
  // in another form, such as an escaped one, keeps its plain words.
  bool holds_word_of(size_t text) const {
    const std::string plain = MarkedTexts(messages_, Sides::Both, text).text();
    std::string_view longest;
    for (size_t at = 0; at < plain.size();) {
      const auto is_letter = [&](size_t place) {
        return std::isalnum(static_cast<unsigned char>(plain[place])) != 0;
      };
      size_t end = at;
      while (end < plain.size() && is_letter(end)) ++end;
      if (end - at > longest.size()) longest = std::string_view(plain).substr(at, end - at);
      at = end + 1;
    }
    return longest.empty() || full_.find(longest) != std::string::npos;
  }

  // True when the template writes the text. If marks change the output, the text has an effect, but
  // its place stays unknown. A template that iterates over a text as over a list of parts writes
  // something for each letter.
  bool is_written(size_t text) {
    bool counts = false;
    for (const Sides sides : {Sides::Both, Sides::End, Sides::Begin}) {
      is_refused_ = false;
      const auto read = render(MarkedTexts(messages_, sides, text));
      if (!read || read->text != full_) {
        const bool is_marked = read && read->is_written[text];
        counts = counts || is_marked || is_refused_ || holds_word_of(text);
        continue;
      }
      found_.marks.insert(found_.marks.end(), read->marks.begin(), read->marks.end());
      if (read->is_written[text]) return true;
      if (sides == Sides::Both) return false;
    }
    return counts;
  }

  const RenderTexts& render_;
  const ordered_json& messages_;
  const std::string& full_;
  bool is_refused_ = false;  // true: the template refused the last rendering
  MessageTexts found_;
};

}  // namespace

MessageTexts find_message_texts(const RenderTexts& render, const ordered_json& messages,
                                const std::string& full) {
  const bool holds_marks =
      std::ranges::any_of(std::initializer_list<std::string_view>{kOpening, kClosing, kMember},
                          [&](std::string_view word) { return full.find(word) != full.npos; });
  if (holds_marks) return {.marks = {}, .exact = false};
  return TextFinder(render, messages, full).find();
}

std::optional<std::vector<ContentPlace>> content_places(const MessageTexts& texts,
                                                        size_t num_messages) {
  if (!texts.exact) return std::nullopt;
  std::vector<ContentPlace> places(num_messages);
  std::set<std::pair<size_t, bool>> seen;
  for (const TextMark& mark : texts.marks) {
    if (!seen.insert({mark.text, mark.opens}).second) return std::nullopt;
    // The first text of a list begins the content, and the last one ends it.
    ContentPlace& place = places[mark.message];
    if (mark.opens && !place.begin) place.begin = mark.position;
    if (!mark.opens) place.end = mark.position;
  }
  return places;
}

CutTexts find_cut_texts(const ordered_json& messages, std::string_view rendered) {
  constexpr std::string_view kEndOfThoughts = "</think>";
  const std::string written = letters_of(rendered);
  const auto is_written = [&](std::string_view text) {
    if (written.find(letters_of(text)) != std::string::npos) return true;
    // The result of a tool may be written as a JSON string.
    const std::string quoted = ordered_json(text).dump(-1, ' ', false, kReplaceDamage);
    if (written.find(letters_of(quoted.substr(1, quoted.size() - 2))) != std::string::npos)
      return true;
    return written.find(lower_case(url_encoded(text))) != std::string::npos;
  };
  CutTexts cut;
  const auto look_at = [&](const std::string& text) {
    if (is_written(text)) return;
    const size_t end = text.rfind(kEndOfThoughts);
    const bool is_rest_written =
        end != std::string::npos &&
        is_written(std::string_view(text).substr(end + kEndOfThoughts.size()));
    (is_rest_written ? cut.thoughts : cut.others) = true;
  };
  for (const ordered_json& message : messages) {
    const auto content = message.is_object() ? message.find("content") : message.end();
    if (!message.is_object() || content == message.end()) continue;
    if (content->is_string()) look_at(content->get_ref<const std::string&>());
    if (!content->is_array()) continue;
    for (const ordered_json& part : *content)
      if (part.is_object() && part.contains("text") && part["text"].is_string())
        look_at(part["text"].get_ref<const std::string&>());
  }
  return cut;
}

}  // namespace convoy::data
