// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/conversation.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

#include "convoy/apps/recipes/answer_prompts.h"
#include "convoy/core/base/error.h"
#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "/reset   forget the conversation and start again\n"
    "/exit    end it, as Ctrl-D does\n"
    "Ctrl-C   drop the line, or stop the answer\n";

// Set by a signal handler, so it cannot be an object that is passed.
std::atomic<bool> interrupted{false};

void note_interrupt(int) { interrupted = true; }

// Makes Ctrl-C a key of the conversation during its lifetime. It interrupts a waiting read.
class InterruptKey {
 public:
  InterruptKey() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~InterruptKey() { ::sigaction(SIGINT, &before_, nullptr); }
  InterruptKey(const InterruptKey&) = delete;
  InterruptKey& operator=(const InterruptKey&) = delete;

 private:
  struct sigaction before_ {};
};

bool take_interrupt() { return interrupted.exchange(false); }

enum class Typed { Line, Interrupt, End };

// Reads lines of stdin without the library's streams, which stay failed after an interrupted read.
class LineReader {
 public:
  Typed next(std::string& line) {
    for (;;) {
      const size_t end = pending_.find('\n');
      if (end != std::string::npos) return take(end, end + 1, line);
      char bytes[4096];
      const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof(bytes));
      if (count < 0 && errno == EINTR) {
        if (!take_interrupt()) continue;
        pending_.clear();
        return Typed::Interrupt;
      }
      CONVOY_CHECK(count >= 0, IoError, "stdin cannot be read: {}", std::strerror(errno));
      if (count > 0)
        pending_.append(bytes, static_cast<size_t>(count));
      else
        return pending_.empty() ? Typed::End : take(pending_.size(), pending_.size(), line);
    }
  }

 private:
  Typed take(size_t end, size_t next, std::string& line) {
    line = pending_.substr(0, end);
    if (line.ends_with('\r')) line.pop_back();
    pending_.erase(0, next);
    return Typed::Line;
  }

  std::string pending_;
};

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t") == std::string::npos;
}

// "/exit ": a slash and one word of letters. Empty: a line for the model.
std::string command_of(const std::string& line) {
  const size_t end = line.find_last_not_of(" \t") + 1;
  if (end < 2 || line[0] != '/') return {};
  const std::string word = line.substr(0, end);
  const bool letters = std::all_of(word.begin() + 1, word.end(),
                                   [](char letter) { return letter >= 'a' && letter <= 'z'; });
  return letters ? word : std::string();
}

class Conversation {
 public:
  Conversation(generate::Engine& engine, const data::SampleEncoder& encoder,
               const ConversationOptions& options, const Log& log)
      : engine_(engine), encoder_(encoder), options_(options), log_(log) {
    sample_ = {.kind = data::Sample::Kind::Chat,
               .variables = options.template_kwargs,
               .file = "the conversation"};
    reset();
  }

  void run() {
    if (on_terminal_) {
      keys_.emplace();
      log_.info(
          fmt::format("{} answers: /help lists the commands, /exit or Ctrl-D ends, Ctrl-C "
                      "stops an answer",
                      options_.model));
    }
    for (std::string line;;) {
      if (on_terminal_) fmt::print(stderr, "> ");
      const Typed typed = lines_.next(line);
      if (typed == Typed::Line) {
        if (!obey(line)) return;
        continue;
      }
      if (on_terminal_) fmt::print(stderr, "\n");
      if (typed == Typed::End) return;
    }
  }

 private:
  // Returns false when the conversation is over.
  bool obey(const std::string& line) {
    const std::string command = command_of(line);
    if (command == "/exit") return false;
    if (command == "/help") {
      fmt::print(stderr, "{}", kHelp);
    } else if (command == "/reset") {
      reset();
      log_.info("the conversation starts again");
    } else if (!command.empty()) {
      log_.warning(fmt::format("there is no command {}: /help lists them", command));
    } else if (!is_blank(line)) {
      answer(line);
    }
    return true;
  }

  void reset() {
    sample_.messages = Json::array();
    if (!options_.system_prompt.empty())
      sample_.messages.push_back({{"role", "system"}, {"content", options_.system_prompt}});
  }

  void answer(const std::string& line) {
    sample_.messages.push_back({{"role", "user"}, {"content", line}});
    generate::Request request = answer_request(options_.sampling, 0, 0);
    request.prompt = encoder_.encode_prompt(sample_).ids;
    generate::CertainText certain(request.stop);
    take_interrupt();
    engine_.submit(std::move(request));
    std::optional<std::string> text;
    while (!text) {
      const std::vector<generate::Completion> ended = engine_.step();
      if (!ended.empty()) {
        CONVOY_CHECK(ended.front().finish_reason != generate::FinishReason::NotFinite, NumericError,
                     "the model's logits are not finite");
        text = ended.front().text;
      } else if (on_terminal_ && take_interrupt()) {
        text = engine_.text_so_far(0);
        engine_.cancel(0);
      } else {
        std::cout << certain.grow(engine_.text_so_far(0)) << std::flush;
      }
    }
    std::cout << certain.end(*text) << std::endl;
    CONVOY_CHECK(std::cout.good(), IoError, "stdout cannot be written");
    sample_.messages.push_back({{"role", "assistant"}, {"content", *text}});
  }

  generate::Engine& engine_;
  const data::SampleEncoder& encoder_;
  const ConversationOptions& options_;
  Log log_;
  const bool on_terminal_ = ::isatty(STDIN_FILENO) != 0;
  std::optional<InterruptKey> keys_;
  LineReader lines_;
  data::Sample sample_;
};

}  // namespace

void converse(generate::Engine& engine, const data::SampleEncoder& encoder,
              const ConversationOptions& options, const Log& log) {
  Conversation(engine, encoder, options, log).run();
}

}  // namespace convoy::recipes
