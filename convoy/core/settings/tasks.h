// SPDX-License-Identifier: Apache-2.0
//
// The tasks of a training: what it learns from, one line each. Parser, help, error texts and all
// code that treats tasks differently read this table; only recipes know what computes a task. Plain
// data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::settings {

// The input of a task.
enum class TaskData {
  Rows,      // rows of data.train_path, each learnt by itself
  Mix,       // rows of the weighted data sets of `datasets`
  Windows,   // windows of sensors: no language model
  Pairs,     // a preferred and a rejected completion of one prompt, in data.train_path
  Judged,    // single completions, each called a good or a bad one, in data.train_path
  Problems,  // problems of data.train_path with their answers: the rows are made by the model
  Rollouts,  // problems of data.train_path: the model answers a step's problems before it
};

struct TaskFacts {
  std::string_view name;
  std::string_view summary;
  TaskData data = TaskData::Rows;
  bool has_answers = false;   // evaluations may generate and compare answers
  bool chooses_loss = false;  // reads preference.loss and its settings
  bool has_teacher = false;   // learns a teacher's distributions, not rewards
};

inline constexpr std::array<TaskFacts, 10> kTasks = {{
    {.name = "sft", .summary = "conversations and completions", .has_answers = true},
    {.name = "pretrain", .summary = "plain text"},
    {.name = "mixed", .summary = "the weighted data sets of `datasets`", .data = TaskData::Mix},
    {.name = "classify", .summary = "sensor windows", .data = TaskData::Windows},
    {.name = "dpo",
     .summary = "preferences, against a reference (preference.loss)",
     .data = TaskData::Pairs,
     .chooses_loss = true},
    {.name = "orpo", .summary = "preferences, without a reference", .data = TaskData::Pairs},
    {.name = "kto",
     .summary = "single answers that are called good or bad, against a reference",
     .data = TaskData::Judged},
    {.name = "rejection",
     .summary = "rounds of the model's own right solutions of problems",
     .data = TaskData::Problems},
    {.name = "grpo",
     .summary = "rewards of the model's own texts (policy.loss)",
     .data = TaskData::Rollouts},
    {.name = "distill",
     .summary = "a teacher's distributions over the model's own texts (distill.teacher)",
     .data = TaskData::Rollouts,
     .has_teacher = true},
}};

// Throws ConfigError with all names for any other word.
const TaskFacts& task_named(std::string_view name);

// Number of rows in the token files per row of the data: 2 for pairs, one row per completion.
inline int64_t rows_of_item(const TaskFacts& task) { return task.data == TaskData::Pairs ? 2 : 1; }

// True for tasks whose rows the model makes, from problems.
inline bool makes_its_rows(const TaskFacts& task) {
  return task.data == TaskData::Problems || task.data == TaskData::Rollouts;
}

// True for tasks that learn which answers are better. They read `preference`, and their rows are
// whole completions.
inline bool learns_preferences(const TaskFacts& task) {
  return task.data == TaskData::Pairs || task.data == TaskData::Judged;
}

// True for tasks that learn from rewards of their rollouts. They read `policy`.
inline bool learns_rewards(const TaskFacts& task) {
  return task.data == TaskData::Rollouts && !task.has_teacher;
}

// The accepted values of `task`.
std::vector<std::string> task_words();
// The tasks that read `data`: "dpo, orpo".
std::string tasks_that_read(TaskData data);
// "dpo, orpo, kto".
std::string tasks_of_preferences();
// "grpo".
std::string tasks_of_rewards();
// "distill".
std::string tasks_of_teachers();
// The meaning of each word.
std::string task_help();

}  // namespace convoy::settings
