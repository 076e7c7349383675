// SPDX-License-Identifier: Apache-2.0
//
// `convoy init`: four questions, and a configuration that trains.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/config/starter_config.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/core/settings/tasks.h"
#include "convoy/core/settings/tuning_settings.h"
#include "convoy/launch/submit/quoting.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::apps {
namespace {

// "auto", and the tasks that learn from one set of rows.
std::vector<std::string> tasks_of_rows() {
  std::vector<std::string> names = {"auto"};
  for (const settings::TaskFacts& task : settings::kTasks)
    if (task.data == settings::TaskData::Rows || settings::learns_preferences(task))
      names.emplace_back(task.name);
  return names;
}

// The choices of tuning.mode.
std::vector<std::string> tuning_modes() {
  settings::TuningSettings tuning;
  const config::Section list = config::list_fields(tuning);
  for (const config::Field& field : list.fields)
    if (field.name == "mode") return field.choices;
  return {};
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const sizing::Machine& machine : sizing::known_machines()) names.push_back(machine.name);
  return names;
}

struct InitFlags {
  std::string model;
  std::string data;
  std::string hardware;
  std::string mode;
  std::string task = "auto";
  std::string output = "train.yaml";
  bool force = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model, "model folder in Hugging Face layout, or a hub id");
    visit("data", data, "training rows: a file, a folder or pattern, a data set of the hub cache")
        .alias("dataset");
    visit("hardware", hardware,
          fmt::format("auto = this host, or a machine of `convoy config presets`: {}",
                      fmt::join(machine_names(), ", ")));
    visit("mode", mode, "what trains").one_of(tuning_modes());
    visit(
        "task", task,
        "what is learnt: sft, pretrain, dpo, orpo, kto; auto = by the first row, dpo for `chosen` "
        "and `rejected`, kto for a `label` of true or false")
        .one_of(tasks_of_rows());
    visit("output", output, "the file to write").alias("o");
    visit("force", force, "overwrite an existing file");
  }
};

void check_mode(const std::string& mode) {
  InitFlags checked;
  config::parse_flags({config::list_fields(checked)}, {"--mode", mode});
}

void check_hardware(const std::string& hardware) { machine_of(hardware); }

struct Question {
  const char* flag;
  std::string InitFlags::*answer;
  std::string text;
  const char* usual;                         // default for an empty answer; empty = no default
  void (*check)(const std::string& answer);  // throws Error
  // A model may be downloaded later, and rows may be on another machine.
  bool may_be_elsewhere = false;
};

std::vector<Question> questions() {
  return {
      {"--model", &InitFlags::model, "Model (folder or hub id)", "", check_model, true},
      {"--data", &InitFlags::data, "Training rows (file, folder or data set)", "", check_data,
       true},
      {"--hardware", &InitFlags::hardware,
       fmt::format("Hardware (auto, {})", fmt::join(machine_names(), ", ")), "auto",
       check_hardware},
      {"--mode", &InitFlags::mode, fmt::format("What trains ({})", fmt::join(tuning_modes(), ", ")),
       "lora", check_mode},
  };
}

// Asks until an answer is valid. An invalid answer that is given twice is accepted, because it may
// be valid on another machine.
std::string ask(const Question& question) {
  for (std::string refused;;) {
    std::cerr << question.text
              << (*question.usual == 0 ? ": " : fmt::format(" [{}]: ", question.usual))
              << std::flush;
    std::string answer;
    if (!std::getline(std::cin, answer))
      throw ConfigError(
          fmt::format("no answer: {} is needed", question.flag + 2),
          {.key = question.flag + 2, .hint = fmt::format("give {} VALUE", question.flag)});
    answer = std::string(trimmed(answer, " \t\r"));
    if (answer.empty()) answer = question.usual;
    if (answer.empty()) continue;
    if (question.may_be_elsewhere && answer == refused) return answer;
    try {
      question.check(answer);
      return answer;
    } catch (const Error& error) {
      std::cerr << error.sentence()
                << (question.may_be_elsewhere ? "; enter it again to keep it\n" : "\n");
      refused = answer;
    }
  }
}

