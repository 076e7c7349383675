// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/conversation/conversation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <string_view>

#include "convoy/apps/recipes/conversation/dialogue.h"
#include "convoy/apps/recipes/conversation/typed_text.h"
#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/flags.h"
#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kBlanks = " \t";

// "/set temperature 0.2" is "/set" and "temperature 0.2". Empty unless the text begins with a slash
// and a word of lower-case letters.
struct CommandLine {
  std::string name{};
  std::string argument{};
};
CommandLine command_of(const std::string& text) {
  const std::string_view line = trimmed(text, kBlanks);
  const std::string_view name = line.substr(0, line.find_first_of(" \t\n"));
  const bool is_command =
      text.starts_with('/') && name.size() > 1 &&
      std::all_of(name.begin() + 1, name.end(), [](char one) { return one >= 'a' && one <= 'z'; });
  if (!is_command) return {};
  return {std::string(name), std::string(trimmed(line.substr(name.size()), kBlanks))};
}

bool is_on(const CommandLine& command) {
  if (command.argument != "on" && command.argument != "off")
    throw ConfigError(fmt::format("{} takes on or off, found `{}`", command.name, command.argument),
                      {.hint = fmt::format("{} on, or {} off", command.name, command.name)});
  return command.argument == "on";
}

// Throws the error of a flag in words for /set, which has no flags.
[[noreturn]] void refuse_setting(const std::string& name, std::string words) {
  constexpr std::string_view kPlace = "command line: ";
  if (words.starts_with("unknown flag"))
    throw ConfigError(fmt::format("there is no setting `{}`", name),
                      {.hint = "/set alone shows them"});
  if (words.starts_with(kPlace)) words.erase(0, kPlace.size());
  std::string flag = "--" + name;
  std::string dashed = flag;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const std::string& spelled : {flag, dashed})
    if (words.starts_with(spelled)) words.replace(0, spelled.size(), "/set " + name);
  throw ConfigError(words, {.hint = "/set alone shows the settings and their values"});
}

class Conversation {
 public:
  Conversation(generate::Engine& engine, const data::SampleEncoder& encoder,
               const ConversationOptions& options, const Log& log)
      : engine_(engine),
        encoder_(encoder),
        options_(options),
        log_(log),
        sampling_(options.sampling),
        dialogue_(options.system_prompt) {}

  void run() {
    if (on_terminal_) {
      keys_.emplace();
      log_.info(
          fmt::format("{} answers: /help lists the commands, /exit or Ctrl-D ends, Ctrl-C "
                      "stops an answer",
                      options_.model));
    }
    while (const std::optional<std::string> text = typed_.next()) {
      const CommandLine command = command_of(*text);
      if (command.name == "/exit") return;
      if (!command.name.empty())
        forgive([&] { obey(command); });
      else if (!trimmed(*text, " \t\n").empty())
        ask(*text, 0);
    }
  }

 private:
  struct Command {
    const char* name;
    const char* argument;
    const char* help;
    void (Conversation::*run)(const CommandLine&);
  };
  static std::span<const Command> commands() {
    static constexpr Command kCommands[] = {
        {"/reset", "", "forget the turns and start again", &Conversation::reset},
        {"/undo", "", "forget the last question and its answer", &Conversation::undo},
        {"/retry", "", "answer the last question again", &Conversation::retry},
        {"/system", "TEXT", "another system prompt; without TEXT none", &Conversation::set_system},
        {"/set", "NAME VALUE", "change the sampling; alone: show it", &Conversation::set_sampling},
        {"/adapter", "on|off", "answer with the adapter, or as the base",
         &Conversation::set_adapter},
        {"/both", "on|off", "the base answers before the adapter", &Conversation::set_both},
        {"/save", "FILE", "add the conversation to FILE as a row of JSONL", &Conversation::save},
        {"/help", "", "list the commands", &Conversation::help},
    };
    return kCommands;
  }

  // Returns false when `action` fails. On a terminal an error is only a warning, so that a mistake
  // does not end the conversation. A script gets the error.
  template <class Action>
  bool forgive(const Action& action) {
    try {
      action();
      return true;
    } catch (const Error& error) {
      if (!on_terminal_) throw;
      log_.warning(error.sentence());
      return false;
    }
  }

