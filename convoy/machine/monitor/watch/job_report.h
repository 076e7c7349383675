// SPDX-License-Identifier: Apache-2.0
//
// A job's use of its devices: the member "devices" of metrics.json, and its lines for the end of a
// run and for `convoy runs show`. Plain functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace convoy::monitor {

// The work of the job in the time of a summary.
struct JobWork {
  std::string host = {};
  int64_t ranks_here = 1;  // ranks on this host, part of `ranks`
  int64_t ranks = 1;
  int usable_cpus = 1;  // on this host
  // The devices that the job's ranks on this host compute on; empty = CPUs.
  std::set<std::string> uuids = {};
  int64_t tokens = 0;  // sum over all ranks; 0 = unknown, or there are none
  int64_t supervised_tokens = 0;
  std::string why_no_cpu_energy = {};  // empty = the energy is known
  std::string why_no_memory_traffic = {};
};

// `summary`: Summary::json().
nlohmann::ordered_json job_report(const nlohmann::ordered_json& summary, const JobWork& work);

// One to three lines about a report of job_report() or of another writer: members of the wrong type
// are left out.
std::vector<std::string> job_report_lines(const nlohmann::ordered_json& report);

// A row for each GPU; empty without one.
std::string job_report_table(const nlohmann::ordered_json& report);

}  // namespace convoy::monitor
