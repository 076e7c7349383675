// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/rank_source.h"

#include <algorithm>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/launch/place/host_list.h"

namespace convoy::launch {
namespace {

using Names = std::vector<std::string_view>;

// Each value may have several variables. The first one that is set counts; the others must agree.
struct SourceNames {
  std::string_view name;
  SourceLevel level;
  Names rank, world_size, local_rank, local_world_size, node_rank, num_nodes;
};

const std::vector<SourceNames>& mpi_sources() {
  static const std::vector<SourceNames> kSources = {
      {"openmpi",
       SourceLevel::Mpi,
       {"OMPI_COMM_WORLD_RANK"},
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       {},
       {"OMPI_MCA_orte_num_nodes"}},
      {"mvapich",
       SourceLevel::Mpi,
       {"MV2_COMM_WORLD_RANK"},
       {"MV2_COMM_WORLD_SIZE"},
       {"MV2_COMM_WORLD_LOCAL_RANK"},
       {"MV2_COMM_WORLD_LOCAL_SIZE"},
       {},
       {}},
      {"mpich",
       SourceLevel::Mpi,
       {"PMI_RANK"},
       {"PMI_SIZE"},
       {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
       {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
       {},
       {}},
      {"jsrun",
       SourceLevel::Mpi,
       {"JSM_NAMESPACE_RANK"},
       {"JSM_NAMESPACE_SIZE"},
       {"JSM_NAMESPACE_LOCAL_RANK"},
       {"JSM_NAMESPACE_LOCAL_SIZE"},
       {},
       {}},
  };
  return kSources;
}

const SourceNames& torch_names() {
  static const SourceNames kNames = {"env",
                                     SourceLevel::Mpi,
                                     {"RANK"},
                                     {"WORLD_SIZE"},
                                     {"LOCAL_RANK"},
                                     {"LOCAL_WORLD_SIZE", "LOCAL_SIZE"},
                                     {"GROUP_RANK", "CROSS_RANK"},
                                     {"GROUP_WORLD_SIZE", "CROSS_SIZE"}};
  return kNames;
}

RankSource read_source(const Variables& variables, const SourceNames& names) {
  RankSource source;
  source.name = names.name;
  source.level = names.level;
  const auto need = [&](const Names& choices, Fact& fact) {
    fact = variables.first_number(choices);
    if (!fact.known()) source.missing.emplace_back(choices[0]);
  };
  need(names.rank, source.rank);
  need(names.world_size, source.world_size);
  need(names.local_rank, source.local_rank);
  need(names.local_world_size, source.local_world_size);
  source.node_rank = variables.first_number(names.node_rank);
  source.num_nodes = variables.first_number(names.num_nodes);
  return source;
}

bool says_anything(const RankSource& source) {
  return source.rank.known() || source.world_size.known() || source.local_rank.known() ||
         source.local_world_size.known();
}

void add_openmpi_job(const Variables& variables, RankSource& source) {
  if (!variables.has("PMIX_NAMESPACE")) return;
  source.job_id = variables.text("PMIX_NAMESPACE");
  source.job_id_variable = "PMIX_NAMESPACE";
}

// `srun --mpi=pmi2` and `--mpi=pmix` set the variables of PMI for every task, without local ranks.
bool set_by_srun(const RankSource& pmi, const RankSource& srun) {
  return !srun.name.empty() && !pmi.local_rank.known() && pmi.rank.number == srun.rank.number &&
         (!pmi.world_size.known() || pmi.world_size.number == srun.world_size.number);
}

// Under PRRTE without Open MPI, PMIx gives the rank but no sizes. A source that already has this
// rank makes PMIX_RANK redundant.
void add_pmix(const Variables& variables, const RankSource& srun,
              std::vector<RankSource>& sources) {
  const Fact rank = variables.number("PMIX_RANK");
  if (!rank.known()) return;
  for (const RankSource& source : sources)
    if (source.rank.known() && source.rank.number == rank.number) return;
  RankSource pmix;
  pmix.name = "openmpi";
  pmix.rank = rank;
  if (set_by_srun(pmix, srun)) return;
  pmix.missing = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                  "OMPI_COMM_WORLD_LOCAL_SIZE"};
  add_openmpi_job(variables, pmix);
  sources.push_back(pmix);
}

RankSource read_torch_variables(const Variables& variables) {
  RankSource source = read_source(variables, torch_names());
  if (variables.has("TORCHELASTIC_RUN_ID")) {
    source.name = "torchrun";
    source.level = SourceLevel::Torchrun;
    source.job_id = variables.text("TORCHELASTIC_RUN_ID");
    source.job_id_variable = "TORCHELASTIC_RUN_ID";
  } else if (variables.has("LOCAL_SIZE") && !variables.has("LOCAL_WORLD_SIZE")) {
    source.name = "deepspeed";
  }
  return source;
}

// A job of one process has local rank 0 and local size 1.
void complete_single_rank(RankSource& source) {
  if (source.rank.number != 0 || source.world_size.number != 1) return;
  if (!source.local_rank.known()) source.local_rank = {0, source.world_size.variable};
  if (!source.local_world_size.known()) source.local_world_size = source.world_size;
  source.missing.clear();
}

std::vector<std::string> rank_file_hosts(const std::string& path, bool skip_first) {
  std::ifstream file(path);
  std::vector<std::string> hosts;
  bool first = true;
  for (std::string line; std::getline(file, line); first = false) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    const bool is_new = std::find(hosts.begin(), hosts.end(), line) == hosts.end();
    if (!line.empty() && is_new && !(first && skip_first)) hosts.push_back(line);
  }
  return hosts;
}

}  // namespace

std::string RankSource::seen() const {
  std::string text;
  for (const Fact* fact : {&rank, &world_size, &local_rank, &local_world_size})
    if (fact->known()) text += (text.empty() ? "" : ", ") + fact->text();
  return text;
}

std::vector<RankSource> read_rank_sources(const Variables& variables,
                                          std::vector<std::string>& notes) {
  const RankSource srun = read_srun(variables, notes);
  std::vector<RankSource> sources;
  RankSource torch = read_torch_variables(variables);
  if (torch.level == SourceLevel::Torchrun) sources.push_back(torch);
  for (const SourceNames& names : mpi_sources()) {
    RankSource source = read_source(variables, names);
    if (!says_anything(source) || set_by_srun(source, srun)) continue;
    if (source.name == "openmpi") add_openmpi_job(variables, source);
    sources.push_back(std::move(source));
  }
  add_pmix(variables, srun, sources);
  if (!srun.name.empty()) sources.push_back(srun);
  if (torch.level != SourceLevel::Torchrun && says_anything(torch)) sources.push_back(torch);
  for (RankSource& source : sources) complete_single_rank(source);
  return sources;
}

void add_scheduler_hosts(const Variables& variables, RankSource& source) {
  if (!source.hosts.empty()) return;
  if (variables.has("SLURM_JOB_NODELIST")) {
    source.hosts_variable = "SLURM_JOB_NODELIST";
    source.hosts = expand_host_list(variables.text("SLURM_JOB_NODELIST"), source.hosts_variable);
  } else if (variables.has("LSB_DJOB_RANKFILE")) {
    // jsrun is used on systems whose batch script runs on a separate host. The file names that host
    // first.
    source.hosts_variable = "LSB_DJOB_RANKFILE";
    source.hosts = rank_file_hosts(variables.text("LSB_DJOB_RANKFILE"), source.name == "jsrun");
  }
}

}  // namespace convoy::launch
