// SPDX-License-Identifier: Apache-2.0
//
// Finds the position of this process in a job that an outer launcher started: torchrun, mpirun,
// srun, jsrun, Kubernetes or none. A pure function of the environment map; the only code that reads
// the variables of other launchers. The table of what is read and what wins is
// docs/reference/environment.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/launch/place/origin.h"

namespace convoy::launch {

using Environment = std::map<std::string, std::string>;

enum class PlaceKind {
  Nothing,  // no outer launcher: start this host's ranks, the whole job unless flags say more
  Node,     // we are the only launcher of one of the job's nodes: start its ranks
  Rank,     // we are one rank already: adopt it, never start others below it
};

struct ResolveOptions {
  bool nproc_per_node_given = false;  // by flag or PET_NPROC_PER_NODE
  int nproc_per_node = 1;             // the number it means here (rank_count)
  int num_nodes = 0;   // from the flag (MAX of MIN:MAX); 0 = not given: PET_NNODES counts
  int node_rank = -1;  // from the flag; -1 = not given. If both are given, a bare RANK is ignored
  // --env-source: torchrun, env, openmpi, mpich, mvapich, jsrun, srun, kubernetes, none; empty =
  // decide.
  std::string env_source = {};
  std::string env_source_flag = "--env-source";  // the flag that named the source
  std::string master_addr = {};  // from --master-addr or --rdzv-endpoint; empty = not given
  int master_port = 0;           // 0 = not given
};

struct ResolvedPlace {
  PlaceKind kind = PlaceKind::Nothing;
  std::string source = "none";             // one of the names of --env-source
  std::vector<std::string> outer_sources;  // outer launchers that were overridden, innermost first

  // Values of this process. For PlaceKind::Node, rank and local_rank are -1 and the sizes 0, since
  // they depend on the number of ranks that each node starts.
  int rank = -1;
  int world_size = 0;
  int local_rank = -1;
  int local_world_size = 0;
  int node_rank = 0;                // -1 = not given by the source
  int num_nodes = 1;                // 0 = not given by the source
  std::vector<int> ranks_per_node;  // by node rank; empty = not given by the source
  std::vector<std::string> hosts;   // by node rank; empty = not given by the source

  std::string master_addr;  // host of rank 0; empty = not given (Nothing, or Node of one node)
  int master_port = 0;      // 0 = not given
  std::string job_id;       // the scheduler's job id, equal on all nodes; empty = none

  std::vector<Origin> origins;     // rows of --explain
  std::vector<std::string> notes;  // one sentence each, worth telling the user
};

// Throws ConfigError that names the variables: sources of one level disagree, a source is
// incomplete, a value is not a number, a rank is outside its world, a rank would start ranks,
// several nodes have no address of rank 0, env_source is unknown or absent.
ResolvedPlace resolve_place(const Environment& environment, const ResolveOptions& options = {});

// Every variable that resolve_place reads, sorted: for documentation and for the allow-list of
// ranks.
std::vector<std::string> resolver_variables();

// The environment of this process as a map.
Environment process_environment();

// The output of `convoy launch --explain`: kind and source, the table of origins with `flags`
// merged into it, then the notes.
std::string explain_text(const ResolvedPlace& place, const std::vector<Origin>& flags = {});

// {"kind","source","outer_sources",...,"origins":[...],"notes":[...]} on one line.
std::string explain_json(const ResolvedPlace& place, const std::vector<Origin>& flags = {});

// The output of --explain after resolve_place() has thrown `problem`: the problem, then every set
// variable that resolve_place() reads, and `flags`.
std::string explain_refusal_text(const Environment& environment, const std::string& problem,
                                 const std::vector<Origin>& flags = {});
// JSON with "kind": "refused".
std::string explain_refusal_json(const Environment& environment, const std::string& problem,
                                 const std::vector<Origin>& flags = {});

std::string_view name_of(PlaceKind kind);  // "nothing", "node", "rank"

}  // namespace convoy::launch
