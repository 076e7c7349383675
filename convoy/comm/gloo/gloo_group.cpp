// SPDX-License-Identifier: Apache-2.0
//
// Gloo's types appear here only behind shared_ptr, and c10d's objects are used through exported functions, so the headers of
// the distribution's Gloo need not match the Gloo inside libtorch_cpu. ProcessGroupGloo::setTimeout and GlooStore are inline and would
// break that: do not use them.
#define USE_C10D_GLOO
#include "convoy/comm/gloo/gloo_group.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "convoy/base/error.h"
#include "convoy/comm/gloo/sockets.h"

namespace convoy::comm {
namespace {

// Runs `call`, turning c10d's and Gloo's exceptions into one CommError that says who was doing what.
template <class Call>
auto translated(int rank, int size, const std::string& what, Call call) {
  const auto fail = [&](std::string reason) -> CommError {
    reason = reason.substr(0, reason.find('\n'));
    return CommError(
        fmt::format("rank {} of {}: {} failed: {}", rank, size, what, reason),
        {.hint = "another rank ended or did not answer in time; its own error is the cause",
         .rank = rank});
  };
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw fail(error.what());
  }
}

c10::intrusive_ptr<c10d::Store> open_store(const RankEnvironment& environment,
                                           std::chrono::milliseconds timeout) {
  c10::intrusive_ptr<c10d::Store> store;
  if (!environment.store_file.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(environment.store_file, environment.world);
  } else {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(environment.master_port);
    options.isServer = environment.rank == 0 && !environment.agent_hosts_store;
    options.numWorkers = static_cast<size_t>(environment.world);
    options.multiTenant = true;
    options.timeout = timeout;
    store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  }
  store->setTimeout(timeout);
  // Keys of an earlier attempt must never be read.
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("convoy/{}/attempt_{}", environment.run_id, environment.restart_count), store);
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const RankEnvironment& environment,
                                                   std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  // On one host nothing listens beyond loopback. On several, Gloo takes the address of this host's own name.
  options->devices.push_back(environment.one_host()
                                 ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                 : c10d::ProcessGroupGloo::createDefaultDevice());
  return c10::make_intrusive<c10d::ProcessGroupGloo>(open_store(environment, timeout),
                                                     environment.rank, environment.world, options);
}

class GlooWork : public Work {
 public:
  GlooWork(int rank, int size, std::string what, c10::intrusive_ptr<c10d::Work> work)
      : rank_(rank), size_(size), what_(std::move(what)), work_(std::move(work)) {}

  void wait() override {
    translated(rank_, size_, what_, [&] { work_->wait(); });
  }

 private:
  int rank_;
  int size_;
  std::string what_;
  c10::intrusive_ptr<c10d::Work> work_;
};

}  // namespace

struct GlooGroup::Backend {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
  SocketSet sockets;
};

GlooGroup::GlooGroup(const RankEnvironment& environment, std::chrono::seconds timeout)
    : rank_(environment.rank),
      size_(environment.world),
      exceptions_at_start_(std::uncaught_exceptions()),
      backend_(std::make_unique<Backend>()) {
  const SocketSet before = connected_sockets();
  translated(rank_, size_, "joining the group",
             [&] { backend_->group = connect(environment, timeout); });
  backend_->sockets = new_sockets(before, connected_sockets());
}

GlooGroup::~GlooGroup() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort();
}

void GlooGroup::abort() { shut_down(backend_->sockets); }

std::unique_ptr<Work> GlooGroup::start_all_reduce_sum(at::Tensor tensor) {
  CONVOY_INVARIANT(tensor.is_contiguous(), "all-reduce of a tensor that is not contiguous");
  std::string what = fmt::format("all_reduce #{} of {} numbers", sequence_++, tensor.numel());
  return translated(rank_, size_, what, [&]() -> std::unique_ptr<Work> {
    // A detached alias: c10d writes in place and must not meet autograd's version checks.
    std::vector<at::Tensor> tensors = {tensor.detach()};
    return std::make_unique<GlooWork>(rank_, size_, what, backend_->group->allreduce(tensors));
  });
}

void GlooGroup::broadcast(at::Tensor tensor, int root) {
  CONVOY_INVARIANT(tensor.is_contiguous(), "broadcast of a tensor that is not contiguous");
  translated(rank_, size_, fmt::format("broadcast #{} from rank {}", sequence_++, root), [&] {
    std::vector<at::Tensor> tensors = {tensor.detach()};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    backend_->group->broadcast(tensors, options)->wait();
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
  translated(rank_, size_, fmt::format("all_gather #{}", sequence_++),
             [&] { backend_->group->allgather(output, input)->wait(); });
  std::vector<std::string> gathered;
  for (int rank = 0; rank < size_; ++rank) {
    const auto* const data =
        reinterpret_cast<const char*>(output[0][static_cast<size_t>(rank)].data_ptr<uint8_t>());
    gathered.emplace_back(data, static_cast<size_t>(lengths[rank].item<int64_t>()));
  }
  return gathered;
}

void GlooGroup::barrier() {
  translated(rank_, size_, fmt::format("barrier #{}", sequence_++),
             [&] { backend_->group->barrier()->wait(); });
}

}  // namespace convoy::comm
