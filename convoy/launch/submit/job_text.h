// SPDX-License-Identifier: Apache-2.0
//
// The batch script or manifest of a job, as text. Pure functions of settings that
// check_submit_settings() accepted.
#pragma once

#include <string>
#include <vector>

#include "convoy/launch/submit/submit_settings.h"

namespace convoy::launch {

// The script for sbatch: one task per node (or per rank), sent USR1 `signal_before` seconds before
// the time limit, requeued on exit codes 75 and 13.
std::string slurm_script(const SubmitSettings& settings, const std::vector<std::string>& command);

// The manifest for kubectl: a Secret with `token`, a headless Service and an Indexed Job whose pods
// are the nodes.
std::string kubernetes_manifest(const SubmitSettings& settings,
                                const std::vector<std::string>& command, const std::string& token);

// The script for bash: it finds which MPI `mpirun` is (Open MPI, MPICH, Intel MPI) and starts one
// task per node or per rank.
std::string mpi_script(const SubmitSettings& settings, const std::vector<std::string>& command);

}  // namespace convoy::launch
