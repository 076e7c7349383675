// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {

// The only registry of stages.
const std::vector<Stage>& all_stages() {
  static const std::vector<Stage> list = {
      generate_stage(), verify_stage(), evaluate_stage(),
      improve_stage(),  vote_stage(),   filter_stage(),
  };
  return list;
}

std::vector<const Stage*> stages_named(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Stage& stage : all_stages()) known.emplace_back(stage.name);
  std::vector<const Stage*> chosen;
  for (size_t place = 0; place < names.size(); ++place) {
    const std::string& name = names[place];
    const std::string key = fmt::format("stages[{}]", place);
    const auto stage = std::find_if(all_stages().begin(), all_stages().end(),
                                    [&](const Stage& one) { return one.name == name; });
    const bool is_output = name == "pairs" || name == "answers" || name == "problems";
    if (stage == all_stages().end())
      throw ConfigError(
          fmt::format("stages: unknown stage `{}`{}", name, did_you_mean(name, known)),
          {.key = key,
           .hint = is_output ? fmt::format("it is an output: name its file with --{} FILE", name)
                             : fmt::format("there are {}", fmt::join(known, ", "))});
    if (std::find(chosen.begin(), chosen.end(), &*stage) != chosen.end())
      throw ConfigError(fmt::format("stages: {} is there twice", name),
                        {.key = key, .hint = "name each stage once"});
    if (name == "generate" && !chosen.empty())
      throw ConfigError(
          fmt::format("stages: generate must come first, found {} before it", chosen.front()->name),
          {.key = key, .hint = "put generate first"});
    if (name == "improve" && std::none_of(chosen.begin(), chosen.end(), [](const Stage* before) {
          return before->name == "verify" || before->name == "evaluate";
        }))
      throw ConfigError("stages: improve has no stage before it that finds weak solutions",
                        {.key = key, .hint = "put verify or evaluate before improve"});
    chosen.push_back(&*stage);
  }
  if (chosen.empty())
    throw ConfigError("stages: wanted at least one, found none",
                      {.hint = "such as --stages generate,verify"});
  return chosen;
}

}  // namespace convoy::process
