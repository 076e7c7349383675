// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/environment_resolver.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/base/suggest.h"
#include "convoy/launch/place/host_list.h"
#include "convoy/launch/place/master_address.h"
#include "convoy/launch/place/rank_source.h"

namespace convoy::launch {
namespace {

const std::vector<std::string> kSourceNames = {"torchrun",   "env",     "deepspeed", "openmpi",
                                               "mpich",      "mvapich", "jsrun",     "srun",
                                               "kubernetes", "none"};

bool is_plain(const RankSource& source) {
  return source.name == "env" || source.name == "deepspeed";
}

class PlaceResolver {
 public:
  PlaceResolver(const Environment& environment, const ResolveOptions& options)
      : variables_(environment), options_(options) {}

  ResolvedPlace resolve() {
    sources_ = read_rank_sources(variables_, place_.notes);
    read_job_id();
    if (const RankSource* chosen = choose()) {
      adopt(*chosen);
    } else if (describes_node() && allowed("kubernetes")) {
      take_node();
    } else {
      take_nothing();
    }
    return place_;
  }

 private:
  bool allowed(const std::string& name) const {
    return options_.env_source.empty() || options_.env_source == name;
  }

  void read_job_id() {
    for (const char* const name : {"SLURM_JOB_ID", "SLURM_JOBID", "LSB_JOBID"})
      if (place_.job_id.empty()) place_.job_id = variables_.text(name);
  }

  // The variables of torchrun without a run id describe a rank only when they say which: WORLD_SIZE and MASTER_ADDR
  // alone are what batch scripts prepare for others, and Kubeflow's RANK is the number of the pod.
  bool describes_rank(const RankSource& source) const {
    if (!is_plain(source)) return true;
    if (source.local_rank.known()) return true;
    return source.rank.known() && !variables_.has("PET_NNODES") && !variables_.has("PET_NODE_RANK");
  }

  const RankSource* plain_variables() const {
    const auto found = std::find_if(sources_.begin(), sources_.end(), is_plain);
    return found == sources_.end() ? nullptr : &*found;
  }

  std::string sources_seen() const {
    std::string text;
    for (const RankSource& source : sources_)
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", source.name, source.seen());
    if (describes_node()) text += text.empty() ? "kubernetes" : ", kubernetes";
    return text.empty() ? "none" : text;
  }

  const RankSource* choose() const {
    if (options_.env_source.empty()) return innermost();
    const std::string& wanted = options_.env_source;
    const bool known = std::count(kSourceNames.begin(), kSourceNames.end(), wanted) > 0;
    if (!known)
      throw ConfigError(
          fmt::format("--env-source knows no `{}`{}", wanted, did_you_mean(wanted, kSourceNames)),
          {.hint = fmt::format("one of {}", fmt::join(kSourceNames, ", "))});
    if (wanted == "none" || (wanted == "kubernetes" && describes_node())) return nullptr;
    for (const RankSource& source : sources_) {
      if (source.name != wanted) continue;
      check_complete(source);
      return &source;
    }
    throw ConfigError(fmt::format("--env-source {}: the environment has no such source, found: {}",
                                  wanted, sources_seen()));
  }

  const RankSource* innermost() const {
    const RankSource* best = nullptr;
    for (const RankSource& source : sources_) {
      if (is_plain(source)) continue;
      const bool nearer = best == nullptr || source.level < best->level;
      const bool fuller = best != nullptr && source.level == best->level &&
                          !best->missing.empty() && source.missing.empty();
      if (nearer || fuller) best = &source;
    }
    const RankSource* const plain = plain_variables();
    if (best == nullptr && plain != nullptr && describes_rank(*plain)) best = plain;
    if (best != nullptr) {
      check_complete(*best);
      check_agreement(*best);
    }
    return best;
  }

  static void check_complete(const RankSource& source) {
    if (source.missing.empty()) return;
    throw ConfigError(
        fmt::format("the environment describes a rank by half: {} is set, {} is not", source.seen(),
                    fmt::join(source.missing, ", ")),
        {.hint = "set the missing ones, unset all of them, or give --env-source none"});
  }

  void check_agreement(const RankSource& chosen) const {
    if (chosen.level == SourceLevel::Torchrun) return;
    for (const RankSource& other : sources_) {
      if (&other == &chosen) continue;
      if (is_plain(other)) {
        // A launcher of one node makes these for its own ranks.
        if (is_node(chosen) && !other.local_rank.known()) continue;
      } else if (other.level != chosen.level) {
        continue;
      }
      compare(chosen.rank, other.rank, chosen, other);
      compare(chosen.world_size, other.world_size, chosen, other);
      compare(chosen.local_rank, other.local_rank, chosen, other);
      compare(chosen.local_world_size, other.local_world_size, chosen, other);
    }
  }

  static void compare(const Fact& one, const Fact& two, const RankSource& chosen,
                      const RankSource& other) {
    if (!one.known() || !two.known() || one.number == two.number) return;
    throw ConfigError(
        fmt::format("the environment says two things: {} ({}) and {} ({})", one.text(), chosen.name,
                    two.text(), other.name),
        {.hint = fmt::format("unset one, or choose with --env-source {} or --env-source {}",
                             chosen.name, other.name)});
  }

  bool several_ranks_per_node(const RankSource& source) const {
    if (source.num_nodes.known()) return source.world_size.number > source.num_nodes.number;
    return source.local_world_size.number > 1;
  }

