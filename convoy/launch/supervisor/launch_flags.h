// SPDX-License-Identifier: Apache-2.0
//
// The flags of everything that starts ranks: torchrun's own, with its names and defaults, and ours.
// Each is also read from the environment as PET_<NAME>, which the command line beats. Plain data;
// job_setup.h turns it into a spec.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/config/field_list.h"
#include "convoy/launch/place/origin.h"

namespace convoy::launch {

// The ranks of one host, whatever starts them. Empty or negative = not given.
struct HostRankFlags {
  std::string nproc_per_node;
  std::string gpu_ids;
  double shutdown_timeout = -1;
  double failure_grace = 1;
  std::string numa_binding;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("nproc_per_node", nproc_per_node,
          "ranks on this host: a number, gpu, cpu (as many as may be used), or auto = GPUs, else "
          "CPUs; default 1")
        .flag("ranks")
        .alias("nproc");
    visit("gpu_ids", gpu_ids, "use only these GPUs: positions among the visible ones, or UUIDs");
    visit("shutdown_timeout", shutdown_timeout,
          "seconds between a request to stop and SIGKILL; -1 = 30, or 60 for own ranks")
        .at_least(-1);
    visit("failure_grace", failure_grace,
          "seconds that the other ranks have between a rank's failure and SIGKILL")
        .at_least(0);
    visit("numa_binding", numa_binding, "keep each rank on CPUs near its GPU")
        .one_of({"", "node", "socket", "exclusive", "core-complex"});
  }
};

// The threads that a convoy-worker computes with.
struct ThreadFlags {
  int64_t threads = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("threads", threads,
          "CPU threads of each rank; 0 = OMP_NUM_THREADS, else the host's cores divided by its "
          "ranks")
        .at_least(0)
        .at_most(kMostThreads);
  }
};

// These flags choose what convoy-workers compute on.
struct DeviceFlags : ThreadFlags {
  std::string devices = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(
        "devices", devices,
        "compute on cpu or cuda (gpu is the same), one GPU a rank; auto = cuda where there is one")
        .one_of({"auto", "cpu", "cuda", "gpu"})
        .alias("device");
    ThreadFlags::fields(visit);
  }
};

// The nodes of the job, and how it goes on after failures. Empty or negative = not given.
struct NodeFlags {
  std::string nnodes;
  int64_t node_rank = -1;
  std::string rdzv_backend;
  std::string rdzv_endpoint;
  std::string rdzv_id;
  std::string rdzv_conf;
  std::string master_addr;
  int64_t master_port = 0;
  std::string local_addr;
  std::string env_source;
  int64_t max_restarts = 0;
  std::string on_device_fault = "stop";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("nnodes", nnodes,
          "number of nodes: N, or MIN:MAX for a job that nodes may join and leave");
    visit("node_rank", node_rank, "this node's number; -1 = any that is free").at_least(-1);
    visit("rdzv_backend", rdzv_backend, "static or c10d; both are Convoy's own rendezvous here")
        .one_of({"", "static", "c10d", "etcd", "etcd-v2"});
    visit("rdzv_endpoint", rdzv_endpoint, "HOST:PORT where the nodes meet; one of them is HOST");
    visit("rdzv_id", rdzv_id, "name of the job, the same on all its nodes");
    visit("rdzv_conf", rdzv_conf, "timeouts in seconds: join_timeout=600,last_call_timeout=30,...");
    visit("master_addr", master_addr, "host of node 0, where --rdzv-endpoint is not given");
    visit("master_port", master_port, "port of node 0; on one node, of the ranks' store")
        .at_least(0)
        .at_most(65535);
    visit("local_addr", local_addr,
          "this node's address for the others; empty = of the interface that routes to the master");
    visit("env_source", env_source,
          "outer launcher whose variables count: torchrun, deepspeed, env, openmpi, mpich, "
          "mvapich, jsrun, srun, kubernetes, none");
    visit("max_restarts", max_restarts, "times a failed job is started again").at_least(0);
    visit("on_device_fault", on_device_fault,
          "when the driver reports a fatal fault of a rank's GPU, or the GPU is lost: stop = the "
          "rank fails with 14; flag = print a warning and continue")
        .one_of({"stop", "flag"});
  }
};

