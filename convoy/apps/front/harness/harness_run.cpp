// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/harness_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>

#include "convoy/apps/front/harness/harness_server.h"
#include "convoy/apps/front/harness/harness_table.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/processes/program_check.h"
#include "convoy/machine/processes/run_child.h"
#include "convoy/machine/processes/scratch_folder.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServedName = "model";
constexpr const char* kAdapterName = "adapter";
// Requests that the harness has open at once. They are more than the rows of an engine on CPUs, so
// that no place of a step stays empty.
constexpr int kOpenRequests = 32;
constexpr std::chrono::milliseconds kLookAtHarness(100);
constexpr const char* kHarnessLog = "harness.log";

// The Python in the first line of the script lm_eval.
std::string python_of_script(const fs::path& script) {
  std::ifstream file(script);
  std::string line;
  std::getline(file, line);
  return line.starts_with("#!/") && line.find(' ') == std::string::npos ? line.substr(2) : "";
}

Words server_words(const MeasuredModel& model) {
  Words words = {"--host", "127.0.0.1", "--port", "0", "--served-name", kServedName};
  if (!model.adapter.empty())
    words.insert(words.end(), {"--adapter", fmt::format("{}={}", kAdapterName, model.adapter)});
  words.insert(words.end(), model.server_words.begin(), model.server_words.end());
  return words;
}

Words harness_words(const std::string& python, const settings::HarnessSettings& wanted,
                    std::string_view name, const HarnessServer& server, const fs::path& folder) {
  const std::string path = wanted.chat ? "chat/completions" : "completions";
  // No limit of time: on CPUs an answer may wait long for its turn.
  std::string model = fmt::format(
      "model={},base_url={}/{},num_concurrent={},max_retries=1,timeout=604800,max_length={}", name,
      server.url(), path, kOpenRequests, server.max_positions());
  if (!wanted.chat) model += ",tokenizer_backend=remote";
  Words words = {python,          "-m",
                 "lm_eval",       "run",
                 "--model",       wanted.chat ? "local-chat-completions" : "local-completions",
                 "--model_args",  model,
                 "--tasks",       fmt::format("{}", fmt::join(wanted.tasks.names, ",")),
                 "--output_path", folder.string()};
  const auto add = [&words](bool is_given, const Words& more) {
    if (is_given) words.insert(words.end(), more.begin(), more.end());
  };
  add(wanted.chat, {"--apply_chat_template"});
  add(wanted.limit > 0, {"--limit", std::to_string(wanted.limit)});
  add(wanted.num_fewshot >= 0, {"--num_fewshot", std::to_string(wanted.num_fewshot)});
  add(!wanted.tasks_folder.empty(), {"--include_path", wanted.tasks_folder});
  return words;
}

// The harness asks the server without a proxy of this machine.
std::map<std::string, std::string> harness_environment() {
  std::map<std::string, std::string> variables;
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const std::string given = environment_text(name);
    variables[name] = given + (given.empty() ? "" : ",") + "127.0.0.1,localhost";
  }
  return variables;
}

void run_harness(const Words& words, const HarnessFolder& folder, bool is_quiet,
                 const StopTest& stop) {
  std::ofstream log(folder.path / kHarnessLog);
  std::string said;
  const auto take = [&](std::string_view text) {
    log << text << std::flush;
    if (!is_quiet) std::cerr << text << std::flush;
    said += text;
  };
  processes::ChildProcess child =
      processes::start_child({.program = words, .environment = harness_environment()});
  for (bool has_ended = false; !has_ended;) {
    has_ended = processes::ends_within(child, kLookAtHarness);
    // The table of the harness is left out: its figures are printed when it has ended.
    log << processes::read_available(child.output);
    take(processes::read_available(child.errors));
    if (!has_ended && stop()) {
      end_process(child);
      throw StopRequest("stopped on request");
    }
  }
  if (processes::wait_for_child(child.pid).success()) return;
  throw DataError(fmt::format("the harness failed: {}", last_lines(said)),
                  {.hint = fmt::format("read all messages in {}", folder.log(kHarnessLog))});
}

}  // namespace

std::string find_harness(const settings::HarnessSettings& wanted, const std::string& key) {
  std::error_code ignored;
  if (!wanted.tasks_folder.empty() && !fs::is_directory(wanted.tasks_folder, ignored))
    throw ConfigError(fmt::format("{} is no folder", wanted.tasks_folder),
                      {.key = key.starts_with("--") ? "--tasks-folder" : "eval.tasks_folder",
                       .hint = "name the folder of the tasks' YAML files"});
  std::string python = wanted.harness_python;
  if (python.empty())
    if (const fs::path script = processes::program_file("lm_eval"); !script.empty())
      python = python_of_script(script);
  if (python.empty()) python = "python3";
  const processes::ProgramProblem problem = processes::program_problem(python);
  if (problem.any()) throw ConfigError(problem.found, {.key = key, .hint = problem.to_do});
  const processes::ChildResult tried = processes::run_child(
      {.program = {python, "-c", "import lm_eval, aiohttp, tenacity, tqdm, requests"}});
  if (!tried.end.success())
    throw ConfigError(fmt::format("{} has no lm-evaluation-harness for servers", python),
                      {.key = key,
                       .hint = fmt::format(
                           "{} -m pip install \"lm-eval[api]\", or name another Python", python)});
  return python;
}

nlohmann::ordered_json measure_tasks(const Context& context,
                                     const settings::HarnessSettings& wanted,
                                     const std::string& python, const MeasuredModel& model,
                                     const HarnessFolder& folder) {
  const fs::path& path = folder.path;
  std::error_code refused;
  fs::create_directories(path, refused);
  if (refused)
    throw IoError(fmt::format("{} cannot be made: {}", path.string(), refused.message()),
                  {.file = path.string(), .hint = "name a folder that can be written"});
  const std::set<fs::path> former = results_files(path);
  std::vector<int> stop_signals = processes::default_stop_signals();
  stop_signals.push_back(SIGUSR1);
  processes::SignalStream signals(stop_signals);
  const StopTest stop = [&signals] { return signals.asked_to_stop(); };
  {
    const HarnessServer server(context.program, server_words(model), folder, stop);
    const std::string_view name = model.adapter.empty() ? kServedName : kAdapterName;
    run_harness(harness_words(python, wanted, name, server, path), folder, context.common.quiet,
                stop);
  }
  return read_harness_results(folder, former);
}

int run_harness_command(const Context& context, const HarnessFlags& flags,
                        const Words& server_words) {
  const std::string python = find_harness(flags, "--harness-python");
  std::optional<processes::ScratchFolder> scratch;
  HarnessFolder folder{.path = flags.output_dir, .stays = !flags.output_dir.empty()};
  if (!folder.stays) {
    scratch.emplace().make();
    folder.path = scratch->path();
  }
  const nlohmann::ordered_json results =
      measure_tasks(context, flags, python, {server_words, flags.adapter}, folder);
  if (folder.stays) write_file_atomic(folder.path / "tasks.json", results.dump(2) + "\n");
  std::cout << (context.common.json ? results.dump() + "\n" : harness_table(results)) << std::flush;
  return 0;
}

}  // namespace convoy::apps
