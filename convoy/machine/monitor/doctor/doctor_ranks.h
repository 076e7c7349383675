// SPDX-License-Identifier: Apache-2.0
//
// The findings of `convoy doctor` from an all-reduce of ranks, on this host or on several. A worker
// measures the figures. The functions here turn them into findings, with a remedy for each failure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/machine/monitor/doctor/doctor.h"

namespace convoy::monitor {

// The network through which this host reaches others.
struct NetworkFacts {
  std::map<std::string, std::string> interfaces = {};  // by numeric address
  std::string wanted_interface = {};                   // GLOO_SOCKET_IFNAME
  std::string master = {};                         // node 0, as the flags name it; empty = one host
  std::vector<std::string> master_addresses = {};  // addresses that the name resolves to here
  bool is_master = false;                          // this node is node 0

  // True when the named host resolves to this host itself: no other rank can be reached.
  bool leads_back() const;
};
NetworkFacts read_network(const std::string& master, const std::string& wanted_interface);

struct RankLocation {
  std::string host;
  std::string address;  // address that its connections use
  int64_t gpus = 0;     // GPUs of its host that ranks can use
  double clock_s = 0;   // since 1970, at one moment for all
};

struct RanksFacts {
  std::string check = "gloo";    // or "nccl"
  std::string not_checked = {};  // why it was not tried; empty = it was
  std::string failure = {};      // a sentence; empty = it went well
  std::string advice = {};       // advice for this failure, if it has its own
  bool met = true;               // the nodes found each other
  bool elsewhere = false;        // the failure is on another node
  bool timed_out = false;        // the check did not end within limit_s
  double limit_s = 0;
  int nodes = 1;
  std::vector<RankLocation> ranks = {};
  double latency_s = 0;
  double bytes_per_s = 0;
  NetworkFacts network = {};
};

// Reads the figures of rank-R.json, which the worker writes. Returns false when the file is missing
// or damaged.
bool read_ranks_figures(const std::filesystem::path& file, RanksFacts& facts);

std::vector<Finding> judge_ranks(const RanksFacts& facts);

}  // namespace convoy::monitor
