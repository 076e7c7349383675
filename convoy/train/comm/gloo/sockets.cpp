// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/gloo/sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/launch/rendezvous/endpoint.h"

namespace convoy::comm {
namespace {

bool is_connected_stream(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    descriptors.push_back(number);
  }
  return descriptors;
}

}  // namespace

SocketSet connected_sockets() {
  SocketSet sockets;
  for (const int descriptor : open_descriptors()) {
    struct stat info {};
    if (fstat(descriptor, &info) != 0 || !S_ISSOCK(info.st_mode)) continue;
    if (is_connected_stream(descriptor)) sockets[descriptor] = info.st_ino;
  }
  return sockets;
}

SocketSet new_sockets(const SocketSet& before, const SocketSet& after) {
  SocketSet added;
  for (const auto& [descriptor, inode] : after) {
    const auto known = before.find(descriptor);
    if (known == before.end() || known->second != inode) added[descriptor] = inode;
  }
  return added;
}

bool any_closed(const SocketSet& sockets) {
  for (const auto& [descriptor, inode] : sockets) {
    struct stat info {};
    if (fstat(descriptor, &info) != 0 || info.st_ino != inode) return true;
  }
  return false;
}

void shut_down(const SocketSet& sockets) {
  for (const auto& [descriptor, inode] : sockets) {
    struct stat info {};
    if (fstat(descriptor, &info) == 0 && info.st_ino == inode) ::shutdown(descriptor, SHUT_RDWR);
  }
}

std::string local_address(const SocketSet& sockets) {
  std::string address;
  for (const auto& [descriptor, inode] : sockets) {
    const std::string one = rendezvous::local_endpoint(descriptor).host;
    if (!address.empty() && one != address) return "";
    address = one;
  }
  return address;
}

}  // namespace convoy::comm
