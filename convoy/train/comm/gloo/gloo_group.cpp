// SPDX-License-Identifier: Apache-2.0
//
// Gloo's types appear here only behind shared_ptr, and c10d's objects are used through exported
// functions, so the headers of the distribution's Gloo need not match the Gloo inside libtorch_cpu.
// ProcessGroupGloo::setTimeout and GlooStore are inline and would break that: do not use them.
#define USE_C10D_GLOO
#include "convoy/train/comm/gloo/gloo_group.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "convoy/core/base/broken_pipes.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/train/comm/gloo/bounded_wait.h"
#include "convoy/train/comm/gloo/sockets.h"
#include "convoy/train/comm/key_value_store.h"
#include "convoy/train/comm/single/single_group.h"

namespace convoy::comm {
namespace {

// The address that this rank listens on. The resolver's answer for this host's own name is not
// used: on many hosts it is a loopback address, or nothing.
std::string listening_address(const RankEnvironment& environment) {
  if (environment.one_host()) return "127.0.0.1";
  if (!environment.own_address.empty()) return environment.own_address;
  const std::string found = rendezvous::address_towards(environment.master_address);
  const bool usable = !found.empty() &&
                      (!is_loopback_address(found) || is_loopback_host(environment.master_address));
  if (!usable)
    throw ConfigError(
        fmt::format("the ranks are on several hosts, but this one reaches MASTER_ADDR {} from {}, "
                    "where no other host can reach it",
                    environment.master_address, found.empty() ? "no address" : found),
        {.hint = "set CONVOY_OWN_ADDRESS to this host's address or GLOO_SOCKET_IFNAME to its "
                 "interface"});
  return found;
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(StoreBarrier& store_barrier, int rank, int size,
                                                   const std::string& keys,
                                                   std::chrono::milliseconds timeout) {
  using Gloo = c10d::ProcessGroupGloo;
  const RankEnvironment& environment = store_barrier.environment();
  // Gloo writes to its sockets without MSG_NOSIGNAL (gloo/transport/tcp/pair.cc, Pair::write),
  // because its users run under Python, which ignores SIGPIPE.
  const BlockedBrokenPipes blocked;  // inherited by every thread that c10d and Gloo start here
  auto options = Gloo::Options::create(timeout);
  options->devices.push_back(environment.one_host() || environment.gloo_interface.empty()
                                 ? Gloo::createDeviceForHostname(listening_address(environment))
                                 : Gloo::createDeviceForInterface(environment.gloo_interface));
  c10::intrusive_ptr<c10d::Store> store = store_barrier.store().keys;
  store->setTimeout(timeout);
  if (!keys.empty()) store = c10::make_intrusive<c10d::PrefixStore>(keys, store);
  return c10::make_intrusive<Gloo>(store, rank, size, options);
}

}  // namespace

struct GlooGroup::Backend {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
  SocketSet sockets;
};

GlooGroup::GlooGroup(std::shared_ptr<StoreBarrier> store_barrier, std::chrono::seconds timeout)
    : GlooGroup(store_barrier,
                Part{store_barrier->rank(), store_barrier->size(),
                     numbered_group("world", store_barrier->environment().group), ""},
                timeout, nullptr) {}

GlooGroup::GlooGroup(std::shared_ptr<StoreBarrier> store_barrier, const Part& part,
                     std::chrono::seconds timeout, GlooGroup* whole)
    : BackendGroup(store_barrier->flight(), part.rank, part.size, part.name),
      store_barrier_(std::move(store_barrier)),
      timeout_(timeout),
      exceptions_at_start_(std::uncaught_exceptions()),
      whole_(whole),
      keys_(part.keys),
      backend_(std::make_unique<Backend>()) {
  try {
    collectives().enter("join").finish([&] { join(keys_); });
  } catch (...) {
    leave_broken();
    throw;
  }
  if (whole_ == nullptr) return;
  const std::lock_guard lock(whole_->parts_mutex_);
  whole_->parts_.push_back(this);
}

// A rank is connected as soon as its own connections are made. If it then ended, and the store with
// it, other ranks could not finish their connections: so no rank goes on before all are connected.
void GlooGroup::join(const std::string& keys) {
  const SocketSet before = connected_sockets();
  backend_->group = connect(*store_barrier_, rank(), size(), keys, timeout_);
  backend_->sockets = new_sockets(before, connected_sockets());
  await(*backend_->group->barrier());
}

GlooGroup::~GlooGroup() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort();
  if (whole_ != nullptr) {
    const std::lock_guard lock(whole_->parts_mutex_);
    std::erase(whole_->parts_, this);
  }
  if (aborted_) leave_broken();
}

// Sometimes a thread of c10d's does not notice that its connection is shut: it waits for its send
// until the time limit, and the destructor of c10d's group waits for the thread. So the group is
// not destroyed: this rank is about to end, which frees it.
void GlooGroup::leave_broken() {
  shut_down(backend_->sockets);
  backend_->group.release();
}

void GlooGroup::abort() {
  aborted_ = true;
  shut_down(backend_->sockets);
  const std::lock_guard lock(parts_mutex_);
  for (GlooGroup* part : parts_) part->abort();
}

std::unique_ptr<Group> GlooGroup::split(int color, std::string_view name) {
  const std::string own = std::to_string(color);
  const std::vector<std::string> colors = all_gather_bytes(own);
  const auto ranks_before = std::count(colors.begin(), colors.begin() + rank(), own);
  const auto ranks = std::count(colors.begin(), colors.end(), own);
  const Part part{static_cast<int>(ranks_before), static_cast<int>(ranks), name,
                  fmt::format("{}split{}/{}/", keys_, splits_++, color)};
  if (part.size == 1) return std::make_unique<SingleGroup>();
  return std::unique_ptr<Group>(new GlooGroup(store_barrier_, part, timeout_, this));
}

c10d::Backend& GlooGroup::backend() { return *backend_->group; }

c10::intrusive_ptr<c10d::Backend> GlooGroup::c10d_backend() { return backend_->group; }

// Sometimes Gloo does not end a send whose connection is closed (UnboundBuffer::waitSend), and the
// collective would wait until its time limit. So a collective that is not done some seconds after a
// peer is gone counts as failed.
void GlooGroup::await(c10d::Work& work) {
  constexpr std::chrono::milliseconds kLook{1000};
  constexpr int kLooks = 5;
  for (int lost = 0; !done_within(work, kLook); lost += any_closed(backend_->sockets) ? 1 : 0)
    if (lost == kLooks) throw std::runtime_error("the connection to another rank is closed");
}

void GlooGroup::wait_for_all() {
  if (whole_ != nullptr) return barrier();
  store_barrier_->wait_for_all();
}

c10::intrusive_ptr<c10d::Backend> gloo_of_one() {
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::minutes(1));
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  const BlockedBrokenPipes blocked;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::HashStore>(), 0, 1,
                                                     options);
}

}  // namespace convoy::comm