  // One task per node and an explicit --nproc-per-node: the task is there to start that many ranks.
  bool is_node(const RankSource& source) const {
    return options_.nproc_per_node_given && !several_ranks_per_node(source);
  }

  void adopt(const RankSource& source) {
    CONVOY_CHECK(is_node(source) || options_.nproc_per_node <= 1, ConfigError,
                 "{} already started {} ranks here ({}), so --nproc-per-node {} would start ranks "
                 "below ranks; leave it out, or start one task per node",
                 source.name, source.local_world_size.number, source.local_world_size.text(),
                 options_.nproc_per_node);
    check_bounds(source);
    place_.kind = is_node(source) ? PlaceKind::Node : PlaceKind::Rank;
    place_.source = source.name;
    if (!source.job_id.empty()) place_.job_id = source.job_id;
    add_source_origin(source);
    add_sizes(source);
    RankSource with_hosts = source;
    if (place_.num_nodes != 1) add_scheduler_hosts(variables_, with_hosts);
    if (static_cast<int>(with_hosts.hosts.size()) == place_.num_nodes)
      place_.hosts = with_hosts.hosts;
    HostOfRankZero zero;
    if (!with_hosts.hosts.empty()) zero = {with_hosts.hosts[0], with_hosts.hosts_variable};
    resolve_master(variables_, options_, zero, place_);
  }

  static void check_bounds(const RankSource& source) {
    const auto below = [](const Fact& value, const Fact& bound) {
      CONVOY_CHECK(!value.known() || !bound.known() || value.number < bound.number, ConfigError,
                   "the environment contradicts itself: {} is not below {}", value.text(),
                   bound.text());
    };
    below(source.rank, source.world_size);
    below(source.local_rank, source.local_world_size);
    below(source.node_rank, source.num_nodes);
    CONVOY_CHECK(source.local_world_size.number <= source.world_size.number, ConfigError,
                 "the environment contradicts itself: {} is more than {}",
                 source.local_world_size.text(), source.world_size.text());
    if (source.ranks_per_node.empty()) return;
    const int64_t sum =
        std::accumulate(source.ranks_per_node.begin(), source.ranks_per_node.end(), int64_t{0});
    CONVOY_CHECK(sum == source.world_size.number, ConfigError,
                 "the environment contradicts itself: {} tasks on {} nodes by {}, but {}", sum,
                 source.ranks_per_node.size(), source.local_world_size.variable,
                 source.world_size.text());
  }

  void add_source_origin(const RankSource& chosen) {
    std::string overrode;
    for (const RankSource& other : sources_) {
      const bool outer = other.level > chosen.level && !is_plain(other);
      if (&other == &chosen || other.name == chosen.name) continue;
      if (outer) place_.outer_sources.push_back(other.name);
      if (outer || !options_.env_source.empty())
        overrode +=
            fmt::format("{}{} ({})", overrode.empty() ? "" : ", ", other.name, other.seen());
    }
    if (describes_node()) place_.outer_sources.emplace_back("kubernetes");
    place_.origins.push_back({"source", chosen.name,
                              options_.env_source.empty() ? chosen.rank.variable : "--env-source",
                              overrode});
  }

  // What the plain variables say otherwise, for the column "overrode".
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
    // Equal nodes is what the number suggests, and nothing contradicts it.
    return world % local == 0 ? derived(world / local) : Fact{};
  }

  // mpirun and jsrun do not number nodes. By slot, the default mapping, node n has the ranks from n * local on.
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
    CONVOY_CHECK(nodes.number >= 1, ConfigError,
                 "wanted N or MIN:MAX in the variable PET_NNODES, found `{}`", text);
    return nodes;
  }

  // Any Indexed Job has a completion index; only one whose pods belong together has a number of nodes.
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
    CONVOY_CHECK(!node.known() || node.number < nodes.number, ConfigError,
                 "the environment contradicts itself: {} is not below {}", node.text(),
                 nodes.text());
    place_.num_nodes = nodes.number;
    place_.node_rank = node.number;
    place_.origins.push_back({"source", place_.source,
                              options_.env_source.empty()
                                  ? node.known() ? node.variable : nodes.variable
                                  : "--env-source",
                              ""});
    add_row("node_rank", node, "RANK");
    if (!overrode.empty()) place_.origins.back().overrode = overrode;
    add_row("nnodes", nodes, "GROUP_WORLD_SIZE");
    if (place_.num_nodes > 1 && node.known()) resolve_master(variables_, options_, {}, place_);
  }

  void take_nothing() {
    std::string overrode;
    for (const RankSource& source : sources_)
      overrode +=
          fmt::format("{}{} ({})", overrode.empty() ? "" : ", ", source.name, source.seen());
    place_.origins.push_back(
        {"source", "none",
         options_.env_source.empty() ? "nobody placed this process" : "--env-source", overrode});
    add_row("node_rank", {0, "default"}, "GROUP_RANK");
    add_row("nnodes", {1, "default"}, "GROUP_WORLD_SIZE");
  }

  Variables variables_;
  const ResolveOptions& options_;
  std::vector<RankSource> sources_;
  ResolvedPlace place_;
};

}  // namespace

ResolvedPlace resolve_place(const Environment& environment, const ResolveOptions& options) {
  return PlaceResolver(environment, options).resolve();
}

std::vector<std::string> resolver_variables() {
  return {Variables::all().begin(), Variables::all().end()};
}

Environment process_environment() {
  Environment made;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      made.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return made;
}

}  // namespace convoy::launch
