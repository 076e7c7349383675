// SPDX-License-Identifier: Apache-2.0
//
// The settings of `convoy submit`: the flags of a batch job, named as in sbatch where both have
// one. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::launch {

struct SubmitSettings {
  std::string engine;
  bool go = false;
  std::string output;
  std::string name;
  int64_t nodes = 1;
  std::string nproc_per_node = "1";
  bool task_per_rank = false;
  int64_t gpus_per_node = 0;
  int64_t cpus_per_task = 0;
  std::string mem;
  std::string time;
  std::string partition;
  std::string account;
  std::string qos;
  std::string image;
  std::string name_space;
  config::NameList volume;
  std::string hostfile;
  std::string log_dir = "logs";
  config::NameList env;
  bool requeue = false;
  bool no_requeue = false;
  config::AutoOr<int64_t> max_requeues;
  config::AutoOr<int64_t> signal_before;
  config::AutoOr<int64_t> port;
  config::NameList extra;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("engine", engine, "engine that runs the job").one_of({"slurm", "kubernetes", "mpi"});
    visit("go", go, "submit it too; without this the script or manifest is only written");
    visit("output", output, "file for the script or manifest; empty = stdout, nothing with --go")
        .alias("o");
    visit("name", name, "job name; empty = convoy, with a random end where names must be new")
        .alias("job_name");
    visit("nodes", nodes, "nodes; the command is started once on each").at_least(1).alias("nnodes");
    visit(
        "nproc_per_node", nproc_per_node,
        "ranks per node, for `convoy launch` or `convoy train` as the command: auto, gpu, cpu or a "
        "number")
        .flag("ranks")
        .alias("nproc");
    visit("task_per_rank", task_per_rank, "let the engine start every rank itself (slurm, mpi)");
    visit("gpus_per_node", gpus_per_node, "GPUs requested on each node (slurm, kubernetes)")
        .at_least(0);
    visit("cpus_per_task", cpus_per_task, "CPUs of each task; 0 = the engine's default")
        .at_least(0);
    visit("mem", mem, "memory of each node, such as 64G (slurm, kubernetes)");
    visit("time", time, "time limit, such as 30, 4:00:00 or 2-12 (slurm, kubernetes)");
    visit("partition", partition, "partition (slurm)");
    visit("account", account, "account that is charged (slurm)");
    visit("qos", qos, "quality of service (slurm)");
    visit("image", image, "container image (kubernetes)");
    visit("namespace", name_space, "namespace; empty = kubectl's current one (kubernetes)");
    visit("volume", volume, "claim:path, a volume claim and where it is mounted (kubernetes)");
    visit("hostfile", hostfile, "hosts and their slots (mpi)");
    visit("log_dir", log_dir,
          "folder for logs and the job's secret, seen by all nodes (slurm, mpi)");
    visit("env", env, "NAME or NAME=VALUE that is passed to the job; without it only PATH is");
    visit("requeue", requeue,
          "start again after exit 75 (stopped, state saved) or 13 (peer lost); the default of "
          "slurm and kubernetes");
    visit("no_requeue", no_requeue, "never start again");
    visit("max_requeues", max_requeues, "times the job is started again; auto = 3").at_least(0);
    visit("signal_before", signal_before,
          "seconds before the time limit at which ranks are asked to save and stop; auto = 90, 0 = "
          "not ahead of it (slurm, kubernetes)")
        .at_least(0);
    visit("port", port, "port of the first node on which launchers meet; auto = by the job's id")
        .at_least(1)
        .at_most(65535);
    visit("extra", extra, "option passed to sbatch or mpirun unchanged, such as --constraint=a100");
  }
};

// A volume of --volume.
struct ClaimedVolume {
  std::string claim;
  std::string path;
};

// A variable of --env. Without a value it is taken from the submitter's environment.
struct TravellingVariable {
  std::string name;
  std::string value;
  bool has_value = false;
};

// Makes every check that needs no engine. Throws ConfigError that names the flag: an invalid value,
// a flag that this engine cannot honour, a launcher that cannot be asked to save.
void check_submit_settings(const SubmitSettings& settings, const std::vector<std::string>& command);

// Parse --volume and --env. Throw ConfigError.
std::vector<ClaimedVolume> claimed_volumes(const SubmitSettings& settings);
std::vector<TravellingVariable> travelling_variables(const SubmitSettings& settings);

// The number of requeues, and the seconds between the signal and the time limit. 0 = never.
int64_t max_requeues(const SubmitSettings& settings);
int64_t signal_before_seconds(const SubmitSettings& settings);

// sbatch's spellings of a duration: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S. Throws ConfigError.
int64_t time_limit_seconds(std::string_view text);

}  // namespace convoy::launch
