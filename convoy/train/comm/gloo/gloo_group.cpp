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
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/gloo/bounded_wait.h"
#include "convoy/train/comm/gloo/broken_pipes.h"
#include "convoy/train/comm/gloo/sockets.h"
#include "convoy/train/comm/job_store.h"
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

// Once in a while Gloo does not end a send whose connection is closed (UnboundBuffer::waitSend),
// and the collective would stay until its time limit. A collective that is not done some seconds
// after a peer is gone never will be.
void await(c10d::Work& work, const SocketSet& sockets) {
  constexpr std::chrono::milliseconds kLook{1000};
  constexpr int kLooks = 5;
  for (int lost = 0; !done_within(work, kLook); lost += any_closed(sockets) ? 1 : 0)
    if (lost == kLooks) throw std::runtime_error("the connection to another rank is closed");
}

// Numbers of any type, where nothing is added up.
at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.detach().view({-1}).view(at::kByte); }

// A detached alias: c10d writes in place, which autograd's version checks must not see. Gloo adds
// up real numbers only.
at::Tensor reals_of(const at::Tensor& tensor) {
  const at::Tensor alias = tensor.detach();
  return alias.is_complex() ? at::view_as_real(alias).view({-1}) : alias;
}

c10d::ReduceOp::RedOpType c10d_reduction(Reduction reduction) {
  return reduction == Reduction::Sum   ? c10d::ReduceOp::SUM
         : reduction == Reduction::Max ? c10d::ReduceOp::MAX
                                       : c10d::ReduceOp::MIN;
}

class GlooWork : public Work {
 public:
  GlooWork(const CollectiveScope& scope, c10::intrusive_ptr<c10d::Work> work,
           const SocketSet& sockets)
      : scope_(scope), work_(std::move(work)), sockets_(sockets) {
    if (scope_.is_traced())
      work_->getFuture()->addCallback([scope](c10::ivalue::Future&) { scope.arrived(); });
  }

  void wait() override {
    scope_.finish([&] { await(*work_, sockets_); });
  }

 private:
  CollectiveScope scope_;
  c10::intrusive_ptr<c10d::Work> work_;
  const SocketSet& sockets_;  // the group's sockets; the group outlives this
};

// Every rank sends each other one its piece, and reduces what it received in the order of ranks.
class ReduceScatterWork : public Work {
 public:
  ReduceScatterWork(std::unique_ptr<Work> exchange, at::Tensor received, at::Tensor own,
                    Reduction reduction)
      : exchange_(std::move(exchange)),
        received_(std::move(received)),
        own_(std::move(own)),
        reduction_(reduction) {}

  void wait() override {
    exchange_->wait();
    reduce_rows(own_.view({-1}), received_.view({-1, own_.numel()}), reduction_);
    received_ = at::Tensor();
  }

 private:
  std::unique_ptr<Work> exchange_;
  at::Tensor received_;
  at::Tensor own_;
  Reduction reduction_;
};

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
    : store_barrier_(std::move(store_barrier)),
      timeout_(timeout),
      rank_(part.rank),
      size_(part.size),
      collectives_(store_barrier_->flight(), rank_, size_, part.name),
      exceptions_at_start_(std::uncaught_exceptions()),
      whole_(whole),
      keys_(part.keys),
      backend_(std::make_unique<Backend>()) {
  try {
    collectives_.enter("join").finish([&] { join(keys_); });
  } catch (...) {
    leave_broken();
    throw;
  }
  if (whole_ == nullptr) return;
  const std::lock_guard lock(whole_->parts_mutex_);
  whole_->parts_.push_back(this);
}

// A rank is connected as soon as its own connections stand. If it then ended, and took the store
// along, others could not finish theirs: so none goes on before all are connected.
void GlooGroup::join(const std::string& keys) {
  const SocketSet before = connected_sockets();
  backend_->group = connect(*store_barrier_, rank_, size_, keys, timeout_);
  backend_->sockets = new_sockets(before, connected_sockets());
  await(*backend_->group->barrier(), backend_->sockets);
}

GlooGroup::~GlooGroup() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort();
  if (whole_ != nullptr) {
    const std::lock_guard lock(whole_->parts_mutex_);
    std::erase(whole_->parts_, this);
  }
  if (aborted_) leave_broken();
}

