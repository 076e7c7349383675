// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/supervision.h"

#include <algorithm>
#include <map>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

template <class Value>
Value value_named(const std::map<std::string, Value>& names, const std::string& name,
                  const char* key) {
  if (const auto found = names.find(name); found != names.end()) return found->second;
  std::string known;
  for (const auto& [word, value] : names) known += (known.empty() ? "" : ", ") + word;
  throw ConfigError(fmt::format("wanted one of {}, found `{}`", known, name), {.key = key});
}

}  // namespace

Supervision Supervision::named(const std::string& supervise, const std::vector<std::string>& roles,
                               const std::string& ends, const std::string& empty_answers) {
  static const std::map<std::string, Supervise> supervise_names = {
      {"auto", Supervise::Auto},
      {"assistant", Supervise::Assistant},
      {"last", Supervise::Last},
      {"all", Supervise::All}};
  static const std::map<std::string, LearntEnds> end_names = {{"turn", LearntEnds::Turn},
                                                              {"all", LearntEnds::All},
                                                              {"last", LearntEnds::Last},
                                                              {"none", LearntEnds::None}};
  static const std::map<std::string, EmptyAnswers> empty_names = {
      {"skip", EmptyAnswers::Skip}, {"learn", EmptyAnswers::Learn}, {"error", EmptyAnswers::Error}};
  const Supervision named = {
      .supervise = value_named(supervise_names, supervise, "supervise"),
      .roles = roles,
      .ends = value_named(end_names, ends, "train_on_eos"),
      .empty_answers = value_named(empty_names, empty_answers, "empty_answers")};
  const bool other_roles = roles != Supervision().roles;
  if (roles.empty())
    throw ConfigError("no role is supervised",
                      {.key = "roles_to_train", .hint = "name one, such as assistant"});
  if (named.supervise == Supervise::All && other_roles)
    throw ConfigError("supervise is all, so every role is learnt",
                      {.key = "roles_to_train", .hint = "leave one of the two out"});
  if (named.supervise == Supervise::All && named.ends != LearntEnds::Turn)
    throw ConfigError("supervise is all, so every token that closes a turn is learnt",
                      {.key = "train_on_eos", .hint = "leave one of the two out"});
  if (named.supervise == Supervise::Assistant && other_roles)
    throw ConfigError("supervise is assistant, so no other role is learnt",
                      {.key = "roles_to_train", .hint = "use supervise: auto"});
  return named;
}

Supervision Supervision::from(const settings::DataSettings& data) {
  return named(data.supervise, data.roles_to_train.names, data.train_on_eos, data.empty_answers);
}

bool Supervision::learns(const std::string& role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

}  // namespace convoy::data
