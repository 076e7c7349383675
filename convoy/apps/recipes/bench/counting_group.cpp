// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/counting_group.h"

#include "convoy/core/base/error.h"
#include "convoy/machine/counting/recording.h"

namespace convoy::recipes {
namespace {

class CountedWork : public comm::Work {
 public:
  explicit CountedWork(int64_t number) : number_(number) {}
  void wait() override {
    if (number_ == 0) return;
    counting::record({.name = "wait for collective",
                      .kind = counting::WorkKind::CollectiveWait,
                      .collective = number_});
  }

 private:
  int64_t number_;  // 0: the tensors lie on the host, which is not counted
};

}  // namespace

std::unique_ptr<comm::Work> CountingGroup::start(const char* name, const at::Tensor& tensor,
                                                 int rounds) {
  if (tensor.is_cpu()) return std::make_unique<CountedWork>(0);
  const double share = static_cast<double>(size_ - 1) / size_;
  counting::record({.name = name,
                    .kind = counting::WorkKind::Collective,
                    .collective = ++started_,
                    .link_bytes = rounds * share * static_cast<double>(tensor.nbytes())});
  return std::make_unique<CountedWork>(started_);
}

// A ring all-reduce passes the tensor twice: a reduce-scatter of the pieces, then an all-gather.
std::unique_ptr<comm::Work> CountingGroup::start_all_reduce(at::Tensor tensor, comm::Reduction) {
  return start("all_reduce", tensor, 2);
}

std::unique_ptr<comm::Work> CountingGroup::start_reduce_scatter(at::Tensor whole, at::Tensor,
                                                                comm::Reduction) {
  return start("reduce_scatter", whole, 1);
}

std::unique_ptr<comm::Work> CountingGroup::start_all_gather(at::Tensor, at::Tensor whole) {
  return start("all_gather", whole, 1);
}

void CountingGroup::broadcast(at::Tensor tensor, int) { start("broadcast", tensor, 1)->wait(); }

std::vector<std::string> CountingGroup::all_gather_bytes(std::string_view bytes) {
  return std::vector<std::string>(static_cast<size_t>(size_), std::string(bytes));
}

std::unique_ptr<comm::Group> CountingGroup::split(int, std::string_view name) {
  throw StateError(fmt::format("no part `{}` of counted ranks", name));
}

}  // namespace convoy::recipes
