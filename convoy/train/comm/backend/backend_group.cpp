// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/backend/backend_group.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

// The bytes of a tensor of any type, for collectives that add nothing up.
at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.detach().view({-1}).view(at::kByte); }

// A detached alias: c10d writes in place, which autograd's version checks must not see. Complex
// numbers become pairs of real numbers, because Gloo adds up only real numbers.
at::Tensor reals_of(const at::Tensor& tensor) {
  const at::Tensor alias = tensor.detach();
  return alias.is_complex() ? at::view_as_real(alias).view({-1}) : alias;
}

c10d::ReduceOp::RedOpType c10d_reduction(Reduction reduction) {
  return reduction == Reduction::Sum   ? c10d::ReduceOp::SUM
         : reduction == Reduction::Max ? c10d::ReduceOp::MAX
                                       : c10d::ReduceOp::MIN;
}

// Every rank sends each other rank its piece, and reduces the received pieces in the order of
// ranks.
class ReduceScatterWork : public Work {
 public:
  // `received`: [ranks, elements of a piece].
  ReduceScatterWork(std::unique_ptr<Work> exchange, at::Tensor received, at::Tensor own,
                    Reduction reduction)
      : exchange_(std::move(exchange)),
        received_(std::move(received)),
        own_(std::move(own)),
        reduction_(reduction) {}

  void wait() override {
    exchange_->wait();
    reduce_rows(own_.view({-1}), received_, reduction_);
    received_ = at::Tensor();
  }

 private:
  std::unique_ptr<Work> exchange_;
  at::Tensor received_;
  at::Tensor own_;
  Reduction reduction_;
};

}  // namespace

class BackendGroup::BackendWork : public Work {
 public:
  BackendWork(BackendGroup& group, const CollectiveScope& scope,
              c10::intrusive_ptr<c10d::Work> work)
      : group_(group), scope_(scope), work_(std::move(work)) {
    if (scope_.is_traced())
      work_->getFuture()->addCallback([scope](c10::ivalue::Future&) { scope.arrived(); });
  }

  void wait() override {
    scope_.finish([this] { group_.await(*work_); });
  }

 private:
  BackendGroup& group_;  // outlives this
  CollectiveScope scope_;
  c10::intrusive_ptr<c10d::Work> work_;
};

std::unique_ptr<Work> BackendGroup::start_all_reduce(at::Tensor tensor, Reduction reduction) {
  const CollectiveScope scope = collectives_.enter("all_reduce", tensor);
  return scope.run([&]() -> std::unique_ptr<Work> {
    std::vector<at::Tensor> tensors = {reals_of(tensor)};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d_reduction(reduction);
    return std::make_unique<BackendWork>(*this, scope, backend().allreduce(tensors, options));
  });
}

std::unique_ptr<Work> BackendGroup::start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                         Reduction reduction) {
  CONVOY_INVARIANT(whole.numel() == size_ * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size_, own.numel());
  const CollectiveScope scope = collectives_.enter("reduce_scatter", whole);
  return scope.run([&]() -> std::unique_ptr<Work> {
    at::Tensor sent = reals_of(whole).view({-1});
    at::Tensor received = at::empty_like(sent);
    std::vector<int64_t> equal_pieces;
    auto exchange = std::make_unique<BackendWork>(
        *this, scope, backend().alltoall_base(received, sent, equal_pieces, equal_pieces));
    return std::make_unique<ReduceScatterWork>(std::move(exchange),
                                               received.view({size_, received.numel() / size_}),
                                               reals_of(own), reduction);
  });
}

std::unique_ptr<Work> BackendGroup::start_all_gather(at::Tensor own, at::Tensor whole) {
  CONVOY_INVARIANT(whole.numel() == size_ * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size_, own.numel());
  const CollectiveScope scope = collectives_.enter("all_gather", own);
  return scope.run([&]() -> std::unique_ptr<Work> {
    at::Tensor sent = bytes_of(own);
    at::Tensor gathered = bytes_of(whole);
    return std::make_unique<BackendWork>(*this, scope, backend()._allgather_base(gathered, sent));
  });
}

void BackendGroup::broadcast(at::Tensor tensor, int root) {
  collectives_.enter("broadcast", tensor).finish([&] {
    std::vector<at::Tensor> tensors = {bytes_of(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    await(*backend().broadcast(tensors, options));
  });
}

std::vector<std::string> BackendGroup::all_gather_bytes(std::string_view bytes) {
  at::Tensor lengths = at::zeros({size_}, at::kLong);
  lengths[rank_] = static_cast<int64_t>(bytes.size());
  all_reduce_sum(lengths);
  // Gloo gathers only texts of one size and none that is empty: pad to the longest, and to one
  // byte.
  const int64_t padded_bytes = std::max<int64_t>(1, lengths.max().item<int64_t>());
  std::vector<at::Tensor> input = {at::zeros({padded_bytes}, at::kByte)};
  std::copy(bytes.begin(), bytes.end(), input[0].data_ptr<uint8_t>());
  std::vector<std::vector<at::Tensor>> output(1);
  for (int rank = 0; rank < size_; ++rank) output[0].push_back(at::empty_like(input[0]));
  collectives_.enter("all_gather", input[0]).finish([&] {
    await(*backend().allgather(output, input));
  });
  std::vector<std::string> gathered;
  for (int rank = 0; rank < size_; ++rank) {
    const auto* const data =
        reinterpret_cast<const char*>(output[0][static_cast<size_t>(rank)].data_ptr<uint8_t>());
    gathered.emplace_back(data, static_cast<size_t>(lengths[rank].item<int64_t>()));
  }
  return gathered;
}

void BackendGroup::barrier() {
  collectives_.enter("barrier").finish([&] { await(*backend().barrier()); });
}

}  // namespace convoy::comm