// The members of the job.
struct MemberFlags : HostRankFlags, NodeFlags {
  template <class Visitor>
  void fields(Visitor& visit) {
    HostRankFlags::fields(visit);
    NodeFlags::fields(visit);
  }
};

// The rest of `convoy launch`.
struct LaunchFlags {
  bool standalone = false;
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  std::string role = "default";
  std::string log_dir;
  std::string redirects = "0";
  std::string tee = "0";
  std::string local_ranks_filter;
  std::string duplicate_stdout_filters;
  std::string duplicate_stderr_filters;
  std::string signals_to_handle;
  bool virtual_local_rank = false;
  bool fold = true;
  double early_exit_timeout = 300;
  bool dry_run = false;
  bool explain = false;
  double monitor_interval = 0.1;
  std::string start_method = "spawn";
  std::string event_log_handler = "null";
  std::string logs_specs;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("standalone", standalone, "one node; overrides the other flags about nodes");
    visit("module", module, "the program is a Python module, as for python -m").alias("m");
    visit("no_python", no_python, "run the program itself, even a .py file");
    visit("run_path", run_path, "run a Python script, whatever its name ends in");
    visit("role", role, "name of the ranks' role");
    visit("log_dir", log_dir, "folder for RUN-ID_xxxxxx/attempt_N/LOCAL_RANK/{stdout,stderr}.log");
    visit("redirects", redirects,
          "streams that go to files only: 0 none, 1 stdout, 2 stderr, 3 both, or RANK:N,...")
        .alias("r");
    visit("tee", tee, "streams that go to files and the console; values as of --redirects")
        .alias("t");
    visit("local_ranks_filter", local_ranks_filter,
          "local ranks shown on the console; empty = all");
    visit("duplicate_stdout_filters", duplicate_stdout_filters,
          "copy stdout lines that contain one of these to a file; a,,b is `a,b`");
    visit("duplicate_stderr_filters", duplicate_stderr_filters, "the same for stderr");
    visit("signals_to_handle", signals_to_handle,
          "signals that stop the job; empty = TORCHELASTIC_SIGNALS_TO_HANDLE or "
          "SIGTERM,SIGINT,SIGHUP,SIGQUIT. Others, as USR1 and USR2, are passed on");
    visit("virtual_local_rank", virtual_local_rank,
          "every rank sees its GPU alone, as device 0, and LOCAL_RANK=0");
    visit("fold", fold, "show identical lines of several ranks once on the console");
    visit("early_exit_timeout", early_exit_timeout,
          "seconds the other ranks may run on after one has ended with 0; then the job has failed. "
          "0 = for ever")
        .at_least(0);
    visit("dry_run", dry_run,
          "print where each rank would run and what is missing, and start nothing");
    visit("explain", explain, "print the source of each value, and start nothing");
    visit("monitor_interval", monitor_interval,
          "accepted for compatibility with torchrun; ends of ranks are seen at once")
        .hidden();
    visit("start_method", start_method, "accepted for compatibility with torchrun")
        .one_of({"spawn", "fork", "forkserver"})
        .hidden();
    visit("event_log_handler", event_log_handler, "accepted for compatibility with torchrun")
        .hidden();
    visit("logs_specs", logs_specs, "a Python entry point: refused").hidden();
  }
};

// Sets every field of `lists` whose PET_<NAME> is in `environment` and not empty. Throws
// ConfigError naming the variable.
void read_pet_variables(const std::vector<config::Section>& lists,
                        const std::map<std::string, std::string>& environment);

// One sentence for each variable PET_... that is no field of `lists` but looks like one.
std::vector<std::string> misspelt_pet_variables(
    const std::vector<config::Section>& lists,
    const std::map<std::string, std::string>& environment);

std::string flag_name(const std::string& field);  // "--node-rank" of "node_rank"

// Rows of --explain for the fields that differ between the defaults, the values after PET_* and the
// final values. All lists come from the same struct types in the same order.
std::vector<Origin> flag_origins(const std::vector<config::Section>& defaults,
                                 const std::vector<config::Section>& after_pet,
                                 const std::vector<config::Section>& final_values);

}  // namespace convoy::launch
