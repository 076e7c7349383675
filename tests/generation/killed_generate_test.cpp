// SPDX-License-Identifier: Apache-2.0
//
// Kills `convoy generate` again and again. The same command resumes from the finished answers, and
// the published file has the bytes of an unbroken run.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPrompts = 24;

class KilledGenerate : public ::testing::Test {
 protected:
  KilledGenerate() {
    const fs::path source = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples";
    std::ifstream sums(source / "sums/test.jsonl");
    std::ofstream prompts(folder_ / "prompts.jsonl");
    std::string line;
    for (int64_t row = 0; row < kPrompts && std::getline(sums, line); ++row)
      prompts << R"({"prompt": "Question: )" << row * 7 << " + " << row << R"( = ?\nAnswer:"})"
              << "\n";
  }

  std::string output() const { return (folder_ / "answers.jsonl").string(); }
  fs::path said() const { return folder_ / "said"; }
  fs::path journal() const { return output() + ".partial"; }

  // Starts the program; its messages go to the file said().
  pid_t start(const std::string& to, int64_t batch) const {
    const std::string program = std::string(std::getenv("CONVOY_BIN_DIR")) + "/convoy-worker";
    const std::string model = std::string(std::getenv("CONVOY_SOURCE_DIR")) + "/examples/tally-3m";
    const std::string prompts = (folder_ / "prompts.jsonl").string();
    const std::string rows = std::to_string(batch);
    const pid_t process = ::fork();
    if (process == 0) {
      ::dup2(::open(said().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      ::execl(program.c_str(), "convoy-worker", "generate", "--model", model.c_str(), "--prompts",
              prompts.c_str(), "--output", to.c_str(), "--batch-size", rows.c_str(),
              "--max-new-tokens", "40", "--n", "2", "--temperature", "0.9", nullptr);
      ::_exit(127);
    }
    return process;
  }

  static int end_of(pid_t process) {
    int status = 0;
    ::waitpid(process, &status, 0);
    return status;
  }

  int64_t finished_answers() const {
    int64_t lines = 0;
    if (!fs::exists(journal())) return 0;
    for (const auto& entry : fs::directory_iterator(journal())) {
      const std::string text = read_file(entry.path());
      lines += std::max<int64_t>(std::count(text.begin(), text.end(), '\n') - 1, 0);
    }
    return lines;
  }

  // Waits until `answers` answers are stored, or until the process has ended.
  bool wait_for(pid_t process, int64_t answers) const {
    while (finished_answers() < answers) {
      if (::waitpid(process, nullptr, WNOHANG) == process) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(KilledGenerate, GoesOnFromItsFinishedAnswers) {
  const std::string unbroken = (folder_ / "unbroken.jsonl").string();
  ASSERT_EQ(end_of(start(unbroken, 16)), 0);
  EXPECT_FALSE(fs::exists(unbroken + ".partial"));
  int64_t before = 0;
  for (const int64_t batch : {3, 1, 8}) {
    const pid_t process = start(output(), batch);
    ASSERT_TRUE(wait_for(process, before + 4));
    ::kill(process, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(end_of(process)));
    EXPECT_FALSE(fs::exists(output()));  // the file appears only when it is complete
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos) << entry.path();
    before = finished_answers();
    EXPECT_LT(before, 2 * kPrompts);
  }
  ASSERT_EQ(end_of(start(output(), 5)), 0);
  EXPECT_EQ(read_file(output()), read_file(unbroken));
  EXPECT_FALSE(fs::exists(journal()));
}

TEST_F(KilledGenerate, AStopSaysWhatIsKeptAndTheNextStartGoesOnFromThere) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t process = start(output(), 2);
    ASSERT_TRUE(wait_for(process, finished_answers() + 3));
    ::kill(process, signal);
    const int status = end_of(process);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 75) << read_file(said());
    const std::string words = read_file(said());
    EXPECT_NE(words.find(fmt::format("{} of 48 answers are finished and kept in {}",
                                     finished_answers(), journal().string())),
              std::string::npos)
        << words;
    EXPECT_NE(words.find("the same command resumes"), std::string::npos) << words;
    EXPECT_FALSE(fs::exists(output()));
  }
  const int64_t kept = finished_answers();
  ASSERT_EQ(end_of(start(output(), 1)), 0);
  // The first line of progress counts the answers that were stored before; its rate counts only new
  // answers.
  const std::string words = read_file(said());
  EXPECT_NE(words.find(fmt::format("generate: answer {}/48", kept + 1)), std::string::npos)
      << words;
  EXPECT_NE(words.find("generate: answer 48/48 100%"), std::string::npos) << words;
}

}  // namespace
}  // namespace convoy
