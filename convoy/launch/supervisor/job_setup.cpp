// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/job_setup.h"

#include <unistd.h>

#include <algorithm>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/launch/place/variables.h"
#include "convoy/launch/supervisor/rdzv_conf.h"
#include "convoy/machine/monitor/host/machine.h"
#include "convoy/machine/processes/run_id.h"

namespace convoy::launch {
namespace {

constexpr int kStaticPort = 29'500;   // torchrun's default
constexpr int kDynamicPort = 29'400;  // torchrun's default for c10d
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

NodesRange nodes_of(const std::string& text) {
  const size_t colon = text.find(':');
  NodesRange range;
  range.least = text_as<int>(text.substr(0, colon)).value_or(-1);
  range.most =
      colon == std::string::npos ? range.least : text_as<int>(text.substr(colon + 1)).value_or(-1);
  if (range.least < 1 || range.most < range.least)
    throw ConfigError(fmt::format("--nnodes needs N or MIN:MAX, at least 1, found `{}`", text),
                      {.key = "nnodes", .hint = "such as --nnodes 2, or --nnodes 1:4"});
  return range;
}

DeviceSelection chosen_devices(const SetupRequest& request, const Environment& environment,
                               const GpuList& gpus) {
  return select_devices(gpus.gpus, selection_request(environment, request.members.gpu_ids));
}

// The flag that requests GPUs for this host's ranks; empty = none does.
std::string flag_for_gpus(const MemberFlags& members) {
  if (!members.gpu_ids.empty()) return "--gpu-ids";
  return members.nproc_per_node == "gpu" ? "--ranks gpu" : "";
}

// Selects CPUs only, with a note about a GPU that is not used.
DeviceSelection cpus_of_worker(const SetupRequest& request, const std::string& why_no_gpu,
                               const DeviceSelection& passed_over) {
  const std::string flag =
      request.own_program->devices == "cuda" ? "--devices cuda" : flag_for_gpus(request.members);
  if (!flag.empty())
    throw DeviceError(fmt::format("wanted GPUs to compute on, found none: {}", why_no_gpu),
                      {.key = flag.substr(0, flag.find(' ')),
                       .hint = fmt::format("leave out {}, or fix that", flag)});
  DeviceSelection none;
  if (!passed_over.devices.empty())
    none.notes.push_back(fmt::format("computing on CPUs although this host has {}: {}",
                                     passed_over.devices.front().name, why_no_gpu));
  return none;
}

// Opens the driver only where its answer matters, since this takes time.
DeviceSelection devices_of_worker(const SetupRequest& request, const Environment& environment,
                                  GpuList& gpus) {
  const OwnProgram& own = *request.own_program;
  if (own.devices == "cpu") {
    const std::string flag = flag_for_gpus(request.members);
    if (flag.empty()) return {};
    throw ConfigError(
        "--devices cpu and a request for GPUs exclude each other",
        {.key = "--devices", .hint = fmt::format("leave out one of --devices cpu and {}", flag)});
  }
  gpus = monitor::list_gpus_of_any_vendor(device_sources(environment));
  if (gpus.gpus.empty()) return cpus_of_worker(request, gpus.why_none, {});
  DeviceSelection found = chosen_devices(request, environment, gpus);
  if (const std::string why = why_not_for_workers(gpus.gpus); !why.empty()) {
    gpus = {.why_none = why};
    return cpus_of_worker(request, why, found);
  }
  if (found.devices.empty())
    return cpus_of_worker(request,
                          fmt::format("CUDA_VISIBLE_DEVICES is `{}`, which hides every GPU",
                                      value_of(environment, "CUDA_VISIBLE_DEVICES")),
                          found);
  const std::string why_no_cuda = own.why_no_cuda ? own.why_no_cuda() : "";
  if (!why_no_cuda.empty()) return cpus_of_worker(request, why_no_cuda, found);
  return found;
}

DeviceSelection find_devices(const SetupRequest& request, const Environment& environment,
                             GpuList& gpus) {
  if (request.own_program) return devices_of_worker(request, environment, gpus);
  // A foreign program may use PyTorch for ROCm; a convoy-worker does not.
  gpus = monitor::list_gpus_of_any_vendor(device_sources(environment));
  return chosen_devices(request, environment, gpus);
}

// For a convoy-worker without a GPU, all CPUs together are one device.
std::string wanted_ranks(const SetupRequest& request, bool on_gpus) {
  const std::string& wanted = request.members.nproc_per_node;
  const std::string one(1, '1');
  if (wanted.empty()) return one;
  return request.own_program && !on_gpus && wanted == "auto" ? one : wanted;
}

void require_gpu_for_each_rank(const JobSetup& setup, size_t num_gpus) {
  if (setup.adopted() || !setup.on_gpus || setup.num_local_ranks <= static_cast<int>(num_gpus))
    return;
  throw ConfigError(
      fmt::format("{} a GPU each, found {} visible",
                  counted(setup.num_local_ranks, "rank needs", "ranks need"), num_gpus),
      {.key = "--ranks", .hint = "use --ranks gpu, or --devices cpu"});
}

// One node unless a flag, a variable or the outer launcher gives more.
NodesRange range_of(const SetupRequest& request, const ResolvedPlace& place) {
  if (request.standalone) return {};
  if (!request.members.nnodes.empty()) return nodes_of(request.members.nnodes);
  const int found = place.kind == PlaceKind::Node && place.num_nodes > 0 ? place.num_nodes : 1;
  return {found, found};
}

rendezvous::Endpoint endpoint_of(const MemberFlags& members, const ResolvedPlace& place) {
  if (!members.rdzv_endpoint.empty())
    return rendezvous::parse_endpoint(members.rdzv_endpoint,
                                      members.rdzv_backend == "c10d" ? kDynamicPort : kStaticPort,
                                      "--rdzv-endpoint");
  rendezvous::Endpoint endpoint;
  endpoint.host = members.master_addr.empty() ? place.master_addr : members.master_addr;
  endpoint.port = static_cast<int>(members.master_port);
  if (endpoint.port == 0) endpoint.port = place.master_port;
  if (endpoint.port == 0) endpoint.port = kStaticPort;
  if (endpoint.host.empty())
    throw ConfigError(
        "a job of several nodes needs a rendezvous address, found none",
        {.key = "rdzv_endpoint",
         .hint = "give every node --rdzv-endpoint HOST:PORT, where HOST is one of them"});
  return endpoint;
}

int node_rank_of(const MemberFlags& members, const ResolvedPlace& place) {
  if (members.node_rank >= 0) return static_cast<int>(members.node_rank);
  return place.kind == PlaceKind::Node ? place.node_rank : -1;
}

// All ranks of a job must have the same id. An id of the surrounding job is used before torchrun's
// "none".
std::string run_id_of(const SetupRequest& request, const ResolvedPlace& place,
                      const Environment& environment) {
  if (request.standalone) return processes::new_run_id();
  if (!request.members.rdzv_id.empty()) return request.members.rdzv_id;
  const std::string around = value_of(environment, "TORCHELASTIC_RUN_ID");
  if (place.kind == PlaceKind::Rank && !around.empty()) return around;
  return place.job_id.empty() ? "none" : place.job_id;
}

EnclosingTorchrun enclosing_torchrun(const Environment& environment) {
  const Variables variables(environment);
  return {.restart_count = std::max(0, variables.number("TORCHELASTIC_RESTART_COUNT").number),
          .max_restarts = std::max(0, variables.number("TORCHELASTIC_MAX_RESTARTS").number),
          .hosts_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True"};
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
        rendezvous::parse_endpoint(members.rdzv_endpoint, kStaticPort, "--rdzv-endpoint").host;
  options.master_port = static_cast<int>(members.master_port);
  return options;
}

// On one node the ranks meet at the address given for the nodes. Empty host, port 0 = not given.
rendezvous::Endpoint master_of_one_node(const SetupRequest& request) {
  const MemberFlags& members = request.members;
  rendezvous::Endpoint master{"", static_cast<int>(members.master_port)};
  if (request.standalone) return master;
  if (!members.rdzv_endpoint.empty() && members.rdzv_backend != "c10d")
    return rendezvous::parse_endpoint(members.rdzv_endpoint, kStaticPort, "--rdzv-endpoint");
  master.host = members.master_addr;
  return master;
}

void find_meeting_point(const SetupRequest& request, JobSetup& setup) {
  const RendezvousConf& conf = setup.rdzv_conf;
  setup.endpoint = endpoint_of(request.members, setup.place);
  const int node_rank = setup.wanted_node_rank;
  if (node_rank >= setup.nodes.most)
    throw ConfigError(fmt::format("wanted a node rank from 0 to {} in a job of {} nodes, found {}",
                                  setup.nodes.most - 1, setup.nodes.most, node_rank),
                      {.key = "node_rank", .hint = "node ranks count from 0"});
  setup.hosts_endpoint = conf.is_host.value_or(
      node_rank >= 0 ? node_rank == 0 : rendezvous::is_this_host(setup.endpoint.host));
  setup.may_join_endpoint = !conf.is_host && node_rank < 0;
  if (setup.hosts_endpoint && !setup.may_join_endpoint &&
      !rendezvous::is_this_host(setup.endpoint.host)) {
    const Finding foreign = foreign_address(setup.endpoint.host, setup.endpoint.port);
    setup.notes.push_back(fmt::format("{}: {}", foreign.found, foreign.to_do));
  }
  for (const std::string& note : conf.notes) setup.notes.push_back(note);
}

// The placement of this node's ranks, as far as it is known before the nodes have met.
void place_ranks(const SetupRequest& request, const Environment& environment,
                 const DeviceSelection& devices, const Machine& machine, JobSetup& setup) {
  PlacementRequest placement;
  placement.host = setup.host;
  placement.num_ranks = setup.num_local_ranks;
  // With several nodes the first rank is known after the rendezvous. Until then all nodes count as
  // starting the same number of ranks.
  placement.first_rank = setup.adopted() ? setup.place.rank
                                         : std::max(0, setup.wanted_node_rank) *
                                               (setup.several_nodes() ? setup.num_local_ranks : 0);
  if (!request.members.numa_binding.empty())
    placement.binding = numa_binding_of(request.members.numa_binding);
  placement.threads = request.own_program ? ThreadRule::OwnWorker : ThreadRule::Torchrun;
  placement.omp_num_threads = value_of(environment, "OMP_NUM_THREADS");
  placement.virtual_local_rank = request.virtual_local_rank;
  placement.announce_idle_devices = !request.own_program || !request.own_program->one_rank;
  if (request.own_program) {
    placement.devices_of_rank = request.own_program->devices_of_rank;
    placement.asked_threads = request.own_program->threads;
  }
  if (setup.adopted())
    placement.adopted = AdoptedRank{setup.place.local_rank, setup.place.local_world_size};
  setup.placement = plan_placement(placement, devices, machine);
  setup.visible_variable = devices.variable;
  setup.visible_devices = devices.cuda_visible_devices.value_or("");
}

}  // namespace

JobSetup set_up_job(const SetupRequest& request, const Environment& environment) {
  refuse_what_is_not_there(request.members);
  JobSetup setup;
  // An unknown word is an error also on a single node.
  setup.rdzv_conf = parse_rendezvous_conf(request.members.rdzv_conf);
  setup.host = this_host();
  if (environment.contains("CUDA_VISIBLE_DEVICES"))
    setup.found_devices = environment.at("CUDA_VISIBLE_DEVICES");
  GpuList gpus;
  const DeviceSelection devices = find_devices(request, environment, gpus);
  setup.on_gpus = request.own_program && !devices.devices.empty();
  const Machine machine = monitor::read_machine();
  setup.num_local_ranks =
      rank_count(wanted_ranks(request, setup.on_gpus),
                 {static_cast<int>(devices.devices.size()), machine.usable_cpus, gpus.why_none});
  setup.place = resolve_place(environment, resolve_options(request, setup.num_local_ranks));
  for (const std::string& note : setup.place.notes) setup.notes.push_back(note);
  for (const std::string& note : devices.notes) setup.notes.push_back(note);
  note_overridden(request, setup);
  setup.wanted_node_rank = node_rank_of(request.members, setup.place);
  setup.run_id = run_id_of(request, setup.place, environment);
  if (setup.adopted()) {
    setup.num_local_ranks = 1;
    if (setup.place.source == "torchrun") setup.enclosing = enclosing_torchrun(environment);
  } else {
    // An adopted rank uses the pipe of its own launcher instead.
    if (value_of(environment, "TORCHELASTIC_ENABLE_FILE_TIMER") == std::string(1, '1'))
      setup.timer_pipe = value_of(environment, "TORCHELASTIC_TIMER_FILE");
    setup.nodes = range_of(request, setup.place);
    if (setup.several_nodes()) {
      find_meeting_point(request, setup);
    } else {
      setup.master = master_of_one_node(request);
      if (setup.master.host.empty() || rendezvous::is_this_host(setup.master.host))
        setup.fixed_port = setup.master.port;
    }
  }
  require_gpu_for_each_rank(setup, devices.devices.size());
  place_ranks(request, environment, devices, machine, setup);
  return setup;
}

}  // namespace convoy::launch
