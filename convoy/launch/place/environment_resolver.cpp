// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/environment_resolver.h"

#include <numeric>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/launch/place/master_address.h"
#include "convoy/launch/place/source_choice.h"

namespace convoy::launch {
namespace {

class PlaceResolver {
 public:
  PlaceResolver(const Environment& environment, const ResolveOptions& options)
      : variables_(environment), options_(options) {}

  ResolvedPlace resolve() {
    read_job_id();
    const SourceChoice choice(variables_, options_, describes_node());
    place_.notes = choice.notes();
    if (const RankSource* chosen = choice.chosen()) {
      adopt(*chosen, choice.seen());
    } else if (describes_node() && options_.env_source != "none") {
      take_node();
    } else {
      take_nothing(choice.seen());
    }
    return place_;
  }

 private:
  void read_job_id() {
    for (const char* const name : {"SLURM_JOB_ID", "SLURM_JOBID", "LSB_JOBID"})
      if (place_.job_id.empty()) place_.job_id = variables_.text(name);
  }

  void adopt(const RankSource& source, const std::vector<RankSource>& seen) {
    const bool is_node = is_node_task(source, options_);
    if (!is_node && options_.nproc_per_node > 1) refuse_ranks_below(source);
    check_bounds(source);
    place_.kind = is_node ? PlaceKind::Node : PlaceKind::Rank;
    place_.source = source.name;
    if (!source.job_id.empty()) place_.job_id = source.job_id;
    add_source_origin(source, seen);
    add_sizes(source);
    RankSource with_hosts = source;
    if (place_.num_nodes != 1) add_scheduler_hosts(variables_, with_hosts);
    if (static_cast<int>(with_hosts.hosts.size()) == place_.num_nodes)
      place_.hosts = with_hosts.hosts;
    HostOfRankZero zero;
    if (!with_hosts.hosts.empty()) zero = {with_hosts.hosts[0], with_hosts.hosts_variable};
    resolve_master(variables_, options_, zero, place_);
  }

  [[noreturn]] void refuse_ranks_below(const RankSource& source) const {
    const std::string by = source.level == SourceLevel::Torchrun
                               ? "torchrun or convoy launch"  // both set the same variables
                               : source.name;
    throw ConfigError(
        fmt::format("{} already started {} here ({}), so --ranks {} would start ranks below ranks",
                    by, counted(source.local_world_size.number, "rank"),
                    source.local_world_size.text(), options_.nproc_per_node),
        {.key = "nproc_per_node",
         .hint = fmt::format("start one task per node{}; or give --env-source none, and each task "
                             "is a job of its own; without --ranks this process is rank {} of {}",
                             source.name == "srun" ? " (srun --ntasks-per-node=1)" : "",
                             source.rank.number, source.world_size.number)});
  }

  static void check_bounds(const RankSource& source) {
    const auto below = [](const Fact& value, const Fact& bound) {
      if (value.known() && bound.known() && !(value.number < bound.number))
        throw ConfigError(fmt::format("the environment contradicts itself: {} is not below {}",
                                      value.text(), bound.text()),
                          {.hint = "correct or unset these variables, or give --env-source none"});
    };
    below(source.rank, source.world_size);
    below(source.local_rank, source.local_world_size);
    below(source.node_rank, source.num_nodes);
    if (source.local_world_size.number > source.world_size.number)
      throw ConfigError(fmt::format("the environment contradicts itself: {} is more than {}",
                                    source.local_world_size.text(), source.world_size.text()),
                        {.hint = "correct or unset these variables, or give --env-source none"});
    if (source.ranks_per_node.empty()) return;
    const int64_t sum =
        std::accumulate(source.ranks_per_node.begin(), source.ranks_per_node.end(), int64_t{0});
    if (sum != source.world_size.number)
      throw ConfigError(
          fmt::format("the environment contradicts itself: {} tasks on {} nodes by {}, but {}", sum,
                      source.ranks_per_node.size(), source.local_world_size.variable,
                      source.world_size.text()),
          {.hint = "correct or unset these variables, or give --env-source none"});
  }

  void add_source_origin(const RankSource& chosen, const std::vector<RankSource>& seen) {
    std::string overrode;
    for (const RankSource& other : seen) {
      const bool outer = other.level > chosen.level && !is_plain(other);
      if (&other == &chosen || other.name == chosen.name) continue;
      if (outer) place_.outer_sources.push_back(other.name);
      if (outer || !options_.env_source.empty())
        overrode +=
            fmt::format("{}{} ({})", overrode.empty() ? "" : ", ", other.name, other.seen());
    }
    if (describes_node()) place_.outer_sources.emplace_back("kubernetes");
    place_.origins.push_back(
        {"source", chosen.name,
         options_.env_source.empty() ? chosen.rank.variable : options_.env_source_flag, overrode});
  }

  // The plain variable and its value when it differs from `number`, for the column "overrode".
  std::string beaten(const std::string& variable, int number) const {
    const std::string text = variables_.text(variable);
    return text.empty() || text == std::to_string(number) ? "" : variable + "=" + text;
  }

  void add_row(const std::string& field, const Fact& fact, const std::string& plain) {
    place_.origins.push_back({field, fact.known() ? std::to_string(fact.number) : "",
                              fact.known() ? fact.variable : "not said",
                              beaten(plain, fact.number)});
  }

