// SPDX-License-Identifier: Apache-2.0
//
// c10d's Gloo backend cannot be cancelled: its destructor waits for collectives that a peer may
// never join. Its connections are found by comparing this process's sockets before and after the
// backend was made, and can then be shut down.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace convoy::comm {

// Descriptor -> inode, which identifies a reused descriptor.
using SocketSet = std::map<int, ino_t>;

// Connected stream sockets of this process.
SocketSet connected_sockets();

// The sockets of `after` that are not in `before`.
SocketSet new_sockets(const SocketSet& before, const SocketSet& after);

// True when one of the sockets is closed: its peer is gone, or this end shut it down.
bool any_closed(const SocketSet& sockets);

// Shuts down each socket whose descriptor has not been reused; both ends then see the end of the
// stream. The descriptors stay open.
void shut_down(const SocketSet& sockets);

// The numeric local address of the sockets; empty when their local addresses differ.
std::string local_address(const SocketSet& sockets);

}  // namespace convoy::comm
