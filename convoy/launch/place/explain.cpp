// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::launch {
namespace {

std::string sentence(const ResolvedPlace& place) {
  switch (place.kind) {
    case PlaceKind::Nothing:
      return "no outer launcher found (torchrun, srun, mpirun, Kubernetes): this process starts "
             "the ranks of this host";
    case PlaceKind::Node:
      return fmt::format(
          "{} started this process as the launcher of one node: it starts the ranks of this node",
          place.source);
    case PlaceKind::Rank:
      return fmt::format(
          "{} started this process as one rank: it runs as that rank and starts no others",
          place.source);
  }
  throw StateError("a kind of place without a sentence");
}

// A row for each set variable that the resolver reads, then the rows of the flags.
std::vector<Origin> rows_found(const Environment& environment, const std::vector<Origin>& flags) {
  std::vector<Origin> rows;
  for (const std::string& name : resolver_variables()) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty())
      rows.push_back({name, found->second, "the environment", ""});
  }
  rows.insert(rows.end(), flags.begin(), flags.end());
  return rows;
}

}  // namespace

std::string_view name_of(PlaceKind kind) {
  switch (kind) {
    case PlaceKind::Nothing:
      return "nothing";
    case PlaceKind::Node:
      return "node";
    case PlaceKind::Rank:
      return "rank";
  }
  throw StateError("a kind of place without a name");
}

std::string explain_text(const ResolvedPlace& place, const std::vector<Origin>& flags) {
  std::string text = sentence(place) + '\n';
  if (!place.outer_sources.empty())
    text += fmt::format("around it, overridden: {}\n", fmt::join(place.outer_sources, ", "));
  text += '\n' + origin_table(merge_origins(place.origins, flags));
  if (!place.notes.empty()) text += '\n';
  for (const std::string& note : place.notes) text += "note: " + note + '\n';
  return text;
}

std::string explain_json(const ResolvedPlace& place, const std::vector<Origin>& flags) {
  nlohmann::ordered_json json;
  json["kind"] = name_of(place.kind);
  json["source"] = place.source;
  json["outer_sources"] = place.outer_sources;
  json["rank"] = place.rank;
  json["world_size"] = place.world_size;
  json["local_rank"] = place.local_rank;
  json["local_world_size"] = place.local_world_size;
  json["node_rank"] = place.node_rank;
  json["nnodes"] = place.num_nodes;
  json["ranks_per_node"] = place.ranks_per_node;
  json["hosts"] = place.hosts;
  json["master_addr"] = place.master_addr;
  json["master_port"] = place.master_port;
  json["job_id"] = place.job_id;
  json["origins"] = nlohmann::ordered_json::parse(origin_json(merge_origins(place.origins, flags)));
  json["notes"] = place.notes;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string explain_refusal_text(const Environment& environment, const std::string& problem,
                                 const std::vector<Origin>& flags) {
  return fmt::format("nothing would be started: {}\n\n{}", problem,
                     origin_table(rows_found(environment, flags)));
}

std::string explain_refusal_json(const Environment& environment, const std::string& problem,
                                 const std::vector<Origin>& flags) {
  nlohmann::ordered_json json;
  json["kind"] = "refused";
  json["problem"] = problem;
  json["origins"] = nlohmann::ordered_json::parse(origin_json(rows_found(environment, flags)));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace convoy::launch
