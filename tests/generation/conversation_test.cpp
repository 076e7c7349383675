// SPDX-License-Identifier: Apache-2.0
//
// Tests `convoy generate --interactive`: lines, commands and Ctrl-C, through a pipe and on a
// terminal.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/registry.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

using namespace std::chrono_literals;

// At this temperature no end token is drawn, so an answer goes on to the model's last position.
constexpr const char* kEndless = "--temperature 100 --top-p 1 --max-new-tokens 2000";

std::string worker() { return std::string(std::getenv("CONVOY_BIN_DIR")) + "/convoy-worker"; }
std::string model() { return std::string(std::getenv("CONVOY_SOURCE_DIR")) + "/examples/tally-3m"; }

class Conversation : public ::testing::Test {
 protected:
  // Returns the answers to the typed lines; the other output is stored in `said_`.
  std::string answers(const std::string& typed, const std::string& flags, int code = 0) {
    write_file_atomic(folder_ / "typed", typed);
    const testing::ScriptEnd end = testing::run_script(
        folder_.path(), fmt::format("OMP_NUM_THREADS=1 {} generate --model {} --interactive {} "
                                    "<typed >answers 2>said",
                                    worker(), model(), flags));
    said_ = read_file(folder_ / "said");
    EXPECT_EQ(end.code, code) << end.out << said_;
    return read_file(folder_ / "answers");
  }
  bool says(const std::string& text) const { return said_.find(text) != std::string::npos; }

  // Saves an adapter that changes the model's answers, and returns its folder.
  std::string adapter() const {
    const auto base = models::load_causal_lm(io::ModelFolder::open(model()), at::kFloat);
    adapters::LoraConfig config;
    config.r = 4;
    config.alpha = 8;
    const auto lora = adapters::LoraModel::create(*base, config, 7);
    const at::NoGradGuard no_grad;
    at::manual_seed(7);
    for (const nn::NamedTensor& parameter : lora.parameters()) {
      at::Tensor value = parameter.value;
      if (parameter.name.find("lora_B") != std::string::npos) value.normal_(0, 2);
    }
    lora.save(folder_ / "adapter", model());
    return (folder_ / "adapter").string();
  }

  testing::TemporaryFolder folder_;
  std::string said_;
};

TEST_F(Conversation, GoesOnAfterEmptyLinesUntilExit) {
  const std::string flags = "--greedy --max-new-tokens 20";
  const std::string one = answers("What is 2 + 2?\n", flags);
  ASSERT_GT(one.size(), 1u);
  EXPECT_EQ(
      answers("\n  \nWhat is 2 + 2?\r\n\n/reset\n\nWhat is 2 + 2?\n/exit\nWhat is 9 + 9?\n", flags),
      one + one);
  const std::string two = answers("What is 2 + 2?\nWhat is 2 + 2?", flags);
  EXPECT_TRUE(two.starts_with(one)) << two;
}

TEST_F(Conversation, CommandsAreNotSentToTheModel) {
  EXPECT_EQ(answers("/help\n/quit\n", "--greedy", 2), "");
  for (const char* const word : {"/reset", "/exit", "Ctrl-C", "there is no command /quit"})
    EXPECT_NE(said_.find(word), std::string::npos) << word << " in " << said_;
  EXPECT_NE(answers("/usr/bin/env is what?\n", "--greedy --max-new-tokens 4"), "");
}

constexpr const char* kShort = "--greedy --max-new-tokens 20";

TEST_F(Conversation, ALastQuestionIsTakenBackOrAnsweredAgain) {
  const std::string one = answers("What is 2 + 2?\n", kShort);
  EXPECT_EQ(answers("What is 2 + 2?\n/undo\nWhat is 2 + 2?\n/retry\n", kShort), one + one + one);
  EXPECT_TRUE(says("forgotten: What is 2 + 2?")) << said_;
  const std::string drawn = answers("Tell me.\n/retry\n", "--temperature 3 --max-new-tokens 9");
  const size_t half = drawn.find('\n') + 1;
  EXPECT_NE(drawn.substr(0, half), drawn.substr(half)) << "other draws";
  answers("/retry\n", kShort, 2);
  EXPECT_TRUE(says("nothing has been asked yet")) << said_;
}

