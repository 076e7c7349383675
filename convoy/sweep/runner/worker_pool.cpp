// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/worker_pool.h"

#include <utility>

namespace convoy::sweep {

WorkerPool::WorkerPool(launch::PoolOptions options)
    : ProcessPool(options), work_(static_cast<size_t>(options.workers)) {}

PoolNews WorkerPool::listen(std::chrono::milliseconds limit, int other) {
  launch::ProcessNews heard = wait(limit, other);
  PoolNews news;
  news.lines = std::move(heard.errors);
  for (const launch::ProcessNews::Line& line : heard.output) {
    std::optional<WorkerMessage> message = WorkerMessage::parse(line.text);
    if (!message) continue;
    Work& work = work_[line.worker];
    if (message->kind == WorkerMessage::Kind::Begin) work = {message->leases, true};
    if (message->kind == WorkerMessage::Kind::Idle) work.leases.clear();
    news.messages.push_back({line.worker, std::move(*message)});
  }
  for (launch::ProcessDeath& death : heard.deaths) {
    Work work = std::exchange(work_[death.worker], {});
    news.deaths.push_back({std::move(death), std::move(work.leases), work.begun});
  }
  return news;
}

std::vector<size_t> WorkerPool::silent_at_work(std::chrono::duration<double> limit) const {
  std::vector<size_t> silent = silent_for(limit);
  std::erase_if(silent, [&](size_t worker) { return work_[worker].leases.empty(); });
  return silent;
}

}  // namespace convoy::sweep