  void obey(const CommandLine& line) {
    for (const Command& command : commands())
      if (line.name == command.name) return (this->*command.run)(line);
    throw ConfigError(fmt::format("there is no command {}", line.name),
                      {.hint = "/help lists them"});
  }

  void help(const CommandLine&) {
    for (const Command& command : commands())
      fmt::print(stderr, "{:<17} {}\n", fmt::format("{} {}", command.name, command.argument),
                 command.help);
    fmt::print(stderr, "{:<17} {}\n{:<17} {}\n{:<17} {}\n", "/exit", "end, as Ctrl-D does",
               "Ctrl-C", "drop the line, or stop the answer", "\"\"\"",
               "begins and ends several lines");
  }

  void reset(const CommandLine&) {
    dialogue_.reset();
    log_.info("the conversation starts again");
  }

  void undo(const CommandLine&) {
    require_turn();
    log_.info(fmt::format("forgotten: {}", dialogue_.take_last_question()));
  }

  void retry(const CommandLine&) {
    require_turn();
    ask(dialogue_.take_last_question(), tries_ + 1);
  }

  void require_turn() const {
    if (!dialogue_.has_turns())
      throw ConfigError("nothing has been asked yet", {.hint = "type a question first"});
  }

  void set_system(const CommandLine& line) {
    dialogue_.set_system_prompt(line.argument);
    log_.info(line.argument.empty() ? "there is no system prompt now" : "the system prompt is set");
  }

  void set_sampling(const CommandLine& line) {
    settings::SamplingFlags changed = sampling_;
    if (!line.argument.empty()) {
      const size_t blank = line.argument.find_first_of(kBlanks);
      const std::string name = line.argument.substr(0, blank);
      const std::string value(
          trimmed(std::string_view(line.argument).substr(name.size()), kBlanks));
      // `temperature` and `greedy` exclude each other: the later one wins.
      if (name == "temperature") changed.greedy = false;
      if (name == "greedy") changed.temperature = {};
      try {
        config::parse_flags({config::list_fields(changed)},
                            {"--" + name + (value.empty() ? "" : "=" + value)});
        config::refuse_without_effect(changed, {"n", "logprobs"}, "in a conversation");
        generate::check_sampling(
            answer_request(settings::settle_sampling(changed, options_.sources), 0, 0).sampling);
      } catch (const ConfigError& error) {
        refuse_setting(name, error.what());
      }
    }
    sampling_ = changed;
    std::string values;
    settings::SamplingFlags settled = settings::settle_sampling(changed, options_.sources);
    config::for_each_field(config::list_fields(settled), "",
                           [&values](const std::string& name, const config::Field& field) {
                             if (name != "n" && name != "logprobs")
                               values += fmt::format("{}{}: {}", values.empty() ? "" : ", ", name,
                                                     config::value_yaml(field));
                           });
    log_.info(values);
  }

  void require_base() const {
    if (options_.adapter == 0)
      throw ConfigError(fmt::format("the base cannot answer: {}", options_.no_base_because),
                        {.hint = "/adapter on goes on with the adapter"});
  }

  void set_adapter(const CommandLine& line) {
    require_base();
    through_adapter_ = is_on(line);
    both_ = false;
    log_.info(through_adapter_ ? "the adapter answers" : "the base answers");
  }

  void set_both(const CommandLine& line) {
    require_base();
    both_ = is_on(line);
    through_adapter_ = true;
    log_.info(both_ ? "the base answers, then the adapter, whose answers stay in the conversation"
                    : "the adapter answers");
  }

  void save(const CommandLine& line) {
    if (line.argument.empty())
      throw ConfigError("/save needs the name of a file",
                        {.hint = "such as /save conversation.jsonl"});
    std::ofstream file(line.argument, std::ios::app);
    file << Json{{"messages", dialogue_.messages()}}.dump() << std::endl;
    if (!file)
      throw IoError("the conversation cannot be written",
                    {.file = line.argument, .hint = "name another file: /save FILE"});
    log_.info(fmt::format("the conversation is a row of {}", line.argument));
  }

