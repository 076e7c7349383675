// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/host_list.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"

namespace convoy::launch {
namespace {

constexpr size_t kMaxEntries = 100'000;
constexpr size_t kMaxNameBytes = 253;  // the domain name system's limit

class HostListParser {
 public:
  HostListParser(std::string_view list, std::string_view variable)
      : list_(list), variable_(variable) {}

  std::vector<std::string> hosts() const {
    std::vector<std::string> all;
    for (const std::string_view item : split(list_)) {
      std::vector<std::string> some = expand(item);
      check_size(all.size() + some.size());
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw ConfigError(
        fmt::format("wanted a host list as node[01-03,7] in {}, found `{}`: {}", variable_, list_,
                    why),
        {.hint = "give the address of rank 0 with --master-addr and --env-source none"});
  }

  void check_size(size_t count) const {
    if (count > kMaxEntries) fail("more than 100,000 hosts");
  }

  // Splits at the commas outside brackets.
  std::vector<std::string_view> split(std::string_view text) const {
    std::vector<std::string_view> items;
    int depth = 0;
    size_t begin = 0;
    for (size_t at = 0; at <= text.size(); ++at) {
      const char letter = at < text.size() ? text[at] : ',';
      if (letter == '[') ++depth;
      if (letter == ']') --depth;
      if (depth < 0 || depth > 1) fail("brackets do not match");
      if (letter != ',' || depth > 0) continue;
      if (at == begin) fail("an empty entry");
      items.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
    if (depth != 0) fail("brackets do not match");
    return items;
  }

  // Expands one entry, which is literal text and bracket groups in turn.
  std::vector<std::string> expand(std::string_view item) const {
    std::vector<std::string> made = {""};
    while (!item.empty()) {
      std::vector<std::string> choices;
      if (item[0] == '[') {
        const size_t end = item.find(']');
        choices = choices_of(item.substr(1, end - 1));
        item.remove_prefix(end + 1);
      } else {
        const size_t end = std::min(item.find('['), item.size());
        choices = {std::string(item.substr(0, end))};
        item.remove_prefix(end);
      }
      check_size(made.size() * choices.size());
      std::vector<std::string> longer;
      for (const std::string& begin : made)
        for (const std::string& choice : choices) {
          if (begin.size() + choice.size() > kMaxNameBytes) fail("a name of more than 253 bytes");
          longer.push_back(begin + choice);
        }
      made = std::move(longer);
    }
    return made;
  }

  // The choices of a bracket group, such as "01-03,7" or "a,b".
  std::vector<std::string> choices_of(std::string_view group) const {
    std::vector<std::string> choices;
    for (const std::string_view part : split(group)) {
      const size_t dash = part.find('-');
      const auto low = number(part.substr(0, dash));
      const auto high = dash == std::string_view::npos ? low : number(part.substr(dash + 1));
      if (dash == std::string_view::npos || !low || !high) {
        choices.emplace_back(part);
        continue;
      }
      if (*high < *low) fail("a range that runs backwards");
      if (dash > kMaxNameBytes) fail("a name of more than 253 bytes");
      check_size(choices.size() + static_cast<size_t>(*high - *low));
      for (int64_t value = *low; value <= *high; ++value)
        // padded to the width of the first number
        choices.push_back(fmt::format("{:0{}}", value, dash));
    }
    return choices;
  }

  static std::optional<int64_t> number(std::string_view digits) {
    const auto value = text_as<int64_t>(digits);
    return value && *value >= 0 ? value : std::nullopt;
  }

  std::string_view list_;
  std::string_view variable_;
};

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list, std::string_view variable) {
  return HostListParser(list, variable).hosts();
}

std::vector<int> expand_counts(std::string_view counts, std::string_view variable) {
  const auto fail = [&] {
    throw ConfigError(
        fmt::format("wanted counts per node as 2(x3),1 in {}, found `{}`", variable, counts),
        {.hint = "choose another source with --env-source"});
  };
  std::vector<int> all;
  const char* at = counts.data();
  const char* const end = at + counts.size();
  const auto number = [&] {
    int value = -1;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0) fail();
    at = next;
    return value;
  };
  while (true) {
    const int count = number();
    int times = 1;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      at += 2;
      times = number();
      if (at == end || *at++ != ')') fail();
    }
    if (times < 1 || all.size() + static_cast<size_t>(times) > kMaxEntries) fail();
    all.insert(all.end(), static_cast<size_t>(times), count);
    if (at == end) return all;
    if (*at++ != ',') fail();
  }
}

}  // namespace convoy::launch
