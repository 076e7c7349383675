// SPDX-License-Identifier: Apache-2.0
//
// The description of this process by one outer launcher. Read only; resolve_place chooses among
// several.
#pragma once

#include <string>
#include <vector>

#include "convoy/launch/place/variables.h"

namespace convoy::launch {

// The nearer to this process, the smaller.
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
  std::vector<std::string> missing;  // names without which this is half a description

  std::string seen() const;  // the variables that are set, "RANK=3, WORLD_SIZE=4"
};

// Everything that describes this process as a rank, innermost first. Torchrun's variables without a
// run id are the source `env` (`deepspeed` by its LOCAL_SIZE). PMI and PMIx variables that srun
// itself set are no source of their own. Throws ConfigError: no number, or one source that
// contradicts itself.
std::vector<RankSource> read_rank_sources(const Variables& variables,
                                          std::vector<std::string>& notes);

// A step started by srun, not a batch script and not an allocation; empty name = not a task.
// `notes` gets a line about variables that look like a task but are not.
RankSource read_srun(const Variables& variables, std::vector<std::string>& notes);

// Hosts of the allocation around us when the source itself names none: SLURM's node list or LSF's
// rank file.
void add_scheduler_hosts(const Variables& variables, RankSource& source);

}  // namespace convoy::launch
