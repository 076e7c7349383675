// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/watched_store.h"

#include <sys/stat.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/runner/read_sweep.h"

namespace convoy::page {
namespace {

using Clock = std::chrono::steady_clock;

// At most 1/kReadStoreEvery of the time is spent on reading a store that changes constantly.
constexpr int kReadStoreEvery = 20;

// Readers of SQLite create an empty log and remove it again: that is no change.
std::pair<int64_t, int64_t> stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_size == 0) return {0, 0};
  return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// The page does not wait for a writer: a busy store is read later.
std::unique_ptr<jobs::JobStore> opened(const std::filesystem::path& file) {
  return jobs::open_store(file.string(), {.access = jobs::Access::ReadOnly,
                                          .busy_limit = std::chrono::milliseconds(500)});
}

bool has_twin(const std::vector<sweep::SweepName>& all, const sweep::SweepName& name) {
  return std::count_if(all.begin(), all.end(),
                       [&](const sweep::SweepName& other) { return other.name == name.name; }) > 1;
}

}  // namespace

WatchedStore::Stamp WatchedStore::stamp() const {
  return {stamp_of(file_.string()), stamp_of(file_.string() + "-wal")};
}

void WatchedStore::read_on() {
  const Stamp now = stamp();
  const bool may_end = std::any_of(sweeps_.begin(), sweeps_.end(),
                                   [](const WatchedSweep& each) { return each.at_work; });
  if ((now == stamp_ && !may_end) || Clock::now() < next_read_) return;
  const Clock::time_point begin = Clock::now();
  try {
    sweeps_ = read();
  } catch (const Error& error) {
    sweeps_ = {{.name = prefix_ + file_.filename().string(),
                .stored = {},
                .counts = {},
                .updated_seconds = static_cast<double>(now.first.second) * 1e-9,
                .problem = error.sentence()}};
  }
  stamp_ = now;
  next_read_ = Clock::now() + kReadStoreEvery * (Clock::now() - begin);
}

std::vector<WatchedSweep> WatchedStore::read() const {
  const auto store = opened(file_);
  const Stamp now = stamp();
  const double changed = static_cast<double>(std::max(now.first.second, now.second.second)) * 1e-9;
  const std::vector<sweep::SweepName> names = sweep::stored_sweeps(*store);
  std::vector<WatchedSweep> found;
  for (const sweep::SweepName& name : names) {
    WatchedSweep one{.name = prefix_ + name.name,
                     .stored = name,
                     .counts = {},
                     .updated_seconds = static_cast<double>(name.last_run_ms) * 1e-3,
                     .problem = name.problem};
    if (has_twin(names, name)) one.name += "@" + name.version;
    const sweep::StoredSweep parts = sweep::stored_sweep(*store, name);
    for (const jobs::Group& group : parts.groups) {
      const jobs::Counts counts = store->counts(group.number);
      one.counts.open += counts.open;
      one.counts.done += counts.done;
      one.counts.failed += counts.failed;
    }
    one.at_work = one.counts.open > 0 && sweep::has_live_worker(*store, parts);
    if (one.at_work || names.size() == 1) one.updated_seconds = changed;
    found.push_back(std::move(one));
  }
  return found;
}

sweep::SweepResults WatchedStore::results(const WatchedSweep& sweep) const {
  return sweep::read_sweep(*opened(file_), sweep.stored, experiments::workload_of_version);
}

}  // namespace convoy::page