void answer_all(const Context& context, InitFlags& flags) {
  const std::string why_no_question = context.why_no_question();
  std::string missing;
  for (const Question& question : questions()) {
    std::string& answer = flags.*question.answer;
    if (!answer.empty()) continue;
    if (why_no_question.empty())
      answer = ask(question);
    else if (*question.usual != 0)
      answer = question.usual;
    else
      missing += fmt::format("{}{}", missing.empty() ? "" : " and ", question.flag);
  }
  if (!missing.empty())
    throw ConfigError(
        fmt::format("{}, and {} {} not given", why_no_question, missing,
                    missing.find(" and ") == std::string::npos ? "is" : "are"),
        {.hint = "convoy init --model FOLDER --data ROWS.jsonl --hardware auto --mode lora"});
}

int write_config(const Context& context, const InitFlags& flags, bool was_data_asked_for) {
  const StarterAnswers answers{.model = flags.model,
                               .data = flags.data,
                               .hardware = flags.hardware,
                               .mode = flags.mode,
                               .task = flags.task,
                               .data_may_be_elsewhere = was_data_asked_for};
  std::vector<std::string> notes;
  const StarterFacts facts = look_at(answers, notes);
  const std::string text = starter_config(answers, facts);
  for (const std::string& note : notes) context.log().warning(note);
  write_file_atomic(flags.output, text);
  settings::TrainSettings settings;
  settings::resolve_train(settings, {.file = flags.output}, settings::Wanted::TrainInputs);
  const std::string command = fmt::format("convoy train {}{}", flags.output,
                                          facts.machine.devices > 1 ? " --ranks auto" : "");
  if (context.common.json)
    fmt::print("{}\n", nlohmann::json{{"file", flags.output},
                                      {"command", command},
                                      {"schema", facts.schema},
                                      {"notes", notes}}
                           .dump());
  else
    fmt::print("{}\n", flags.output);
  context.log().info(
      fmt::format("next{}: {}", notes.empty() ? "" : ", with all in place", command));
  return 0;
}

// The command line that gives the answers so far.
std::string command_of(InitFlags flags) {
  InitFlags defaults;
  std::vector<std::string> words = {"convoy", "init"};
  for (std::string& word :
       config::flags_that_differ(config::list_fields(flags), config::list_fields(defaults)))
    words.push_back(std::move(word));
  return launch::shell_words(words);
}

int run_init(Context& context, const std::vector<std::string>& arguments) {
  InitFlags flags;
  if (const auto words = context.parse(flags, arguments); !words.empty())
    throw ConfigError(fmt::format("init takes flags only, found `{}`", words.front()),
                      {.hint = "convoy init --help"});
  std::error_code ignored;
  if (!flags.force && std::filesystem::exists(flags.output, ignored))
    throw ConfigError(fmt::format("{} is there already", flags.output),
                      {.file = flags.output, .hint = "--force, or another --output"});
  const std::filesystem::path parent = std::filesystem::path(flags.output).parent_path();
  if (!parent.empty() && !std::filesystem::is_directory(parent, ignored))
    throw ConfigError(fmt::format("there is no folder {}", parent.string()),
                      {.file = flags.output, .hint = "make it, or name another --output"});
  const std::string typed = command_of(flags);
  const bool has_data = !flags.data.empty();
  try {
    answer_all(context, flags);
    return write_config(context, flags, !has_data);
  } catch (const Error&) {
    if (const std::string answered = command_of(flags);
        context.why_no_question().empty() && answered != typed)
      context.log().info("your answers are kept in: " + answered);
    throw;
  }
}

}  // namespace

Command init_command() {
  return {
      .name = "init",
      .summary = "Write a configuration from four answers",
      .usage =
          "convoy init [--model M] [--data D] [--hardware H] [--mode M] [--task T] [--output FILE]",
      .examples =
          "convoy init\n"
          "convoy init --model examples/tally-3m --data examples/sums/train.jsonl --hardware cpu "
          "--mode lora --output sums.yaml",
      .flags = {flags_of<InitFlags>()},
      .run = run_init,
      .group = HelpGroup::GetStarted};
}

}  // namespace convoy::apps
