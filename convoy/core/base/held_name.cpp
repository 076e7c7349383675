// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/held_name.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy {
namespace {

struct AbstractAddress {
  sockaddr_un bytes{};
  socklen_t length = 0;

  explicit AbstractAddress(const std::string& name) {
    CONVOY_INVARIANT(name.size() + 1 <= sizeof(bytes.sun_path), "the name {} is too long", name);
    bytes.sun_family = AF_UNIX;
    std::memcpy(bytes.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

}  // namespace

Descriptor hold_name(const std::string& name) {
  const AbstractAddress address(name);
  Descriptor held(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The socket listens so that holder_of_name() finds this process.
  if (held.open() && ::bind(held.get(), address.get(), address.length) == 0 &&
      ::listen(held.get(), 1) == 0)
    return held;
  if (errno != EADDRINUSE)
    throw IoError(fmt::format("the name {} cannot be held: {}", name, std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n), and allow Unix sockets in "
                           "this container"});
  return {};
}

int holder_of_name(const std::string& name) {
  const AbstractAddress address(name);
  const Descriptor asking(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred holder{};
  socklen_t length = sizeof(holder);
  if (!asking.open() || ::connect(asking.get(), address.get(), address.length) != 0 ||
      ::getsockopt(asking.get(), SOL_SOCKET, SO_PEERCRED, &holder, &length) != 0)
    return 0;
  return holder.pid;
}

}  // namespace convoy