TEST_F(Conversation, SamplingIsSetBetweenAnswers) {
  const std::string one = answers("What is 2 + 2?\n", kShort);
  EXPECT_EQ(answers("/set greedy\n/set max_new_tokens 20\nWhat is 2 + 2?\n", "--temperature 3"),
            one);
  EXPECT_TRUE(says("max_new_tokens: 20, temperature: 0")) << said_;
  answers("/set temperature 0.5\n/set\n", kShort);
  EXPECT_TRUE(says("temperature: 0.5, ") && says("greedy: false")) << said_;
  const std::pair<const char*, const char*> wrong[] = {
      {"top_p 7", "/set top_p must be above 0 and at most 1, found 7"},
      {"top_p", "/set top_p needs a value (number or auto)"},
      {"tempo 1", "there is no setting `tempo` (/set alone shows them)"},
      {"n 3", "/set n has no effect in a conversation"},
      {"max_new_tokens 1.5", "/set max_new_tokens: wanted an integer or auto, found"},
      {"top_p 0.5 0.6", "/set top_p: wanted a number or auto, found"}};
  for (const auto& [setting, words] : wrong) {
    answers(fmt::format("/set {}\n", setting), fmt::format("{} --dtype fp32", kShort), 2);
    EXPECT_TRUE(says(fmt::format("convoy: {}", words))) << setting << ": " << said_;
    EXPECT_FALSE(says("stop: []") || says("--")) << setting << ": " << said_;
  }
}

TEST_F(Conversation, AFullConversationNamesTheWaysOut) {
  std::string long_question;
  for (int word = 0; word < 600; ++word) long_question += "12 ";
  answers("What is 2 + 2?\n" + long_question + long_question + "\n", kShort, 10);
  EXPECT_TRUE(says("the conversation is full") && says("/undo") && says("/reset")) << said_;
}

