// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/port_holder.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

namespace convoy::processes {
namespace {

namespace fs = std::filesystem;

// Lines of /proc/net/tcp: number, local address:PORT in hexadecimal, remote, state (0A =
// listening), ..., inode.
void add_listeners(const fs::path& table, int port, std::set<std::string>& sockets) {
  std::ifstream file(table);
  const std::string wanted = fmt::format(":{:04X}", port);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state == "0A" && local.ends_with(wanted)) sockets.insert("socket:[" + inode + "]");
  }
}

bool has_one_of(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code denied;
  for (const auto& entry : fs::directory_iterator(process / "fd", denied)) {
    const fs::path target = fs::read_symlink(entry.path(), denied);
    if (sockets.count(target.string()) > 0) return true;
  }
  return false;
}

}  // namespace

std::string port_holder(int port, const fs::path& proc) {
  std::set<std::string> sockets;
  add_listeners(proc / "net/tcp", port, sockets);
  add_listeners(proc / "net/tcp6", port, sockets);
  if (sockets.empty()) return "";
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(proc, gone)) {
    const std::string number = entry.path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!has_one_of(entry.path(), sockets)) continue;
    std::string name;
    std::ifstream comm(entry.path() / "comm");
    std::getline(comm, name);
    return fmt::format("process {} ({})", number, name);
  }
  return "";
}

}  // namespace convoy::processes
