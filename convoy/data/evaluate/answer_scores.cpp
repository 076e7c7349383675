// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/answer_scores.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "convoy/core/base/usable_cpus.h"

namespace convoy::evaluate {
namespace {

constexpr size_t kRowsAtATime = 16;

}  // namespace

AnswerScores score_answers(const TextMetrics& metrics, const std::vector<ScoredAnswer>& samples) {
  AnswerScores scored{
      .metrics = metrics.names(), .rows = std::vector<RowScores>(samples.size()), .figures = {}};
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t row; (row = next.fetch_add(kRowsAtATime)) < samples.size();)
        for (const size_t end = std::min(row + kRowsAtATime, samples.size()); row < end; ++row)
          scored.rows[row] = metrics.score(samples[row]);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t useful = samples.size() / kRowsAtATime;
    for (size_t thread = 1; thread < std::min<size_t>(usable_cpus(), useful); ++thread)
      threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  MetricMeans means(metrics);
  for (const RowScores& row : scored.rows) means.add(row);
  scored.figures = means.json();
  return scored;
}

}  // namespace convoy::evaluate
