// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/tensorboard_beside.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/launch/reserved_port.h"

namespace convoy::apps {
namespace {

constexpr int kStopLimit_ms = 3000;

launch::RankProcess start_quietly(const std::string& script,
                                  const std::vector<std::string>& arguments) {
  launch::RankStart start;
  start.program = {"sh", "-c", script, "sh"};
  start.program.insert(start.program.end(), arguments.begin(), arguments.end());
  ::sigemptyset(&start.signals);
  return launch::start_rank(start);
}

bool succeeds(const std::string& script) {
  const launch::RankProcess process = start_quietly("exec >/dev/null 2>&1; " + script, {});
  int status = -1;
  ::waitpid(process.pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Empty where there is none.
std::vector<std::string> find_tensorboard() {
  if (succeeds("command -v tensorboard")) return {"tensorboard"};
  if (succeeds("python3 -c 'import tensorboard.main'"))
    return {"python3", "-m", "tensorboard.main"};
  return {};
}

}  // namespace

TensorBoardBeside::TensorBoardBeside(const std::filesystem::path& events,
                                     const std::filesystem::path& log_file, int64_t port,
                                     const Log& log)
    : events_(events), log_file_(log_file), log_(log) {
  const std::vector<std::string> program = find_tensorboard();
  if (!launch::port_is_free(static_cast<int>(port)))
    log_.warning(fmt::format(
        "no TensorBoard: port {} is taken; --tensorboard-port N takes another. The run goes on",
        port));
  else if (program.empty())
    log_.warning(
        "no TensorBoard: neither a program tensorboard nor Python's module is there (pip install "
        "tensorboard). The run goes on");
  else
    start(program, port);
}

void TensorBoardBeside::start(const std::vector<std::string>& program, int64_t port) {
  std::error_code ignored;
  std::filesystem::create_directories(events_, ignored);
  std::filesystem::create_directories(log_file_.parent_path(), ignored);
  std::vector<std::string> words = {log_file_.string()};
  words.insert(words.end(), program.begin(), program.end());
  words.insert(words.end(), {"--logdir", events_.string(), "--port", std::to_string(port)});
  // Its words go to a file: nobody reads a pipe while the ranks run.
  process_ = start_quietly("log=$1; shift; exec \"$@\" >\"$log\" 2>&1", words);
  log_.info(fmt::format("TensorBoard of this run: http://localhost:{}/, until it ends", port));
}

bool TensorBoardBeside::has_ended(int limit_ms) const {
  pollfd exited{process_.exited.get(), POLLIN, 0};
  return ::poll(&exited, 1, limit_ms) > 0;
}

TensorBoardBeside::~TensorBoardBeside() {
  if (process_.pid < 0) return;
  if (has_ended(0)) {
    log_.warning(
        fmt::format("TensorBoard ended before the run; its words are in {}", log_file_.string()));
  } else {
    launch::signal_group(process_.pid, SIGTERM);
    if (!has_ended(kStopLimit_ms)) log_.info("TensorBoard does not end, and is killed");
  }
  // What it has started goes with it.
  launch::signal_group(process_.pid, SIGKILL);
  ::waitpid(process_.pid, nullptr, 0);
  log_.info(fmt::format("TensorBoard has ended; `tensorboard --logdir {}` shows the run again",
                        events_.string()));
}

}  // namespace convoy::apps
