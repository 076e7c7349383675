// SPDX-License-Identifier: Apache-2.0
//
// Makes the spec of a job from flags and environment: the outer launcher, the number of ranks here
// and their devices, the connection to the other nodes. Read-only until make_job_spec(), which
// opens the port of a rendezvous that this node hosts.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/place/placement.h"
#include "convoy/launch/place/preflight.h"
#include "convoy/launch/place/visible_devices.h"
#include "convoy/launch/supervisor/launch_flags.h"
#include "convoy/launch/supervisor/rdzv_conf.h"
#include "convoy/launch/supervisor/supervisor.h"

namespace convoy::launch {

// The ranks are convoy-workers. They share the CPUs, report progress, and save when asked to stop.
struct OwnProgram {
  std::string devices = "auto";  // see DeviceFlags
  int threads = 0;
  // The reason why convoy-workers cannot compute on GPUs, empty = they can. Called only if the host
  // has GPUs.
  std::function<std::string()> why_no_cuda = {};
  int devices_of_rank = 1;  // GPUs that a single rank computes on; 0 = all
  bool one_rank = false;    // the job has one rank by nature: idle GPUs are not announced
};

struct SetupRequest {
  MemberFlags members;
  bool standalone = false;
  bool virtual_local_rank = false;
  std::optional<OwnProgram> own_program = {};
};

struct NodesRange {
  int least = 1;
  int most = 1;
};

// Values that torchrun gave this rank besides its place.
struct EnclosingTorchrun {
  int restart_count = 0;
  int max_restarts = 0;
  bool hosts_store = false;  // torchrun listens at MASTER_PORT: rank 0 must not
};

struct JobSetup {
  ResolvedPlace place;
  EnclosingTorchrun enclosing;  // the torchrun of an adopted rank
  NodesRange nodes;
  int num_local_ranks = 1;
  Placement placement;
  bool on_gpus = false;                      // convoy-workers compute on CUDA devices, else on CPUs
  std::optional<std::string> found_devices;  // CUDA_VISIBLE_DEVICES of the environment
  std::string visible_variable = "CUDA_VISIBLE_DEVICES";  // or HIP_VISIBLE_DEVICES
  std::string visible_devices;    // CUDA_VISIBLE_DEVICES of the ranks; empty = unchanged
  RendezvousConf rdzv_conf;       // from --rdzv-conf
  rendezvous::Endpoint endpoint;  // the rendezvous; empty host = one node
  int wanted_node_rank = -1;      // -1 = any that is free
  // With one node: the address of rank 0 by the user's flags; empty host, port 0 = not given.
  rendezvous::Endpoint master;
  int fixed_port = 0;           // with one node: the port of rank 0 by the user's flag
  bool hosts_endpoint = false;  // this launcher hosts the endpoint
  // This host is recognized by its address only: another launcher here may host the endpoint.
  bool may_join_endpoint = false;
  std::string run_id = "none";
  std::optional<std::filesystem::path> timer_pipe;  // see LaunchSpec
  std::string host;                                 // this host's short name
  std::vector<std::string> notes;                   // sentences for the user

  bool adopted() const { return place.kind == PlaceKind::Rank; }
  bool several_nodes() const { return !adopted() && nodes.most > 1; }
};

// Throws ConfigError naming flag or variable; DeviceError when convoy-workers are to compute on
// GPUs and cannot.
JobSetup set_up_job(const SetupRequest& request, const Environment& environment);

// Empty = not checked.
struct CheckedFiles {
  std::filesystem::path log_folder = {};
  std::string program = {};  // program that ranks become
  std::string script = {};   // script that the program reads
};

// Checks the program, ports, limits and folders that this node's ranks need.
std::vector<Finding> check_job(const JobSetup& setup, const CheckedFiles& files);

// Rows of --explain for the flags that --standalone overrides, with the values used instead.
std::vector<Origin> standalone_origins(const MemberFlags& members);

// Completes `attempt`, which holds program, logs and signals. Throws ConfigError, IoError, and
// rendezvous::PortTakenError for the port of one node or of the rendezvous.
JobSpec make_job_spec(const SetupRequest& request, const JobSetup& setup, LaunchSpec attempt,
                      const Log& log);

}  // namespace convoy::launch
