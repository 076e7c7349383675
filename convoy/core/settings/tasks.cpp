// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::settings {
namespace {

template <class Wanted>
std::string names_of_tasks(const Wanted& wanted) {
  std::vector<std::string_view> names;
  for (const TaskFacts& task : kTasks)
    if (wanted(task)) names.push_back(task.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

const TaskFacts& task_named(std::string_view name) {
  const auto found = std::find_if(kTasks.begin(), kTasks.end(),
                                  [&](const TaskFacts& task) { return task.name == name; });
  if (found != kTasks.end()) return *found;
  const std::vector<std::string> words = task_words();
  throw ConfigError(fmt::format("task must be one of {}, found `{}`{}", fmt::join(words, ", "),
                                name, did_you_mean(name, words)),
                    {.key = "task"});
}

std::vector<std::string> task_words() {
  std::vector<std::string> words;
  for (const TaskFacts& task : kTasks) words.emplace_back(task.name);
  return words;
}

std::string tasks_that_read(TaskData data) {
  return names_of_tasks([data](const TaskFacts& task) { return task.data == data; });
}

std::string tasks_of_preferences() { return names_of_tasks(learns_preferences); }

std::string tasks_of_rewards() { return names_of_tasks(learns_rewards); }

std::string tasks_of_teachers() {
  return names_of_tasks([](const TaskFacts& task) { return task.has_teacher; });
}

std::string task_help() {
  std::string help;
  for (const TaskFacts& task : kTasks)
    help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", task.name, task.summary);
  return help;
}

}  // namespace convoy::settings