  // `tries`: how often the same question was asked before.
  void ask(const std::string& question, int64_t tries) {
    tries_ = tries;
    dialogue_.ask(question);
    bool has_room = true;
    if (both_) has_room = answer(0, "base: ").has_value();
    std::optional<std::string> text;
    if (has_room) text = answer(through_adapter_ ? options_.adapter : 0, both_ ? "adapter: " : "");
    if (text)
      dialogue_.answer(*text);
    else
      dialogue_.take_last_question();
  }

  // Returns nothing when there is no room for the question.
  std::optional<std::string> answer(int64_t adapter, const char* speaker) {
    const Clock::time_point start = Clock::now();
    generate::Request request =
        answer_request(settings::settle_sampling(sampling_, options_.sources), 0, tries_);
    request.stop_ids = options_.turn_end_ids;
    request.adapter = adapter;
    generate::CertainText certain(request.stop);
    take_interrupt();
    const bool submitted = forgive([&] {
      request.prompt = encoder_
                           .encode_prompt({.kind = data::Sample::Kind::Chat,
                                           .messages = dialogue_.messages(),
                                           .variables = options_.template_kwargs,
                                           .file = "the conversation",
                                           .index = -1})
                           .ids;
      submit(request);
    });
    if (!submitted) return std::nullopt;
    std::cout << speaker;
    std::optional<double> first_seconds;
    std::optional<std::string> text;
    std::optional<generate::Completion> answer;
    double seconds = 0;
    while (!text) {
      const std::vector<generate::Completion> ended = engine_.step();
      if (!ended.empty()) {
        if (ended.front().finish_reason == generate::FinishReason::NotFinite)
          throw NumericError("the model's logits are not finite",
                             {.hint = "compute with --dtype fp32; if it stays, the weights hold "
                                      "NaN: fetch the model again"});
        text = ended.front().text;
        answer = ended.front();
        seconds = seconds_since(start);
      } else if (on_terminal_ && take_interrupt()) {
        text = engine_.text_so_far(0);
        engine_.cancel(0);
      } else {
        const std::string so_far = engine_.text_so_far(0);
        if (!first_seconds && !so_far.empty()) first_seconds = seconds_since(start);
        std::cout << certain.grow(so_far) << std::flush;
      }
    }
    std::cout << certain.end(*text) << std::endl;
    if (!std::cout.good())
      throw IoError("stdout cannot be written", {.hint = "is the disk full or the pipe closed?"});
    if (answer) tell_speed(*answer, first_seconds.value_or(0), seconds);
    return text;
  }

  void submit(const generate::Request& request) {
    try {
      engine_.submit(request);
    } catch (const DataError&) {
      throw DataError(
          fmt::format("the conversation is full: with this question it has {} tokens, and the "
                      "model needs room for its answer",
                      request.prompt.size()),
          {.hint = "/undo forgets the last question and its answer, /reset all turns; or ask a "
                   "shorter question"});
    }
  }

  void tell_speed(const generate::Completion& answer, double first_seconds, double seconds) const {
    const auto tokens = static_cast<double>(answer.token_ids.size());
    log_.detail(fmt::format(
        "{} tokens read, the first text after {:.2f} s; {} tokens written, {:.1f} a second",
        answer.prompt_tokens, first_seconds, tokens,
        (tokens - 1) / std::max(seconds - first_seconds, 1e-9)));
  }

  generate::Engine& engine_;
  const data::SampleEncoder& encoder_;
  const ConversationOptions& options_;
  Log log_;
  const bool on_terminal_ = ::isatty(STDIN_FILENO) != 0;
  std::optional<InterruptKey> keys_;
  TypedText typed_{on_terminal_};
  settings::SamplingFlags sampling_;
  Dialogue dialogue_;
  int64_t tries_ = 0;
  bool through_adapter_ = true;
  bool both_ = false;
};

}  // namespace

void converse(generate::Engine& engine, const data::SampleEncoder& encoder,
              const ConversationOptions& options, const Log& log) {
  Conversation(engine, encoder, options, log).run();
}

}  // namespace convoy::recipes
