// SPDX-License-Identifier: Apache-2.0
//
// `convoy submit`: writes the batch script or manifest of a command for a job system, and submits
// it.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/launch/rendezvous/job_token.h"
#include "convoy/launch/submit/engine_tool.h"
#include "convoy/launch/submit/job_text.h"
#include "convoy/launch/submit/submitted_command.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using launch::SubmitSettings;

std::string job_text(const SubmitSettings& settings, const std::vector<std::string>& command) {
  if (settings.engine == "slurm") return launch::slurm_script(settings, command);
  if (settings.engine == "mpi") return launch::mpi_script(settings, command);
  return launch::kubernetes_manifest(settings, command, rendezvous::JobToken::new_secret());
}

// Files made during its lifetime are readable only by their owner.
class PrivateFiles {
 public:
  PrivateFiles() : kept_(::umask(077)) {}
  ~PrivateFiles() { ::umask(kept_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  mode_t kept_;
};

// A manifest contains the job's secret; a script must be executable.
void write_job(const fs::path& path, const SubmitSettings& settings, const std::string& text) {
  {
    const PrivateFiles owner_only;
    write_file_atomic(path, text);
  }
  if (settings.engine != "kubernetes") fs::permissions(path, fs::perms::owner_all);
}

void make_log_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    throw IoError(
        fmt::format("the log folder {} cannot be made: {}", folder.string(), failure.message()),
        {.file = folder.string(),
         .hint = "check permissions, or name another folder with --log-dir"});
}

// sbatch passes variables by name and ignores one that is not set. A script that is only written
// may be submitted from elsewhere.
void check_environment(const Context& context, const SubmitSettings& settings) {
  for (const launch::TravellingVariable& variable : launch::travelling_variables(settings)) {
    if (variable.has_value || environment_variable(variable.name)) continue;
    const std::string found = fmt::format("--env names {}, which is not set here", variable.name);
    if (settings.go) throw ConfigError(found, {.key = "env", .hint = "set it, or give NAME=VALUE"});
    context.log().warning(found);
  }
}

int submit_now(const Context& context, const SubmitSettings& settings, const std::string& text) {
  if (settings.engine == "mpi") {
    make_log_folder(settings.log_dir);
    const fs::path script = settings.output.empty()
                                ? fs::path(settings.log_dir) / (settings.name + ".mpi.sh")
                                : fs::path(settings.output);
    write_job(script, settings, text);
    context.log().info(fmt::format("job {}, script {}", settings.name, script.string()));
    launch::become_mpi_job(script);
  }
  if (settings.engine == "slurm") make_log_folder(settings.log_dir);
  const std::string job = launch::submit_job(settings, text);
  if (context.common.json) {
    const nlohmann::ordered_json answer = {
        {"engine", settings.engine}, {"name", settings.name}, {"job", job}};
    fmt::print("{}\n", answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}\n", job);
  }
  return static_cast<int>(ExitCode::Done);
}

int run_submit(Context& context, const std::vector<std::string>& arguments) {
  SubmitSettings settings;
  const std::vector<std::string> command =
      context.parse(settings, arguments, config::Positionals::EndFlags);
  launch::check_submit_settings(settings, command);
  if (settings.name.empty()) {
    settings.name = "convoy";
    if (settings.engine == "kubernetes")
      settings.name += "-" + rendezvous::JobToken::new_secret().substr(0, 6);
  }
  check_environment(context, settings);
  for (const std::string& warning : launch::submit_warnings(settings, command))
    context.log().warning(warning);
  const std::string text = job_text(settings, command);
  if (!settings.output.empty() && settings.output != "-")
    write_job(settings.output, settings, text);
  if (settings.go) return submit_now(context, settings, text);
  if (settings.output.empty() || settings.output == "-") fmt::print("{}", text);
  if (settings.engine == "slurm" && !fs::is_directory(settings.log_dir))
    context.log().info(
        fmt::format("make the folder {} before sbatch: SLURM does not", settings.log_dir));
  return static_cast<int>(ExitCode::Done);
}

}  // namespace

Command submit_command() {
  return {.name = "submit",
          .summary = "Write and submit a job for SLURM, Kubernetes or MPI",
          .usage = "convoy submit --engine slurm|kubernetes|mpi [flags] [--go] -- COMMAND ...",
          .examples =
              "convoy submit --engine slurm --nodes 2 --ranks 8 --gpus-per-node 8 --time "
              "4:00:00 --go -- convoy train run.yaml\n"
              "convoy submit --engine kubernetes --image registry/convoy:1 --nodes 2 -- convoy "
              "train /data/run.yaml\n"
              "convoy submit --engine mpi --hostfile hosts --nodes 2 --ranks 4 -- convoy "
              "launch prog",
          .flags = {flags_of<SubmitSettings>()},
          .first_flags = {"engine", "go", "output", "name", "nodes", "ranks", "gpus-per-node",
                          "time", "partition", "image", "hostfile", "log-dir"},
          .run = run_submit,
          .group = HelpGroup::RunJobs};
}

}  // namespace convoy::apps
