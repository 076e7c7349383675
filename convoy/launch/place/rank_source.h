// SPDX-License-Identifier: Apache-2.0
//
// The description of this process by one outer launcher. Read only; resolve_place chooses among
// several.
#pragma once

#include <string>
#include <vector>

#include "convoy/launch/place/variables.h"

namespace convoy::launch {

// In order: the level nearest to this process first.
enum class SourceLevel { Torchrun, Mpi, Scheduler };

struct RankSource {
  std::string name;  // as --env-source spells it
  SourceLevel level = SourceLevel::Mpi;
  Fact rank, world_size, local_rank, local_world_size, node_rank, num_nodes;
  std::vector<int> ranks_per_node;  // by node; empty = not given
  std::vector<std::string> hosts;   // by node; empty = not given
  std::string hosts_variable;
  std::string job_id;
  std::string job_id_variable;
  std::vector<std::string> missing;  // variables that a complete description needs too

  std::string seen() const;  // the variables that are set, "RANK=3, WORLD_SIZE=4"
};

// Reads every source that describes this process as a rank, innermost first. Torchrun's variables
// without a run id are the source `env` (`deepspeed` if LOCAL_SIZE is set). PMI and PMIx variables
// that srun itself set are not a separate source. Throws ConfigError when a value is not a number,
// or one source contradicts itself.
std::vector<RankSource> read_rank_sources(const Variables& variables,
                                          std::vector<std::string>& notes);

// Reads the variables of a step that srun started, not the variables of a batch script or an
// allocation. An empty name = this process is not a task. `notes` gets a line about variables that
// look like a task but are not.
RankSource read_srun(const Variables& variables, std::vector<std::string>& notes);

// Adds the hosts of the surrounding allocation when the source itself names none: SLURM's node list
// or LSF's rank file.
void add_scheduler_hosts(const Variables& variables, RankSource& source);

}  // namespace convoy::launch
