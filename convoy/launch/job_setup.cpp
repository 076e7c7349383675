// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/job_setup.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "convoy/base/error.h"
#include "convoy/launch/place/machine.h"
#include "convoy/launch/rendezvous/rdzv_conf.h"

namespace convoy::launch {
namespace {

constexpr int kStaticPort = 29'500;   // torchrun's
constexpr int kDynamicPort = 29'400;  // torchrun's for c10d
constexpr std::chrono::milliseconds kForeignGrace{30'000};
constexpr std::chrono::milliseconds kOwnGrace{60'000};
// SLURM tells a step to end twice, by slurmd and by srun; in between lies a message to the controller.
constexpr std::chrono::milliseconds kSlurmStopRepeat{5'000};

std::string this_host() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof(name) - 1);
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

int whole_number(std::string_view text) {
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? number : -1;
}

NodesRange nodes_of(const std::string& text) {
  const size_t colon = text.find(':');
  NodesRange range;
  range.least = whole_number(std::string_view(text).substr(0, colon));
  range.most = colon == std::string::npos ? range.least
                                          : whole_number(std::string_view(text).substr(colon + 1));
  if (range.least < 1 || range.most < range.least)
    throw ConfigError(fmt::format("--nnodes wants N or MIN:MAX, at least 1, found `{}`", text),
                      {.key = "nnodes"});
  return range;
}

// A convoy-worker computes on CPUs, so its start does not wait for the driver.
DeviceSelection find_devices(const SetupRequest& request, const Environment& environment,
                             GpuList& gpus) {
  if (request.own_program) return {};
  gpus = list_gpus(device_sources(environment));
  return select_devices(gpus.gpus, selection_request(environment, request.members.gpu_ids));
}

// All CPUs are one device to a convoy-worker, and they are what it computes on.
std::string wanted_ranks(const SetupRequest& request) {
  const std::string& wanted = request.members.nproc_per_node;
  const std::string one(1, '1');
  if (!request.own_program) return wanted.empty() ? one : wanted;
  if (wanted == "gpu" || !request.members.gpu_ids.empty())
    throw ConfigError("this program computes on CPUs, found a wish for GPUs",
                      {.key = wanted == "gpu" ? "nproc_per_node" : "gpu_ids"});
  return wanted.empty() || wanted == "auto" ? one : wanted;
}

// One node unless flag, variable or the launcher around us says more.
NodesRange range_of(const SetupRequest& request, const ResolvedPlace& place) {
  if (request.standalone) return {};
  if (!request.members.nnodes.empty()) return nodes_of(request.members.nnodes);
  const int found = place.kind == PlaceKind::Node && place.num_nodes > 0 ? place.num_nodes : 1;
  return {found, found};
}

Endpoint endpoint_of(const MemberFlags& members, const ResolvedPlace& place) {
  if (!members.rdzv_endpoint.empty())
    return parse_endpoint(members.rdzv_endpoint,
                          members.rdzv_backend == "c10d" ? kDynamicPort : kStaticPort,
                          "--rdzv-endpoint");
  Endpoint endpoint;
  endpoint.host = members.master_addr.empty() ? place.master_addr : members.master_addr;
  endpoint.port = static_cast<int>(members.master_port);
  if (endpoint.port == 0) endpoint.port = place.master_port;
  if (endpoint.port == 0) endpoint.port = kStaticPort;
  if (endpoint.host.empty())
    throw ConfigError(
        "a job of several nodes wants to know where they meet, found no address",
        {.key = "rdzv_endpoint",
         .hint = "give every node --rdzv-endpoint HOST:PORT, where HOST is one of them"});
  return endpoint;
}

int node_rank_of(const MemberFlags& members, const ResolvedPlace& place) {
  if (members.node_rank >= 0) return static_cast<int>(members.node_rank);
  return place.kind == PlaceKind::Node ? place.node_rank : -1;
}

// All ranks of a job have the same: what is known of the job around us counts before torchrun's "none".
std::string run_id_of(const SetupRequest& request, const ResolvedPlace& place,
                      const Environment& environment) {
  if (request.standalone) return new_run_id();
  if (!request.members.rdzv_id.empty()) return request.members.rdzv_id;
  const std::string around = value_of(environment, "TORCHELASTIC_RUN_ID");
  if (place.kind == PlaceKind::Rank && !around.empty()) return around;
  return place.job_id.empty() ? "none" : place.job_id;
}

void refuse_what_is_not_there(const MemberFlags& members) {
  if (members.rdzv_backend.starts_with("etcd"))
    throw ConfigError(
        fmt::format("--rdzv-backend {} is not supported", members.rdzv_backend),
        {.key = "rdzv_backend", .hint = "leave it out: the nodes need no other service to meet"});
}

void note_overridden(const SetupRequest& request, JobSetup& setup) {
  if (!request.standalone) return;
  for (const Origin& row : standalone_origins(request.members))
    setup.notes.push_back(fmt::format("--standalone overrides {}", flag_name(row.field)));
}

ResolveOptions resolve_options(const SetupRequest& request, int num_local_ranks) {
  const MemberFlags& members = request.members;
  ResolveOptions options;
  options.nproc_per_node_given = !members.nproc_per_node.empty();
  options.nproc_per_node = num_local_ranks;
  options.num_nodes = members.nnodes.empty() ? 0 : nodes_of(members.nnodes).most;
  options.node_rank = static_cast<int>(members.node_rank);
  options.env_source = request.standalone ? "none" : members.env_source;
  if (request.standalone) options.env_source_flag = "--standalone";
  options.master_addr = members.master_addr;
  if (!members.rdzv_endpoint.empty())
    options.master_addr =
        parse_endpoint(members.rdzv_endpoint, kStaticPort, "--rdzv-endpoint").host;
  options.master_port = static_cast<int>(members.master_port);
  return options;
}

// The rank's entry of CUDA_VISIBLE_DEVICES, as torchrun takes it, where the devices themselves are not known: there are GPUs that
// NVML knows nothing of.
std::string named_device(const std::optional<std::string>& list, int local_rank) {
  if (!list) return std::to_string(local_rank);
  std::istringstream entries(*list);
  std::string entry;
  for (int position = 0; std::getline(entries, entry, ','); ++position)
    if (position == local_rank) return entry;
  throw ConfigError(
      fmt::format(
          "--virtual-local-rank wants a device for each rank, found CUDA_VISIBLE_DEVICES={} "
          "and no device for local rank {}",
          *list, local_rank),
      {.key = "virtual_local_rank"});
}

std::vector<RankSetup> rank_setups(const SetupRequest& request, const JobSetup& setup,
                                   const std::string& visible) {
  std::vector<RankSetup> ranks;
  for (const RankPlacement& placement : setup.placement.ranks) {
    RankSetup rank;
    std::string devices = placement.visible_device.empty() ? visible : placement.visible_device;
    if (request.virtual_local_rank && placement.visible_device.empty())
      devices = named_device(setup.found_devices, placement.local_rank);
    if (!devices.empty()) rank.environment["CUDA_VISIBLE_DEVICES"] = devices;
    // Also for MIG: CUDA shows a process only one instance, as device 0.
    if (request.virtual_local_rank || !placement.visible_device.empty())
      rank.environment.emplace("LOCAL_RANK", "0");
    if (placement.threads > 0)
      rank.environment["OMP_NUM_THREADS"] = std::to_string(placement.threads);
    if (placement.bind) rank.cpus = placement.cpus;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

// A rank that another launcher placed: it is started here alone, as what it is.
JobPlace adopted_place(const ResolvedPlace& place) {
  JobPlace job;
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

NodeOffer offer_of(const SetupRequest& request, const JobSetup& setup) {
  NodeOffer offer;
  offer.run_id = setup.run_id;
  offer.min_nodes = setup.nodes.least;
  offer.max_nodes = setup.nodes.most;
  offer.node_rank = node_rank_of(request.members, setup.place);
  offer.num_local_ranks = setup.num_local_ranks;
  offer.host_name = setup.host;
  offer.address = request.members.local_addr;
  return offer;
}

RestartLimits restart_limits(const SetupRequest& request) {
  RestartLimits limits;
  limits.max_restarts = static_cast<int>(request.members.max_restarts);
  if (request.own_program) limits.final_codes = final_codes_of_worker();
  return limits;
}

// What the user says about the place where nodes meet is, on one node, where the ranks do. Empty host, port 0: not said.
Endpoint master_of_one_node(const SetupRequest& request) {
  const MemberFlags& members = request.members;
  Endpoint master{"", static_cast<int>(members.master_port)};
  if (request.standalone) return master;
  if (!members.rdzv_endpoint.empty() && members.rdzv_backend != "c10d")
    return parse_endpoint(members.rdzv_endpoint, kStaticPort, "--rdzv-endpoint");
  master.host = members.master_addr;
  return master;
}

void set_master_of_one_node(const SetupRequest& request, JobPlace& job) {
  const Endpoint master = master_of_one_node(request);
  job.master_port = master.port;
  if (!master.host.empty()) job.master_address = master.host;
}

// Rank 0 would find it taken, and each attempt after that.
void refuse_taken_port(const JobSetup& setup) {
  if (setup.fixed_port == 0) return;
  const Finding port = port_finding("", setup.fixed_port);
  if (port.severity == Severity::Error)
    throw PortTakenError(port.found, {.key = "master_port", .hint = port.to_do});
}

void add_others(const SetupRequest& request, const JobSetup& setup, const Log& log, JobPlan& plan) {
  const RendezvousConf conf = parse_rendezvous_conf(request.members.rdzv_conf);
  JobToken token = JobToken::from_environment(setup.run_id);
  if (token.guessable()) log.warning(JobToken::kGuessableWarning);
  Endpoint endpoint = setup.endpoint;
  if (setup.hosts_endpoint) {
    CoordinatorOptions options;
    options.run_id = setup.run_id;
    options.min_nodes = setup.nodes.least;
    options.max_nodes = setup.nodes.most;
    options.restarts = plan.restarts;
    options.join_timeout = conf.join_timeout;
    options.last_call_timeout = conf.last_call_timeout;
    options.heartbeat = conf.heartbeat;
    options.silence_limit = conf.silence_limit;
    if (request.own_program)
      options.early_exit_limit = std::chrono::seconds(30);
    else if (plan.attempt.early_exit_is_failure)
      options.early_exit_limit = plan.attempt.early_exit_wait;
    options.log = log;
    try {
      BoundListener listener = listen_on(endpoint.host, endpoint.port);
      endpoint = listener.endpoint;  // what others resolve may lead nowhere from here
      plan.coordinator = std::make_shared<Coordinator>(options, token, std::move(listener));
    } catch (const PortTakenError&) {
      if (!setup.may_join_endpoint) throw;
      log.info(fmt::format("port {} is held here already: this is a further node of that job",
                           endpoint.port));
    }
  }
  NodeLinkOptions link;
  link.coordinator = endpoint;
  link.offer = offer_of(request, setup);
  link.offer.hosts_coordinator = plan.coordinator != nullptr;
  link.join_timeout = conf.join_timeout;
  link.heartbeat = conf.heartbeat;
  link.silence_limit = conf.silence_limit;
  link.log = log;
  plan.join = JoinPlan{std::move(link), std::move(token)};
}

bool is_under(const ResolvedPlace& place, std::string_view source) {
  const std::vector<std::string>& outer = place.outer_sources;
  return place.source == source || std::find(outer.begin(), outer.end(), source) != outer.end();
}

}  // namespace

JobSetup set_up_job(const SetupRequest& request, const Environment& environment) {
  refuse_what_is_not_there(request.members);
  // A word that means nothing is an error also where there is only one node to meet.
  const RendezvousConf conf = parse_rendezvous_conf(request.members.rdzv_conf);
  JobSetup setup;
  setup.host = this_host();
  if (environment.contains("CUDA_VISIBLE_DEVICES"))
    setup.found_devices = environment.at("CUDA_VISIBLE_DEVICES");
  GpuList gpus;
  const DeviceSelection devices = find_devices(request, environment, gpus);
  const Machine machine = read_machine();
  setup.num_local_ranks =
      rank_count(wanted_ranks(request),
                 {static_cast<int>(devices.devices.size()), machine.usable_cpus, gpus.why_none});
  setup.place = resolve_place(environment, resolve_options(request, setup.num_local_ranks));
  for (const std::string& note : setup.place.notes) setup.notes.push_back(note);
  for (const std::string& note : devices.notes) setup.notes.push_back(note);
  note_overridden(request, setup);
  setup.run_id = run_id_of(request, setup.place, environment);
  if (setup.adopted()) {
    setup.num_local_ranks = 1;
  } else {
    // A rank of another launcher has that one's pipe.
    if (value_of(environment, "TORCHELASTIC_ENABLE_FILE_TIMER") == std::string(1, '1'))
      setup.timer_pipe = value_of(environment, "TORCHELASTIC_TIMER_FILE");
    setup.nodes = range_of(request, setup.place);
    if (setup.several_nodes()) {
      setup.endpoint = endpoint_of(request.members, setup.place);
      const int node_rank = node_rank_of(request.members, setup.place);
      if (node_rank >= setup.nodes.most)
        throw ConfigError(
            fmt::format("wanted a node rank from 0 to {} in a job of {} nodes, found {}",
                        setup.nodes.most - 1, setup.nodes.most, node_rank),
            {.key = "node_rank"});
      setup.hosts_endpoint = conf.is_host.value_or(
          node_rank >= 0 ? node_rank == 0 : is_this_host(setup.endpoint.host));
      setup.may_join_endpoint = !conf.is_host && node_rank < 0;
      if (setup.hosts_endpoint && !setup.may_join_endpoint && !is_this_host(setup.endpoint.host)) {
        const Finding foreign = foreign_address(setup.endpoint.host, setup.endpoint.port);
        setup.notes.push_back(fmt::format("{}: {}", foreign.found, foreign.to_do));
      }
      for (const std::string& note : conf.notes) setup.notes.push_back(note);
    } else {
      const Endpoint master = master_of_one_node(request);
      if (master.host.empty() || is_this_host(master.host)) setup.fixed_port = master.port;
    }
  }
  PlacementRequest placement;
  placement.host = setup.host;
  placement.num_ranks = setup.num_local_ranks;
  // Of several nodes the first rank is known when they have met; until then each is taken to start as many.
  placement.first_rank = setup.adopted() ? setup.place.rank
                                         : std::max(0, node_rank_of(request.members, setup.place)) *
                                               (setup.several_nodes() ? setup.num_local_ranks : 0);
  if (!request.members.numa_binding.empty())
    placement.binding = numa_binding_of(request.members.numa_binding);
  placement.threads = request.own_program ? ThreadRule::OwnWorker : ThreadRule::Torchrun;
  placement.omp_num_threads = value_of(environment, "OMP_NUM_THREADS");
  placement.virtual_local_rank = request.virtual_local_rank;
  if (setup.adopted())
    placement.adopted = AdoptedRank{setup.place.local_rank, setup.place.local_world_size};
  setup.placement = plan_placement(placement, devices, machine);
  setup.visible_devices = devices.cuda_visible_devices.value_or("");
  return setup;
}

JobPlan plan_job(const SetupRequest& request, const JobSetup& setup, LaunchPlan attempt,
                 const Log& log) {
  JobPlan plan;
  plan.log = log;
  plan.own_program = request.own_program;
  plan.restarts = restart_limits(request);
  attempt.ranks = rank_setups(request, setup, setup.visible_devices);
  attempt.logs.host = setup.host;
  attempt.timer_pipe = setup.timer_pipe;
  const double timeout = request.members.shutdown_timeout;
  attempt.stop_grace = timeout >= 0
                           ? std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000))
                       : request.own_program ? kOwnGrace
                                             : kForeignGrace;
  attempt.failure_grace =
      std::chrono::milliseconds(static_cast<int64_t>(request.members.failure_grace * 1000));
  if (is_under(setup.place, "srun")) attempt.stop_repeat = kSlurmStopRepeat;
  const std::string role = attempt.job.role;
  if (setup.adopted()) attempt.job = adopted_place(setup.place);
  attempt.job.role = role;
  attempt.job.run_id = setup.run_id;
  attempt.job.max_restarts = plan.restarts.max_restarts;
  if (!setup.adopted()) {
    attempt.job.num_local_ranks = setup.num_local_ranks;
    attempt.job.world_size = setup.num_local_ranks;
    if (!setup.several_nodes()) {
      refuse_taken_port(setup);
      set_master_of_one_node(request, attempt.job);
    }
  }
  plan.attempt = std::move(attempt);
  if (setup.several_nodes()) add_others(request, setup, log, plan);
  return plan;
}

}  // namespace convoy::launch
