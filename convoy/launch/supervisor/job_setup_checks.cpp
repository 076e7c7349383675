// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/job_setup.h"

namespace convoy::launch {

std::vector<Finding> check_job(const JobSetup& setup, const CheckedFiles& files) {
  PreflightRequest request;
  request.num_ranks = setup.num_local_ranks;
  request.uses_gpus =
      !setup.placement.ranks.empty() && !setup.placement.ranks[0].device_uuid.empty();
  if (setup.hosts_endpoint && !setup.may_join_endpoint) {
    request.endpoint_addr = setup.endpoint.host;
    request.endpoint_port = setup.endpoint.port;
  } else {
    request.endpoint_port = setup.fixed_port;
  }
  request.program = files.program;
  request.script = files.script;
  request.scratch_folder = std::filesystem::temp_directory_path();
  request.log_folder = files.log_folder;
  return preflight(request);
}

std::vector<Origin> standalone_origins(const MemberFlags& members) {
  std::vector<Origin> rows;
  const auto add = [&](const char* field, const std::string& given, const std::string& value) {
    if (!given.empty())
      rows.push_back({field, value, "--standalone", fmt::format("{} {}", flag_name(field), given)});
  };
  add("nnodes", members.nnodes, std::to_string(1));
  add("node_rank", members.node_rank < 0 ? "" : std::to_string(members.node_rank),
      std::to_string(0));
  add("rdzv_endpoint", members.rdzv_endpoint, "");
  add("rdzv_id", members.rdzv_id, "a new one");
  add("master_addr", members.master_addr, "127.0.0.1");
  add("env_source", members.env_source, "none");
  return rows;
}

}  // namespace convoy::launch
