// SPDX-License-Identifier: Apache-2.0
#include "resume/train_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "convoy/core/base/files.h"
#include "convoy/core/io/snapshot_store.h"
#include "convoy/core/telemetry/logs/event_log.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{2};
// The limit of a wait. At twenty times the usual load the longest wait takes minutes.
constexpr std::chrono::seconds kPatience{1200};

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream list(fmt::format("/proc/{}/task/{}/children", parent, parent));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

std::string command_name(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name;
}

std::string row_text(int64_t number) {
  const int64_t left = 7 * number % 11 + 2;
  const int64_t right = 5 * number % 7 + 1;
  // The rows have many lengths, so batches have padding and blocks hold several rows.
  std::string question = fmt::format("{} + {}", left, right);
  int64_t sum = left + right;
  for (int64_t term = 0; term < number % 5; ++term) {
    question += fmt::format(" + {}", term + 1);
    sum += term + 1;
  }
  return nlohmann::json{{"prompt", question + " ="}, {"completion", fmt::format(" {}", sum)}}
             .dump() +
         "\n";
}

std::string rows_text(int64_t first, int64_t count) {
  std::string text;
  for (int64_t number = first; number < first + count; ++number) text += row_text(number);
  return text;
}

std::string config_text(const fs::path& folder) {
  return fmt::format(
      R"(seed: 7
model: {{name: {}/examples/tally-3m, max_seq_len: 64}}
tuning: {{mode: lora, lora: {{r: 4, alpha: 8, dropout: 0.1}}}}
train:
  epochs: 3
  batch_size: 2
  grad_accum: 2
  learning_rate: 2e-3
  bf16: false
  save_steps: 1
  save_total_limit: 2
  eval_strategy: "no"
  final_eval: false
logging: {{backend: none}}
data: {{train_path: {}, val_path: {}, cache_dir: none}}
)",
      std::getenv("CONVOY_SOURCE_DIR"), (folder / "rows.jsonl").string(),
      (folder / "val.jsonl").string());
}

std::map<int64_t, double> losses_of(const fs::path& run_folder, const std::string& word) {
  std::map<int64_t, double> losses;
  for (const auto& event : telemetry::read_events(run_folder / "events.jsonl"))
    if (event["event"] == word) losses[event["step"].get<int64_t>()] = event["loss"];
  return losses;
}

}  // namespace