TEST_F(Conversation, SavesRowsThatOtherCommandsRead) {
  answers(fmt::format("/system Be brief.\n\"\"\"\nWhat is\n\n2 + 2?\n\"\"\"\n/save {0}\n"
                      "/reset\n/system\n\"\"\"one line\"\"\"\n/save {0}\n",
                      (folder_ / "talks.jsonl").string()),
          kShort);
  const std::string rows = read_file(folder_ / "talks.jsonl");
  EXPECT_TRUE(rows.starts_with(
      R"({"messages":[{"role":"system","content":"Be brief."},)"
      R"({"role":"user","content":"What is\n\n2 + 2?"},{"role":"assistant","content":")"))
      << rows;
  EXPECT_NE(rows.find("\n"
                      R"({"messages":[{"role":"user","content":"one line"},)"),
            std::string::npos)
      << rows;
  const testing::ScriptEnd end = testing::run_script(
      folder_.path(),
      fmt::format("{} generate --model {} --prompts talks.jsonl {}", worker(), model(), kShort));
  EXPECT_EQ(end.code, 0) << end.out;
  answers("Hello\n/save /nowhere/talks.jsonl\n", kShort, 12);
}

TEST_F(Conversation, TheBaseAnswersBesideTheAdapter) {
  const std::string question = "What is 2 + 2?\n";
  const std::string base = answers(question, kShort);
  const std::string flags = fmt::format("--adapter {} {}", adapter(), kShort);
  const std::string adapted = answers(question, flags);
  EXPECT_NE(base, adapted);
  EXPECT_EQ(answers("/adapter off\n" + question + "/reset\n/adapter on\n" + question, flags),
            base + adapted);
  EXPECT_EQ(answers("/both on\n" + question + "/retry\n/reset\n/both off\n" + question, flags),
            fmt::format("base: {0}adapter: {1}base: {0}adapter: {1}{1}", base, adapted));
  answers("/both on\n", kShort, 2);
  EXPECT_TRUE(says("the base cannot answer: there is no --adapter")) << said_;
  answers("/adapter maybe\n", flags, 2);
  EXPECT_TRUE(says("/adapter takes on or off")) << said_;
}

TEST_F(Conversation, TellsItsSpeedWhenAsked) {
  answers("What is 2 + 2?\n", kShort);
  EXPECT_FALSE(says("tokens written")) << said_;
  answers("What is 2 + 2?\n", std::string(kShort) + " --verbose");
  EXPECT_TRUE(says("tokens read") && says("tokens written")) << said_;
}

// A conversation in the foreground of a terminal, whose answers go to a file.
class Terminal : public Conversation {
 protected:
  void open(const std::string& flags) {
    pid_ = ::forkpty(&master_, nullptr, nullptr, nullptr);
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      ::setenv("OMP_NUM_THREADS", "1", 1);
      const std::string line =
          fmt::format("exec {} generate --model {} --interactive {} >{}", worker(), model(), flags,
                      (folder_ / "answers").string());
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    reader_ = std::thread([this] {
      char bytes[4096];
      for (ssize_t size; (size = ::read(master_, bytes, sizeof(bytes))) > 0;) {
        const std::lock_guard lock(mutex_);
        shown_.append(bytes, static_cast<size_t>(size));
      }
    });
  }
  ~Terminal() override {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (reader_.joinable()) reader_.join();
    ::close(master_);
  }

  std::string shown() {
    const std::lock_guard lock(mutex_);
    return shown_;
  }
  std::string answers_so_far() const { return read_file(folder_ / "answers"); }
  void type(const std::string& keys) const {
    ASSERT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  template <class Condition>
  static bool wait_until(Condition condition) {
    for (int tries = 0; tries < 6000; ++tries) {
      if (condition()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  // Waits until `count` prompts were shown, so that the line before the last prompt is answered.
  bool wait_for_prompts(int64_t count) {
    return wait_until([&] {
      const std::string text = shown();
      int64_t found = 0;
      for (size_t at = 0; (at = text.find("> ", at)) != std::string::npos; at += 2) ++found;
      return found >= count;
    });
  }
  int end() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  pid_t pid_ = -1;
  int master_ = -1;
  std::thread reader_;
  std::mutex mutex_;
  std::string shown_;
};

TEST_F(Terminal, ControlCDropsTheLine) {
  open("--greedy --max-new-tokens 8");
  ASSERT_TRUE(wait_for_prompts(1)) << shown();
  EXPECT_NE(shown().find("/help"), std::string::npos) << shown();
  type("What is");
  type("\x03");
  ASSERT_TRUE(wait_for_prompts(2)) << shown();
  type("\n/exit\n");
  EXPECT_EQ(end(), 0) << shown();
  EXPECT_EQ(answers_so_far(), "");
}

TEST_F(Terminal, ControlCStopsTheAnswerAndTheConversationGoesOn) {
  const std::string whole = answers("Tell me.\n", kEndless);
  open(kEndless);
  ASSERT_TRUE(wait_for_prompts(1)) << shown();
  type("Tell me.\n");
  ASSERT_TRUE(wait_until([&] { return !answers_so_far().empty(); })) << shown();
  type("\x03");
  ASSERT_TRUE(wait_for_prompts(2)) << shown();
  std::string stopped = answers_so_far();
  ASSERT_TRUE(stopped.ends_with("\n"));
  stopped.pop_back();
  EXPECT_LT(stopped.size(), whole.size() - 1);
  EXPECT_EQ(stopped.substr(0, 8), whole.substr(0, 8));
  type("\x04");
  EXPECT_EQ(end(), 0) << shown();
}

TEST_F(Terminal, AMistakeIsAWarningAndTheConversationGoesOn) {
  open("--greedy --max-new-tokens 8");
  ASSERT_TRUE(wait_for_prompts(1)) << shown();
  type("/set top_p 7\n");
  ASSERT_TRUE(wait_for_prompts(2)) << shown();
  EXPECT_NE(shown().find("warning: "), std::string::npos) << shown();
  std::string long_text = "\"\"\"\n";  // longer than the model's positions
  for (int line = 0; line < 200; ++line) long_text += "1 2 3 4 5 6 7 8 9\n";
  type(long_text + "\"\"\"\n");
  ASSERT_TRUE(wait_for_prompts(3)) << shown();
  EXPECT_EQ(answers_so_far(), "");
  type("What is 2 + 2?\n");
  ASSERT_TRUE(wait_for_prompts(4)) << shown();
  EXPECT_NE(answers_so_far(), "");
  type("\"\"\"\n");
  ASSERT_TRUE(wait_until([&] { return shown().ends_with("... "); })) << shown();
  type("half a text");
  type("\x03");
  ASSERT_TRUE(wait_for_prompts(5)) << shown();
  type("/exit\n");
  EXPECT_EQ(end(), 0) << shown();
}

}  // namespace
}  // namespace convoy