// Once in a while a thread of c10d's does not notice that its connection is shut and waits for its
// send until the time limit, and the destructor of c10d's group for the thread. This rank is about
// to end, which frees the group.
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
  const auto ranks_before = std::count(colors.begin(), colors.begin() + rank_, own);
  const auto ranks = std::count(colors.begin(), colors.end(), own);
  const Part part{static_cast<int>(ranks_before), static_cast<int>(ranks), name,
                  fmt::format("{}split{}/{}/", keys_, splits_++, color)};
  if (part.size == 1) return std::make_unique<SingleGroup>();
  return std::unique_ptr<Group>(new GlooGroup(store_barrier_, part, timeout_, this));
}

std::unique_ptr<Work> GlooGroup::start_all_reduce(at::Tensor tensor, Reduction reduction) {
  const CollectiveScope scope = collectives_.enter("all_reduce", tensor);
  return scope.run([&]() -> std::unique_ptr<Work> {
    std::vector<at::Tensor> tensors = {reals_of(tensor)};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d_reduction(reduction);
    return std::make_unique<GlooWork>(scope, backend_->group->allreduce(tensors, options),
                                      backend_->sockets);
  });
}

std::unique_ptr<Work> GlooGroup::start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                      Reduction reduction) {
  CONVOY_INVARIANT(whole.numel() == size_ * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size_, own.numel());
  const CollectiveScope scope = collectives_.enter("reduce_scatter", whole);
  return scope.run([&]() -> std::unique_ptr<Work> {
    at::Tensor sent = reals_of(whole).view({-1});
    at::Tensor received = at::empty_like(sent);
    std::vector<int64_t> equal_pieces;
    auto exchange = std::make_unique<GlooWork>(
        scope, backend_->group->alltoall_base(received, sent, equal_pieces, equal_pieces),
        backend_->sockets);
    return std::make_unique<ReduceScatterWork>(std::move(exchange), std::move(received),
                                               reals_of(own), reduction);
  });
}

std::unique_ptr<Work> GlooGroup::start_all_gather(at::Tensor own, at::Tensor whole) {
  CONVOY_INVARIANT(whole.numel() == size_ * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size_, own.numel());
  const CollectiveScope scope = collectives_.enter("all_gather", own);
  return scope.run([&]() -> std::unique_ptr<Work> {
    at::Tensor sent = bytes_of(own);
    at::Tensor gathered = bytes_of(whole);
    return std::make_unique<GlooWork>(scope, backend_->group->_allgather_base(gathered, sent),
                                      backend_->sockets);
  });
}

void GlooGroup::broadcast(at::Tensor tensor, int root) {
  collectives_.enter("broadcast", tensor).finish([&] {
    std::vector<at::Tensor> tensors = {bytes_of(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    await(*backend_->group->broadcast(tensors, options), backend_->sockets);
  });
}

std::vector<std::string> GlooGroup::all_gather_bytes(std::string_view bytes) {
  at::Tensor lengths = at::zeros({size_}, at::kLong);
  lengths[rank_] = static_cast<int64_t>(bytes.size());
  all_reduce_sum(lengths);
  // Gloo gathers equal sizes: pad to the longest, and to one byte for it refuses none.
  const int64_t padded_bytes = std::max<int64_t>(1, lengths.max().item<int64_t>());
  std::vector<at::Tensor> input = {at::zeros({padded_bytes}, at::kByte)};
  std::copy(bytes.begin(), bytes.end(), input[0].data_ptr<uint8_t>());
  std::vector<std::vector<at::Tensor>> output(1);
  for (int rank = 0; rank < size_; ++rank) output[0].push_back(at::empty_like(input[0]));
  collectives_.enter("all_gather", input[0]).finish([&] {
    await(*backend_->group->allgather(output, input), backend_->sockets);
  });
  std::vector<std::string> gathered;
  for (int rank = 0; rank < size_; ++rank) {
    const auto* const data =
        reinterpret_cast<const char*>(output[0][static_cast<size_t>(rank)].data_ptr<uint8_t>());
    gathered.emplace_back(data, static_cast<size_t>(lengths[rank].item<int64_t>()));
  }
  return gathered;
}

void GlooGroup::barrier() {
  collectives_.enter("barrier").finish(
      [&] { await(*backend_->group->barrier(), backend_->sockets); });
}

void GlooGroup::wait_for_all() {
  if (whole_ != nullptr) return barrier();
  store_barrier_->wait_for_all();
}

}  // namespace convoy::comm
