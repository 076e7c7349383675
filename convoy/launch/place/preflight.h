// SPDX-License-Identifier: Apache-2.0
//
// Checks made before a rank starts: ports, limits, shared memory, disk. Read-only, except a port
// that is bound for a moment and a file made and removed in each folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::launch {

enum class Severity { Ok, Warning, Error };

struct Finding {
  Severity severity = Severity::Ok;
  // A stable word: port, open_files, processes, locked_memory, shared_memory, ...
  std::string check = {};
  std::string found = {};  // one sentence
  std::string to_do = {};  // one action; empty when ok
};

struct PreflightRequest {
  int num_ranks = 1;  // ranks on this host
  bool uses_gpus = false;
  // rendezvous address, bound if this node hosts it; empty = every address
  std::string endpoint_addr = {};
  int endpoint_port = 0;                      // 0 = no fixed port
  std::string program = {};                   // program that ranks become; empty = not checked
  std::string script = {};                    // script that the program reads; empty = none
  std::filesystem::path scratch_folder = {};  // empty = not checked
  std::filesystem::path log_folder = {};      // empty = no log files
  std::filesystem::path shared_memory = "/dev/shm";
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

// A problem is a finding and no exception.
std::vector<Finding> preflight(const PreflightRequest& request);

// Checks that this host can listen at `address`:`port` now; an empty address means every interface.
// An address that is not this host's gives a warning: a service or a router may forward it to this
// host, and the rendezvous then listens on every interface.
Finding port_finding(const std::string& address, int port,
                     const std::filesystem::path& proc = "/proc");
// The warning about an address that is not this host's.
Finding foreign_address(const std::string& address, int port);

// Checks that a rank could run `program`, looked up as execvp does, and read `script` (empty =
// none).
Finding program_finding(const std::string& program, const std::string& script);

Severity worst(const std::vector<Finding>& findings);
std::string preflight_table(const std::vector<Finding>& findings);
std::string preflight_json(const std::vector<Finding>& findings);  // an array on one line

std::string_view name_of(Severity severity);  // "ok", "warning", "error"

}  // namespace convoy::launch