Settings operator+(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TrainProcess::TrainProcess(const std::vector<std::string>& arguments, const fs::path& errors_file)
    : errors_file_(errors_file) {
  // Ranks of a killed launcher become children of this process, so none of them can escape.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), fmt::format("{}/convoy", std::getenv("CONVOY_BIN_DIR")));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  const int errors = ::open(errors_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(errors, STDERR_FILENO);
    ::dup2(errors, STDOUT_FILENO);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  ::close(errors);
  if (pid_ < 0) throw std::runtime_error("fork");
}

TrainProcess::~TrainProcess() {
  if (!reaped_) kill_everything();
}

std::vector<pid_t> TrainProcess::descendants() const {
  std::vector<pid_t> all = {pid_};
  for (size_t index = 0; index < all.size(); ++index)
    for (const pid_t child : children_of(all[index])) all.push_back(child);
  return all;
}

std::vector<pid_t> TrainProcess::ranks() const {
  std::vector<pid_t> ranks;
  for (const pid_t process : descendants())
    if (process != pid_ && command_name(process) == "convoy-worker") ranks.push_back(process);
  return ranks;
}

// The ranks that lost their launcher are children of this process now. Convoy promises that they
// end by themselves.
void TrainProcess::reap_orphans() {
  const auto deadline = Clock::now() + kPatience;
  while (true) {
    size_t num_alive = 0;
    for (const pid_t child : children_of(::getpid()))
      if (command_name(child) == "convoy-worker" && ::waitpid(child, nullptr, WNOHANG) == 0) {
        ++num_alive;
        if (Clock::now() > deadline) ::kill(child, SIGKILL);
      }
    if (num_alive == 0) return;
    if (Clock::now() > deadline) ADD_FAILURE() << "ranks outlived their launcher";
    std::this_thread::sleep_for(kPoll);
  }
}

bool TrainProcess::running() {
  if (reaped_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = shell_status(status);
  reaped_ = true;
  return false;
}

Ended TrainProcess::wait() {
  const auto deadline = Clock::now() + kPatience;
  while (running()) {
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "convoy train did not end:\n" << read_file(errors_file_);
      kill_everything();
      break;
    }
    std::this_thread::sleep_for(kPoll);
  }
  reap_orphans();
  return {status_, read_file(errors_file_)};
}

void TrainProcess::signal(int number) const { ::kill(pid_, number); }

void TrainProcess::kill_everything() {
  // All processes are stopped first, parents before children, so that none can start, clean up or
  // continue while the others are found.
  for (const pid_t process : descendants()) ::kill(process, SIGSTOP);
  const std::vector<pid_t> all = descendants();
  for (const pid_t process : all) ::kill(process, SIGKILL);
  int status = 0;
  if (!reaped_ && ::waitpid(pid_, &status, 0) == pid_) status_ = shell_status(status);
  reaped_ = true;
  reap_orphans();
}

bool TrainProcess::wait_until(const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (!running() || Clock::now() > deadline) return condition();
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

TrainFixture::TrainFixture() {
  write_file_atomic(folder_ / "rows.jsonl", rows_text(0, 23));
  set_validation_rows(6);
  write_file_atomic(folder_ / "run.yaml", config_text(folder_.path()));
}

void TrainFixture::set_validation_rows(int64_t count) const {
  write_file_atomic(folder_ / "val.jsonl", rows_text(40, count));
}

std::vector<std::string> TrainFixture::command(const std::string& name,
                                               const std::vector<std::string>& settings) const {
  std::vector<std::string> arguments = {"train", (folder_ / "run.yaml").string()};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  arguments.insert(arguments.end(), {"--output-dir", run_folder(name).string()});
  return arguments;
}

TrainProcess TrainFixture::start(const std::string& name,
                                 const std::vector<std::string>& settings) const {
  static int number = 0;
  return TrainProcess(command(name, settings), folder_ / fmt::format("errors-{}", ++number));
}

Ended TrainFixture::run(const std::string& name, const std::vector<std::string>& settings) const {
  return start(name, settings).wait();
}

fs::path TrainFixture::checkpoint(const std::string& name, int64_t step) const {
  return run_folder(name) / "checkpoints" / io::snapshot_folder_name(step);
}

std::vector<int64_t> TrainFixture::checkpoint_steps(const std::string& name) const {
  return io::SnapshotStore(run_folder(name) / "checkpoints", 1).steps();
}

std::map<int64_t, double> TrainFixture::losses(const std::string& name) const {
  return losses_of(run_folder(name), "step");
}

std::map<int64_t, double> TrainFixture::evaluation_losses(const std::string& name) const {
  return losses_of(run_folder(name), "eval");
}

int64_t TrainFixture::num_events(const std::string& name, const std::string& word) const {
  std::ifstream file(run_folder(name) / "events.jsonl");
  int64_t count = 0;
  for (std::string line; std::getline(file, line);)
    count += line.find(fmt::format("\"event\":\"{}\"", word)) != std::string::npos ? 1 : 0;
  return count;
}

bool TrainFixture::has_event(const std::string& name, const std::string& word, int64_t step) const {
  std::ifstream file(run_folder(name) / "events.jsonl");
  for (std::string line; std::getline(file, line);)
    if (line.find(fmt::format("\"event\":\"{}\"", word)) != std::string::npos &&
        line.find(fmt::format("\"step\":{},", step)) != std::string::npos)
      return true;
  return false;
}

std::string TrainFixture::weights(const std::string& name) const {
  const fs::path adapter = run_folder(name) / "adapter" / "adapter_model.safetensors";
  return read_file(fs::exists(adapter) ? adapter : run_folder(name) / "model/model.safetensors");
}

void expect_same_result(const TrainFixture& fixture, const std::string& expected,
                        const std::string& found) {
  EXPECT_EQ(fixture.losses(expected), fixture.losses(found));
  // EXPECT_EQ would print a difference as megabytes.
  EXPECT_TRUE(fixture.weights(expected) == fixture.weights(found)) << "the weights differ";
}

}  // namespace convoy::testing
