// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/launch/supervisor/health/collective_diagnosis.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/rdzv_conf.h"

namespace convoy::launch {
namespace {

constexpr std::chrono::milliseconds kForeignGrace{30'000};
constexpr std::chrono::milliseconds kOwnGrace{60'000};
// A second stop signal within this time is the same request: SLURM signals the end of a step twice,
// by slurmd and by srun, with a message to the controller in between.
constexpr std::chrono::milliseconds kSlurmStopRepeat{5'000};

// The rank's entry of CUDA_VISIBLE_DEVICES, in torchrun's order, for devices that NVML does not
// list.
std::string named_device(const std::optional<std::string>& list, int local_rank) {
  if (!list) return std::to_string(local_rank);
  std::istringstream entries(*list);
  std::string entry;
  for (int position = 0; std::getline(entries, entry, ','); ++position)
    if (position == local_rank) return entry;
  throw ConfigError(
      fmt::format(
          "--virtual-local-rank needs a device for each rank, found CUDA_VISIBLE_DEVICES={} "
          "and no device for local rank {}",
          *list, local_rank),
      {.key = "virtual_local_rank",
       .hint = "leave --virtual-local-rank out, or start fewer ranks"});
}

std::vector<RankSetup> rank_setups(const SetupRequest& request, const JobSetup& setup,
                                   const std::string& visible) {
  std::vector<RankSetup> ranks;
  for (const RankPlacement& placement : setup.placement.ranks) {
    RankSetup rank;
    std::string devices = placement.visible_device.empty() ? visible : placement.visible_device;
    if (request.virtual_local_rank && placement.visible_device.empty())
      devices = named_device(setup.found_devices, placement.local_rank);
    if (!devices.empty()) rank.environment[setup.visible_variable] = devices;
    // LOCAL_RANK is 0 for MIG too: CUDA shows a process only one instance, as device 0.
    if (request.virtual_local_rank || !placement.visible_device.empty())
      rank.environment.emplace("LOCAL_RANK", "0");
    if (placement.threads > 0)
      rank.environment["OMP_NUM_THREADS"] = std::to_string(placement.threads);
    if (placement.bind) rank.cpus = placement.cpus;
    if (!request.own_program || setup.on_gpus) rank.device_uuid = placement.device_uuid;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

// Only NVIDIA's driver reports faults.
std::shared_ptr<monitor::FaultWatch> watched_faults(const std::vector<RankSetup>& ranks,
                                                    const JobSetup& setup) {
  std::set<std::string> uuids;
  for (const RankSetup& rank : ranks)
    if (!rank.device_uuid.empty()) uuids.insert(rank.device_uuid);
  if (uuids.empty() || setup.visible_variable != "CUDA_VISIBLE_DEVICES") return nullptr;
  // A driver that hangs blocks the thread of the watch. The job's end waits no longer than this.
  static constexpr std::chrono::seconds kDriverPatience{2};
  return {new monitor::FaultWatch(monitor::device_sources(process_environment()), setup.host,
                                  std::move(uuids)),
          [](monitor::FaultWatch* watch) {
            if (watch->ends_within(kDriverPatience)) delete watch;
          }};
}

// The layout of a rank that another launcher placed. Only this rank is started, with its own
// numbers.
JobLayout adopted_layout(const ResolvedPlace& place, const EnclosingTorchrun& enclosing) {
  JobLayout job;
  job.restart_count = enclosing.restart_count;
  job.max_restarts = enclosing.max_restarts;
  job.agent_hosts_store = enclosing.hosts_store;
  job.node_rank = std::max(0, place.node_rank);
  job.num_nodes = std::max(1, place.num_nodes);
  job.first_rank = place.rank;
  job.first_local_rank = place.local_rank;
  job.local_world_size = place.local_world_size;
  job.world_size = place.world_size;
  if (!place.master_addr.empty()) job.master_address = place.master_addr;
  job.master_port = place.master_port;
  return job;
}

rendezvous::NodeOffer offer_of(const SetupRequest& request, const JobSetup& setup) {
  rendezvous::NodeOffer offer;
  offer.run_id = setup.run_id;
  offer.min_nodes = setup.nodes.least;
  offer.max_nodes = setup.nodes.most;
  offer.node_rank = setup.wanted_node_rank;
  offer.num_local_ranks = setup.num_local_ranks;
  offer.host_name = setup.host;
  offer.address = request.members.local_addr;
  return offer;
}

rendezvous::RestartLimits restart_limits(const SetupRequest& request) {
  rendezvous::RestartLimits limits;
  limits.max_restarts = static_cast<int>(request.members.max_restarts);
  if (request.own_program) limits.final_codes = rendezvous::final_codes_of_worker();
  return limits;
}

// Throws an error that names the holder of the port, as --dry-run does.
void refuse_if_taken(const std::string& address, int number, const std::string& key) {
  const Finding port = port_finding(address, number);
  if (port.severity == Severity::Error)
    throw rendezvous::PortTakenError(port.found, {.key = key, .hint = port.to_do});
}

rendezvous::BoundListener listen_at(const rendezvous::Endpoint& endpoint) {
  try {
    return rendezvous::listen_on(endpoint.host, endpoint.port);
  } catch (const rendezvous::PortTakenError&) {
    refuse_if_taken(endpoint.host, endpoint.port, "rdzv_endpoint");
    throw;  // the holder of the port has just gone
  }
}

void add_others(const SetupRequest& request, const JobSetup& setup, const Log& log, JobSpec& spec) {
  const RendezvousConf& conf = setup.rdzv_conf;
  rendezvous::JobToken token = rendezvous::JobToken::from_environment(setup.run_id);
  if (token.guessable()) log.warning(rendezvous::JobToken::kGuessableWarning);
  rendezvous::Endpoint endpoint = setup.endpoint;
  if (setup.hosts_endpoint) {
    rendezvous::CoordinatorOptions options;
    options.run_id = setup.run_id;
    options.min_nodes = setup.nodes.least;
    options.max_nodes = setup.nodes.most;
    options.restarts = spec.restarts;
    options.join_timeout = conf.join_timeout;
    options.last_call_timeout = conf.last_call_timeout;
    options.heartbeat = conf.heartbeat;
    options.silence_limit = conf.silence_limit;
    if (request.own_program)
      options.early_exit_limit = std::chrono::seconds(30);
    else if (spec.attempt.early_exit_is_failure)
      options.early_exit_limit = spec.attempt.early_exit_wait;
    options.judge = [](const std::vector<telemetry::RankFlight>& flights) {
      return blame_text(diagnose_collectives(flights));
    };
    options.log = log;
    try {
      rendezvous::BoundListener listener = listen_at(endpoint);
      endpoint = listener.endpoint;  // the address that others resolve may not work from here
      spec.coordinator =
          std::make_shared<rendezvous::Coordinator>(options, token, std::move(listener));
    } catch (const rendezvous::PortTakenError& taken) {
      if (!setup.may_join_endpoint) throw;
      log.info(fmt::format("{}: this is a further node of that job", taken.what()));
    }
  }
  rendezvous::NodeLinkOptions link;
  link.coordinator = endpoint;
  link.offer = offer_of(request, setup);
  link.offer.hosts_coordinator = spec.coordinator != nullptr;
  link.join_timeout = conf.join_timeout;
  link.heartbeat = conf.heartbeat;
  link.silence_limit = conf.silence_limit;
  link.log = log;
  spec.join = JoinSpec{std::move(link), std::move(token)};
}

bool is_under(const ResolvedPlace& place, std::string_view source) {
  const std::vector<std::string>& outer = place.outer_sources;
  return place.source == source || std::find(outer.begin(), outer.end(), source) != outer.end();
}

}  // namespace

JobSpec make_job_spec(const SetupRequest& request, const JobSetup& setup, LaunchSpec attempt,
                      const Log& log) {
  JobSpec spec;
  spec.log = log;
  spec.own_program = request.own_program.has_value();
  spec.restarts = restart_limits(request);
  attempt.ranks = rank_setups(request, setup, setup.visible_devices);
  attempt.faults = watched_faults(attempt.ranks, setup);
  attempt.on_device_fault =
      request.members.on_device_fault == "flag" ? OnDeviceFault::Flag : OnDeviceFault::Stop;
  attempt.logs.host = setup.host;
  attempt.timer_pipe = setup.timer_pipe;
  const double timeout = request.members.shutdown_timeout;
  attempt.stop_grace = timeout >= 0          ? milliseconds_of(timeout)
                       : request.own_program ? kOwnGrace
                                             : kForeignGrace;
  attempt.failure_grace = milliseconds_of(request.members.failure_grace);
  if (is_under(setup.place, "srun")) attempt.stop_repeat = kSlurmStopRepeat;
  const std::string role = attempt.job.role;
  if (setup.adopted()) attempt.job = adopted_layout(setup.place, setup.enclosing);
  attempt.job.role = role;
  attempt.job.run_id = setup.run_id;
  if (!setup.adopted()) {
    attempt.job.max_restarts = spec.restarts.max_restarts;
    attempt.job.num_local_ranks = setup.num_local_ranks;
    attempt.job.world_size = setup.num_local_ranks;
    if (!setup.several_nodes()) {
      // Otherwise rank 0 would find the port taken, in this attempt and each later one.
      if (setup.fixed_port != 0) refuse_if_taken("", setup.fixed_port, "master_port");
      attempt.job.master_port = setup.master.port;
      if (!setup.master.host.empty()) attempt.job.master_address = setup.master.host;
    }
  }
  spec.attempt = std::move(attempt);
  if (setup.several_nodes()) add_others(request, setup, log, spec);
  return spec;
}

}  // namespace convoy::launch
