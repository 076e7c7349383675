// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/reward_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::settings {
namespace {

using Json = nlohmann::ordered_json;

// The keys of a kind beside kind, name and weight.
struct KindKeys {
  std::string_view kind;
  std::vector<std::string> keys;
  std::vector<std::string> needed = {};
};

const std::array<KindKeys, 6>& kinds() {
  static const std::array<KindKeys, 6> kKinds = {{
      {.kind = "answer", .keys = {}},
      {.kind = "format", .keys = {"schema", "pattern"}},
      {.kind = "length",
       .keys = {"target_tokens", "most_tokens", "form"},
       .needed = {"most_tokens"}},
      {.kind = "command", .keys = {"command", "timeout_s"}, .needed = {"command"}},
      {.kind = "http", .keys = {"url", "timeout_s"}, .needed = {"url"}},
      {.kind = "judge",
       .keys = {"url", "model", "prompt", "max_new_tokens", "timeout_s"},
       .needed = {"url", "model", "prompt"}},
  }};
  return kKinds;
}

[[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& hint) {
  throw ConfigError(fmt::format("{}: {}", key, what), {.key = key, .hint = hint});
}

// One entry of the list, and its place for errors.
class Entry {
 public:
  Entry(const Json& item, std::string key) : item_(item), key_(std::move(key)) {}

  const std::string& place() const { return key_; }
  std::string key(std::string_view name) const { return fmt::format("{}.{}", key_, name); }
  bool has(const char* name) const { return item_.contains(name); }

  std::string text(const char* name, const std::string& otherwise = {}) const {
    const auto found = item_.find(name);
    if (found == item_.end() || found->is_null()) return otherwise;
    if (!found->is_string() || found->get<std::string>().empty())
      refuse(key(name), fmt::format("wanted a text, found {}", found->dump()),
             "write it in quotes, or leave the key out");
    return found->get<std::string>();
  }

  double number(const char* name, double otherwise, double least) const {
    const auto found = item_.find(name);
    if (found == item_.end()) return otherwise;
    const double value = found->is_number() ? found->get<double>() : NAN;
    if (!std::isfinite(value) || value < least)
      refuse(key(name),
             std::isfinite(least)
                 ? fmt::format("wanted a number of at least {}, found {}", least, found->dump())
                 : fmt::format("wanted a number, found {}", found->dump()),
             "write a number, or leave the key out");
    return value;
  }

  int64_t count(const char* name, int64_t otherwise, int64_t least) const {
    const auto found = item_.find(name);
    if (found == item_.end()) return otherwise;
    if (!found->is_number_integer() || found->get<int64_t>() < least)
      refuse(key(name),
             fmt::format("wanted a whole number of at least {}, found {}", least, found->dump()),
             "write it without a point");
    return found->get<int64_t>();
  }

  const KindKeys& kind() const {
    const std::string name = text("kind");
    for (const KindKeys& kind : kinds())
      if (kind.kind == name) return kind;
    const std::vector<std::string> names = reward_kinds();
    refuse(key("kind"),
           fmt::format("wanted one of {}, found {}{}", fmt::join(names, ", "),
                       name.empty() ? "nothing" : "`" + name + "`", did_you_mean(name, names)),
           "write kind: answer, or another of them");
  }

  // Throws for a key that the kind does not read, and for a missing one.
  void check_keys(const KindKeys& kind) const {
    std::vector<std::string> known = {"kind", "name", "weight"};
    known.insert(known.end(), kind.keys.begin(), kind.keys.end());
    for (const auto& [name, value] : item_.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        refuse(key(name),
               fmt::format("kind {} has no such key{}; known: {}", kind.kind,
                           did_you_mean(name, known), fmt::join(known, ", ")),
               "remove it, or write it as one of these");
    for (const std::string& name : kind.needed)
      if (!item_.contains(name))
        refuse(key(name), fmt::format("kind {} needs it, and it is missing", kind.kind),
               fmt::format("write {}: ...", name));
  }

 private:
  const Json& item_;
  std::string key_;
};

void check_format(const Entry& entry, const RewardSettings& reward) {
  if (reward.schema.empty() == reward.pattern.empty())
    refuse(entry.key(reward.schema.empty() ? "schema" : "pattern"),
           fmt::format("wanted one of schema and pattern, found {}",
                       reward.schema.empty() ? "neither" : "both"),
           "write schema: FILE for JSON, or pattern: a regular expression of the whole text");
}

void check_length(const Entry& entry, const RewardSettings& reward) {
  if (reward.most_tokens <= reward.target_tokens)
    refuse(entry.key("most_tokens"),
           fmt::format("wanted more than target_tokens, which is {}, found {}",
                       reward.target_tokens, reward.most_tokens),
           "the reward falls between the two");
  if (reward.form != "reward" && reward.form != "punishment")
    refuse(entry.key("form"), fmt::format("wanted reward or punishment, found `{}`", reward.form),
           "reward is 1 down to 0, punishment is 0 down to -1");
}

RewardSettings reward_of(const Entry& entry) {
  const KindKeys& kind = entry.kind();
  entry.check_keys(kind);
  const RewardSettings usual;
  RewardSettings reward{.kind = std::string(kind.kind),
                        .name = entry.text("name"),
                        .key = entry.place(),
                        .weight = entry.number("weight", 1, -INFINITY),
                        .schema = entry.text("schema"),
                        .pattern = entry.text("pattern"),
                        .command = entry.text("command"),
                        .url = entry.text("url"),
                        .model = entry.text("model"),
                        .prompt = entry.text("prompt"),
                        .max_new_tokens = entry.count("max_new_tokens", usual.max_new_tokens, 1),
                        .target_tokens = entry.count("target_tokens", usual.target_tokens, 0),
                        .most_tokens = entry.count("most_tokens", usual.most_tokens, 1),
                        .form = entry.text("form", usual.form),
                        .timeout_s = entry.number("timeout_s", usual.timeout_s, 0.001)};
  if (reward.kind == "format") check_format(entry, reward);
  if (reward.kind == "length") check_length(entry, reward);
  return reward;
}

// The kind, and a number from 2 on where the name is taken.
std::string usual_name(const std::string& kind, const std::set<std::string>& taken) {
  std::string name = kind;
  for (int number = 2; taken.contains(name); ++number) name = fmt::format("{}-{}", kind, number);
  return name;
}

}  // namespace

std::vector<std::string> reward_kinds() {
  std::vector<std::string> names;
  for (const KindKeys& kind : kinds()) names.emplace_back(kind.kind);
  return names;
}

std::vector<RewardSettings> rewards_of(const config::JsonList& list) {
  std::vector<RewardSettings> rewards;
  std::set<std::string> names;
  for (const Json& item : Json::parse(list.json)) {
    const Entry entry(item, fmt::format("reward[{}]", rewards.size()));
    rewards.push_back(reward_of(entry));
    const std::string& name = rewards.back().name;
    if (!name.empty() && !names.insert(name).second)
      refuse(entry.key("name"), fmt::format("another reward is called `{}` too", name),
             "give each a name of its own");
  }
  for (RewardSettings& reward : rewards) {
    if (reward.name.empty()) reward.name = usual_name(reward.kind, names);
    names.insert(reward.name);
  }
  return rewards;
}

}  // namespace convoy::settings
