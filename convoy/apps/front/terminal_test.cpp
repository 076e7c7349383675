// SPDX-License-Identifier: Apache-2.0
//
// Tests the front on a terminal: the form of its errors, and the questions of `convoy init`.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

using convoy::testing::TemporaryFolder;

struct Session {
  int code = -1;
  std::string shown;  // includes the typed text

  int times(const std::string& words) const {
    int count = 0;
    for (size_t at = shown.find(words); at != std::string::npos; at = shown.find(words, at + 1))
      ++count;
    return count;
  }
};

class Terminal : public ::testing::Test {
 protected:
  Terminal() {
    const std::filesystem::path source = std::getenv("CONVOY_SOURCE_DIR");
    std::filesystem::create_directory_symlink(source / "examples", folder_ / "examples");
  }

  // Runs `convoy ARGUMENTS` with all streams on a terminal on which `typed` is typed.
  Session run(const std::string& arguments, const std::string& typed = "") const {
    const std::string command = "cd '" + folder_.path().string() + "' && exec '" +
                                std::getenv("CONVOY_BIN_DIR") + "/convoy' " + arguments;
    int terminal = -1;
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    Session session;
    EXPECT_EQ(::write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    char bytes[4096];
    // A read fails once the program has closed its end.
    for (ssize_t count; (count = ::read(terminal, bytes, sizeof bytes)) > 0;)
      session.shown.append(bytes, static_cast<size_t>(count));
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(terminal);
    if (WIFEXITED(status)) session.code = WEXITSTATUS(status);
    return session;
  }

  TemporaryFolder folder_;
};

TEST_F(Terminal, AnErrorIsForPeople) {
  const Session session = run("config show --orgin");
  EXPECT_EQ(session.code, 2);
  EXPECT_EQ(session.shown, "convoy: unknown flag --orgin, did you mean --origin?\r\n");
}

TEST_F(Terminal, HelpFitsTheTerminalAndStaysInItsColumn) {
  const Session session = run("launch --help-all");
  EXPECT_EQ(session.code, 0);
  size_t num_continued = 0;
  std::istringstream lines(session.shown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) {
      EXPECT_LE(line.size(), 81u) << line;  // includes the \r
    }
    num_continued += line.starts_with(std::string(35, ' '));
  }
  EXPECT_GT(num_continued, 5u) << session.shown;
}

TEST_F(Terminal, WithJsonAnErrorIsForPrograms) {
  const Session session = run("config show --orgin --json");
  EXPECT_EQ(session.code, 2);
  EXPECT_EQ(session.shown.front(), '{') << session.shown;
  EXPECT_EQ(nlohmann::json::parse(session.shown)["message"],
            "unknown flag --orgin, did you mean --origin?");
}

TEST_F(Terminal, ARankThatFailsIsToldOfOnce) {
  const Session people = run("launch --nproc 2 --no-python sh -c 'exit 3'");
  EXPECT_NE(people.code, 0);
  EXPECT_EQ(people.shown.find("{\""), std::string::npos) << people.shown;
  EXPECT_NE(people.shown.find("convoy: "), std::string::npos) << people.shown;
  const Session programs = run("launch --json --nproc 2 --no-python sh -c 'exit 3'");
  EXPECT_EQ(programs.shown.find("convoy: "), std::string::npos) << programs.shown;
  EXPECT_NE(programs.shown.find("{\""), std::string::npos) << programs.shown;
}

TEST_F(Terminal, InitChecksEachAnswerAndAsksAgain) {
  write_file_atomic(folder_ / "broken.jsonl", "{\"zzz\": 1}\n");
  const Session session = run("init",
                              "/nowhere/model\nexamples/tally-3m\n"
                              "nothing.jsonl\nbroken.jsonl\nexamples/sums/train.jsonl\n"
                              "cpuu\ncpu\nlorra\nlora\n");
  EXPECT_EQ(session.code, 0) << session.shown;
  EXPECT_EQ(session.times("Model (folder"), 2) << session.shown;
  EXPECT_EQ(session.times("Training rows ("), 3) << session.shown;
  EXPECT_EQ(session.times("Hardware ("), 2) << session.shown;
  EXPECT_EQ(session.times("What trains ("), 2) << session.shown;
  const std::string written = read_file(folder_ / "train.yaml");
  EXPECT_NE(written.find("name: \"examples/tally-3m\""), std::string::npos) << written;
  EXPECT_NE(written.find("train_path: \"examples/sums/train.jsonl\""), std::string::npos);
}

TEST_F(Terminal, NoInputAsksNothing) {
  const Session session = run("init --no-input --data examples/sums/train.jsonl");
  EXPECT_EQ(session.code, 2);
  EXPECT_EQ(session.shown.rfind("convoy: --no-input forbids questions, and --model is not", 0), 0u)
      << session.shown;
  std::filesystem::create_directories(folder_ / "runs/dead");
  write_file_atomic(folder_ / "runs/dead/events.jsonl",
                    "{\"event\":\"start\",\"time\":1.0,\"total_steps\":1}\n");
  const Session clean = run("runs clean dead --no-input", "n\n");
  EXPECT_EQ(clean.code, 2);
  EXPECT_NE(clean.shown.find("--no-input forbids questions, and 1 run would be removed"),
            std::string::npos)
      << clean.shown;
}

TEST_F(Terminal, InitKeepsWhatIsGivenTwice) {
  const Session session = run("init",
                              "Qwen/Qwen2.5-7B-Instruct\nQwen/Qwen2.5-7B-Instruct\n"
                              "far.jsonl\nfar.jsonl\n\n\n");
  EXPECT_EQ(session.code, 0) << session.shown;
  EXPECT_EQ(session.times("enter it again to keep it"), 2) << session.shown;
  EXPECT_NE(read_file(folder_ / "train.yaml").find("far.jsonl"), std::string::npos);
}

TEST_F(Terminal, InitKeepsTheAnswersWhenItEndsEarly) {
  constexpr const char* kEndOfInput = "\x04";
  const Session session = run("init", std::string("examples/tally-3m\n") + kEndOfInput);
  EXPECT_EQ(session.code, 2);
  EXPECT_NE(session.shown.find("convoy init --model examples/tally-3m"), std::string::npos)
      << session.shown;
}

}  // namespace
}  // namespace convoy::apps
