// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/tensorboard_beside.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/machine/processes/reserved_port.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::apps {
namespace {

constexpr std::chrono::milliseconds kTensorBoardStopLimit{3000};

processes::ChildStart shell(const std::string& script,
                            const std::vector<std::string>& arguments = {}) {
  processes::ChildStart start{.program = {"sh", "-c", script, "sh"}};
  start.program.insert(start.program.end(), arguments.begin(), arguments.end());
  return start;
}

bool succeeds(const std::string& script) {
  return processes::run_child(shell(script)).end.success();
}

// The command that starts TensorBoard; empty when it is not installed.
std::vector<std::string> find_tensorboard() {
  if (succeeds("command -v tensorboard")) return {"tensorboard"};
  if (succeeds("python3 -c 'import tensorboard.main'"))
    return {"python3", "-m", "tensorboard.main"};
  return {};
}

// A server that stays running, for the runs in a folder.
struct Standing {
  pid_t pid = -1;
  int64_t port = 0;

  std::string sentence(const std::filesystem::path& runs) const {
    return fmt::format("TensorBoard of the runs in {}: http://localhost:{}/; `kill {}` ends it",
                       runs.string(), port, pid);
  }
};

// Empty when there is no server or its process has ended. Another process may have the same process
// number now.
std::optional<Standing> find_standing(const std::filesystem::path& runs) {
  Standing found;
  std::ifstream file(runs / "tensorboard.pid");
  if (!(file >> found.pid >> found.port) || found.pid <= 1) return std::nullopt;
  std::ifstream command(fmt::format("/proc/{}/cmdline", found.pid));
  const std::string words(std::istreambuf_iterator<char>(command), {});
  return words.find("tensorboard") == std::string::npos ? std::nullopt : std::optional(found);
}

}  // namespace

TensorBoardBeside::TensorBoardBeside(TensorBoardPlan plan, const Log& log)
    : plan_(std::move(plan)), log_(log) {
  // The end of the run logs the address.
  if (plan_.stays && find_standing(plan_.events)) return;
  std::vector<std::string> program = find_tensorboard();
  if (!processes::port_is_free(static_cast<int>(plan_.port)))
    log_.warning(fmt::format(
        "no TensorBoard: port {} is taken; --tensorboard-port N takes another. The run goes on",
        plan_.port));
  else if (program.empty())
    log_.warning(
        "no TensorBoard: neither a program tensorboard nor Python's module is there (pip install "
        "tensorboard). The run goes on");
  else
    start(std::move(program));
}

void TensorBoardBeside::start(std::vector<std::string> program) {
  std::error_code ignored;
  std::filesystem::create_directories(plan_.events, ignored);
  std::filesystem::create_directories(plan_.log_file.parent_path(), ignored);
  std::vector<std::string> words = {plan_.log_file.string()};
  words.insert(words.end(), program.begin(), program.end());
  words.insert(words.end(),
               {"--logdir", plan_.events.string(), "--port", std::to_string(plan_.port)});
  // TensorBoard writes its output to a file: no process reads a pipe while the ranks run.
  if (!plan_.stays) {
    process_ = processes::start_child(shell("log=$1; shift; exec \"$@\" >\"$log\" 2>&1", words));
    log_.info(
        fmt::format("TensorBoard of this run: http://localhost:{}/, until it ends", plan_.port));
    return;
  }
  // The shell's child is not a child of this process and gets no signal when it ends.
  words.insert(words.begin(),
               {(plan_.events / "tensorboard.pid").string(), std::to_string(plan_.port)});
  processes::run_child(shell(
      "file=$1 port=$2 log=$3; shift 3; \"$@\" >\"$log\" 2>&1 & echo $! $port >\"$file\"", words));
  if (const std::optional<Standing> standing = find_standing(plan_.events))
    log_.info(standing->sentence(plan_.events));
}

TensorBoardBeside::~TensorBoardBeside() {
  if (process_.pid >= 0)
    end();
  else if (const auto standing = plan_.stays ? find_standing(plan_.events) : std::nullopt)
    log_.info(standing->sentence(plan_.events));
}

void TensorBoardBeside::end() {
  if (processes::ends_within(process_, std::chrono::milliseconds(0))) {
    log_.warning(fmt::format("TensorBoard ended before the run; its output is in {}",
                             plan_.log_file.string()));
  } else {
    processes::signal_group(process_.pid, SIGTERM);
    if (!processes::ends_within(process_, kTensorBoardStopLimit))
      log_.info("TensorBoard does not end, and is killed");
  }
  // The signal also ends the processes that TensorBoard has started.
  processes::signal_group(process_.pid, SIGKILL);
  processes::wait_for_child(process_.pid);
  log_.info(fmt::format("TensorBoard has ended; `tensorboard --logdir {}` shows the run again",
                        plan_.events.string()));
}

}  // namespace convoy::apps