  void add_sizes(const RankSource& source) {
    const Fact nodes = nodes_of(source);
    const Fact node = node_rank_of(source, nodes);
    place_.num_nodes = nodes.known() ? nodes.number : 0;
    place_.node_rank = node.number;
    if (place_.kind == PlaceKind::Rank) {
      place_.rank = source.rank.number;
      place_.world_size = source.world_size.number;
      place_.local_rank = source.local_rank.number;
      place_.local_world_size = source.local_world_size.number;
      place_.ranks_per_node = source.ranks_per_node;
      add_row("rank", source.rank, "RANK");
      add_row("world_size", source.world_size, "WORLD_SIZE");
      add_row("local_rank", source.local_rank, "LOCAL_RANK");
      add_row("local_world_size", source.local_world_size, "LOCAL_WORLD_SIZE");
    }
    add_row("node_rank", node, "GROUP_RANK");
    add_row("nnodes", nodes, "GROUP_WORLD_SIZE");
  }

  static Fact nodes_of(const RankSource& source) {
    const int world = source.world_size.number;
    const int local = source.local_world_size.number;
    const auto derived = [&](int number) {
      return Fact{number, fmt::format("{} / {}", source.world_size.variable,
                                      source.local_world_size.variable)};
    };
    if (world == local) return derived(1);
    if (source.num_nodes.known()) return source.num_nodes;
    // The number suggests nodes of equal size, and nothing contradicts it.
    return world % local == 0 ? derived(world / local) : Fact{};
  }

  // mpirun and jsrun do not number nodes. With the default mapping, by slot, node n has the ranks
  // from n * local to (n + 1) * local - 1.
  static Fact node_rank_of(const RankSource& source, const Fact& nodes) {
    if (source.node_rank.known()) return source.node_rank;
    const int local = source.local_world_size.number;
    if (nodes.number == 1) return {0, "one node"};
    const bool by_slot = source.rank.number % local == source.local_rank.number;
    const bool equal = nodes.known() && nodes.number * local == source.world_size.number;
    if (!by_slot || !equal) return {};
    return {source.rank.number / local,
            fmt::format("{} / {}", source.rank.variable, source.local_world_size.variable)};
  }

  // MIN:MAX counts as MAX.
  Fact node_count() const {
    if (options_.num_nodes > 0) return {options_.num_nodes, "--nnodes"};
    const std::string text = variables_.text("PET_NNODES");
    if (text.empty()) return {1, "default"};
    const Environment maximum = {{"PET_NNODES", text.substr(text.find(':') + 1)}};
    const Fact nodes = Variables(maximum).number("PET_NNODES");
    if (nodes.number < 1)
      throw ConfigError(
          fmt::format("wanted N or MIN:MAX in the variable PET_NNODES, found `{}`", text),
          {.hint = "such as PET_NNODES=2, or unset it"});
    return nodes;
  }

  // Every Indexed Job has a completion index, but only a job whose pods work together has a number
  // of nodes.
  bool describes_node() const {
    if (variables_.has("PET_NNODES") || variables_.has("PET_NODE_RANK")) return true;
    return variables_.has("JOB_COMPLETION_INDEX") && options_.num_nodes > 1;
  }

  void take_node() {
    place_.kind = PlaceKind::Node;
    place_.source = "kubernetes";
    const Fact nodes = node_count();
    Fact node = variables_.number("PET_NODE_RANK");
    std::string overrode = node.known() ? beaten("JOB_COMPLETION_INDEX", node.number) : "";
    if (!node.known()) node = variables_.number("JOB_COMPLETION_INDEX");
    if (!node.known() && nodes.number == 1) node = {0, "one node"};
    if (node.known() && node.number >= nodes.number)
      throw ConfigError(fmt::format("the environment contradicts itself: {} is not below {}",
                                    node.text(), nodes.text()),
                        {.hint = "correct or unset these variables, or give --env-source none"});
    place_.num_nodes = nodes.number;
    place_.node_rank = node.number;
    place_.origins.push_back({"source", place_.source,
                              options_.env_source.empty()
                                  ? node.known() ? node.variable : nodes.variable
                                  : options_.env_source_flag,
                              ""});
    add_row("node_rank", node, "RANK");
    if (!overrode.empty()) place_.origins.back().overrode = overrode;
    add_row("nnodes", nodes, "GROUP_WORLD_SIZE");
    if (place_.num_nodes > 1 && node.known()) resolve_master(variables_, options_, {}, place_);
  }

  void take_nothing(const std::vector<RankSource>& seen) {
    std::string overrode;
    for (const RankSource& source : seen)
      overrode +=
          fmt::format("{}{} ({})", overrode.empty() ? "" : ", ", source.name, source.seen());
    place_.origins.push_back(
        {"source", "none",
         options_.env_source.empty() ? "no outer launcher found" : options_.env_source_flag,
         overrode});
    add_row("node_rank", {0, "default"}, "GROUP_RANK");
    add_row("nnodes", {1, "default"}, "GROUP_WORLD_SIZE");
  }

  Variables variables_;
  const ResolveOptions& options_;
  ResolvedPlace place_;
};

}  // namespace

ResolvedPlace resolve_place(const Environment& environment, const ResolveOptions& options) {
  return PlaceResolver(environment, options).resolve();
}

std::vector<std::string> resolver_variables() {
  return {Variables::all().begin(), Variables::all().end()};
}

Environment process_environment() { return whole_environment(); }

}  // namespace convoy::launch
