// SPDX-License-Identifier: Apache-2.0
//
// Rewards of real programs.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/farm/rewards/reward.h"

namespace convoy::rewards {
namespace {

namespace fs = std::filesystem;

settings::RewardSettings program(const std::string& command, double timeout_s = 60) {
  settings::RewardSettings settings;
  settings.kind = "command";
  settings.name = "grader";
  settings.command = command;
  settings.timeout_s = timeout_s;
  return settings;
}

std::vector<JudgedText> numbered(size_t count) {
  std::vector<JudgedText> texts(count);
  for (size_t at = 0; at < count; ++at) {
    texts[at].prompt = "p";
    texts[at].text = std::to_string(at);
    texts[at].row = {{"level", at}};
    texts[at].row_number = static_cast<int64_t>(at) + 10;
    texts[at].sample = 1;
  }
  return texts;
}

bool goes_on() { return false; }

// The message of the DataError.
std::string fault_of(Reward& reward, const std::vector<JudgedText>& texts) {
  try {
    reward.values(texts, goes_on);
  } catch (const DataError& error) {
    EXPECT_FALSE(error.location().hint.empty());
    return error.what();
  }
  return "no error";
}

std::string fault_of(const std::string& command, size_t texts, double timeout_s = 60) {
  return fault_of(*make_reward(program(command, timeout_s)), numbered(texts));
}

// A command that runs a Python program.
std::string python(const std::string& body) {
  static int number = 0;
  const fs::path file =
      fs::path(::testing::TempDir()) / ("grader" + std::to_string(++number) + ".py");
  std::ofstream(file) << "import json, sys\n" << body;
  return "python3 " + file.string();
}

TEST(CommandReward, ReadsLinesAndWritesNumbersInOrder) {
  const auto reward = make_reward(program(python(
      "for line in sys.stdin:\n"
      "    seen = json.loads(line)\n"
      "    assert list(seen) == ['prompt', 'text', 'answers', 'row', 'tokens', 'truncated'], seen\n"
      "    print(float(seen['text']) / 4 + seen['row']['level'])\n")));
  EXPECT_EQ(reward->values(numbered(3), goes_on), (std::vector<double>{0, 1.25, 2.5}));
  EXPECT_EQ(reward->values({}, goes_on), std::vector<double>());
}

TEST(CommandReward, IsStartedOnceForAllSteps) {
  const auto reward = make_reward(program("n=0; while read line; do n=$((n+1)); echo $n; done"));
  EXPECT_EQ(reward->values(numbered(2), goes_on), (std::vector<double>{1, 2}));
  EXPECT_EQ(reward->values(numbered(3), goes_on), (std::vector<double>{3, 4, 5}));
}

// More than the pipes hold in either direction.
TEST(CommandReward, ManyLongTextsDoNotBlock) {
  std::vector<JudgedText> texts = numbered(20'000);
  for (JudgedText& text : texts) text.prompt = std::string(200, 'x');
  const auto reward =
      make_reward(program("while read line; do echo 0.1250000000000000000000; done"));
  EXPECT_EQ(reward->values(texts, goes_on), std::vector<double>(20'000, 0.125));
}

TEST(CommandReward, TextsThatAreNotUtf8AndLineBreaksStayOneLineEach) {
  std::vector<JudgedText> texts = numbered(2);
  texts[0].text = "\xff\n\"";
  const auto reward = make_reward(
      program(python("for line in sys.stdin:\n    print(len(json.loads(line)['text']))\n")));
  EXPECT_EQ(reward->values(texts, goes_on), (std::vector<double>{3, 1}));
}

TEST(CommandReward, ALineThatIsNoFiniteNumberIsAnErrorOfItsRow) {
  for (const char* word : {"abc", "nan", "inf", "-inf", "1e999", "1 2", "", "None", "0x10"})
    EXPECT_EQ(fault_of(std::string("read a; echo 1; read b; echo '") + word + "'; sleep 100", 2),
              std::string("reward `grader`: row 11, sample 1: wanted a line with one finite "
                          "number, found `") +
                  word + "`")
        << word;
}

TEST(CommandReward, TooFewAndTooManyLinesAreErrors) {
  EXPECT_EQ(fault_of("read a; echo 1", 3),
            "reward `grader`: row 11, sample 1: the program ended with exit code 0 after 1 of 3 "
            "numbers");
  EXPECT_EQ(fault_of("read a; printf '1\\n2\\n3\\n'; sleep 100", 1),
            "reward `grader`: row 10, sample 1: the program wrote more lines than it was given "
            "texts: `2`");
  // The surplus line comes after the step.
  const fs::path go = fs::path(::testing::TempDir()) / "reward_go";
  const fs::path done = fs::path(::testing::TempDir()) / "reward_done";
  fs::remove(go);
  fs::remove(done);
  const auto late = make_reward(program("read a; echo 1; while [ ! -e " + go.string() +
                                        " ]; do sleep 0.01; done; echo 2; touch " + done.string() +
                                        "; sleep 100"));
  EXPECT_EQ(late->values(numbered(1), goes_on), (std::vector<double>{1}));
  std::ofstream(go) << "";
  while (!fs::exists(done)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(fault_of(*late, numbered(1)),
            "reward `grader`: row 10, sample 1: before it got this text, the program wrote more "
            "lines than it was given texts: `2`");
}

TEST(CommandReward, NumbersAreTakenAsTheyCome) {
  std::vector<double> taken;
  const auto ask = [&](const std::string& command) {
    taken.clear();
    make_reward(program(command))->ask(numbered(2), goes_on, [&](size_t text, double value) {
      EXPECT_EQ(text, taken.size());
      taken.push_back(value);
    });
  };
  try {
    ask("read a; echo 0.5; exit 3");
    FAIL() << "a number is missing";
  } catch (const MisplacedNumbers&) {
    FAIL() << "its number is of its text";
  } catch (const DataError&) {
  }
  EXPECT_EQ(taken, (std::vector<double>{0.5}));
  // A line too many may be the first one.
  EXPECT_THROW(ask("read a; read b; printf '7\\n1\\n2\\n'; sleep 100"), MisplacedNumbers);
}

TEST(CommandReward, AnExitCodeAndASignalAreToldWithTheProgramsWords) {
  EXPECT_EQ(fault_of("echo 'no such model' >&2; exit 3", 1),
            "reward `grader`: row 10, sample 1: the program ended with exit code 3 after 0 of 1 "
            "numbers; the program wrote: no such model");
  EXPECT_EQ(
      fault_of("read a; echo 1; kill -9 $$", 2),
      "reward `grader`: row 11, sample 1: the program was ended by SIGKILL after 1 of 2 numbers");
  const std::string words =
      fault_of(python("sys.stdin.readline()\nraise ValueError('bad row')\n"), 1);
  EXPECT_NE(words.find("exit code 1"), std::string::npos) << words;
  EXPECT_NE(words.find("ValueError: bad row"), std::string::npos) << words;
  EXPECT_NE(fault_of("no-such-program-here", 1).find("exit code 127"), std::string::npos);
}

TEST(CommandReward, AProgramThatHangsIsKilledAtItsLimit) {
  const fs::path file = fs::path(::testing::TempDir()) / "reward_child_pid";
  const std::string fault =
      fault_of("read a; echo 1; sleep 1000 & echo $! > " + file.string() + "; wait", 2, 0.3);
  EXPECT_EQ(fault,
            "reward `grader`: row 11, sample 1: no number within 0.3 s (timeout_s), after 1 of 2 "
            "numbers");
  // Its children are killed too: the process is gone, or a zombie that nobody has reaped yet.
  std::string child;
  std::ifstream(file) >> child;
  for (int tries = 0; tries < 1000; ++tries) {
    std::ifstream status("/proc/" + child + "/stat");
    std::string line;
    if (!std::getline(status, line) || line.find(") Z") != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "process " << child << " is still there";
}

TEST(CommandReward, TheLimitCountsFromTheLastNumber) {
  const auto slow = make_reward(program("while read a; do sleep 0.5; echo 1; done", 2));
  EXPECT_EQ(slow->values(numbered(6), goes_on), std::vector<double>(6, 1));
}

TEST(CommandReward, AProgramThatClosesAPipeIsNotWaitedFor) {
  EXPECT_EQ(
      fault_of("exec 1>&-; sleep 1000", 1),
      "reward `grader`: row 10, sample 1: the program closed its stdout after 0 of 1 numbers");
  EXPECT_EQ(fault_of("read a; echo 1; exec 1>&-; echo 'no more' >&2; sleep 0.1; exit 5", 2),
            "reward `grader`: row 11, sample 1: the program ended with exit code 5 after 1 of 2 "
            "numbers; the program wrote: no more");
  EXPECT_EQ(fault_of("exec 0<&-; sleep 1000", 1),
            "reward `grader`: row 10, sample 1: the program closed its stdin after 0 of 1 numbers");
  // Nothing is missing yet: it has read all that there was.
  const auto once = make_reward(program("read a; exec 0<&-; sleep 0.2; echo 1; sleep 1000"));
  EXPECT_EQ(once->values(numbered(1), goes_on), std::vector<double>{1});
  EXPECT_EQ(fault_of(*once, numbered(1)),
            "reward `grader`: row 10, sample 1: the program closed its stdin after 0 of 1 numbers");
}

TEST(CommandReward, AStopRequestEndsAStep) {
  const auto reward = make_reward(program("read a; sleep 1000"));
  int asked = 0;
  EXPECT_THROW(reward->values(numbered(1), [&] { return ++asked > 2; }), StopRequest);
}

// The end of the step would be missed if the process died by SIGPIPE.
TEST(CommandReward, AProgramThatReadsNothingIsAnError) {
  std::vector<JudgedText> texts = numbered(1);
  texts[0].text = std::string(1 << 20, 'x');
  const auto reward = make_reward(program("exec 0<&-; sleep 0.2; exit 4"));
  EXPECT_EQ(fault_of(*reward, texts),
            "reward `grader`: row 10, sample 1: the program ended with exit code 4 after 0 of 1 "
            "numbers");
}

}  // namespace
}  // namespace convoy::rewards
