// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <exception>

#include "convoy/apps/recipes/training/fine_tune_rank.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/train/comm/rank_environment.h"
#include "convoy/train/parallel/dp/replica_threads.h"

namespace convoy::recipes {
namespace {

// Calls `call`. Reports a failure of this rank to all ranks that wait for it.
template <class Call>
auto or_tell(comm::StoreBarrier& store_barrier, Call call) {
  try {
    return call();
  } catch (const CommError&) {
    throw;  // a consequence: the rank that failed first reports it
  } catch (const std::exception& error) {
    store_barrier.tell_failure(error.what());
    throw;
  }
}

ExitCode run_rank(const FineTuneRequest& request, const settings::TrainSettings& settings,
                  const std::shared_ptr<comm::StoreBarrier>& store_barrier,
                  const std::atomic<bool>& stop_requested, const Log& log) {
  return or_tell(*store_barrier, [&] {
    const auto train =
        settings.task_facts().data == settings::TaskData::Windows ? classify_rank : fine_tune_rank;
    return train(request, settings, store_barrier, stop_requested, log);
  });
}

// Strategy `dp`: all ranks are threads of this process.
ExitCode run_in_threads(const FineTuneRequest& request, const settings::TrainSettings& settings,
                        comm::StoreBarrier& process, const std::atomic<bool>& stop_requested,
                        const Log& log) {
  if (process.size() > 1)
    throw ConfigError(
        fmt::format("parallel.strategy is dp, which is one process, but {} ranks were started",
                    process.size()),
        {.key = "parallel.strategy",
         .hint =
             "--ranks 1, and parallel.replicas=N for replicas on CPUs; or parallel.strategy=ddp"});
  const auto asked = static_cast<int>(settings.parallel.replicas);
  const int count = asked > 0 ? asked : device::count_devices(request.devices);
  std::atomic<ExitCode> end = ExitCode::Done;
  parallel::run_replicas(process.environment(), count, process.flight(),
                         [&](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
                           const ExitCode own =
                               run_rank(request, settings, store_barrier, stop_requested, log);
                           if (store_barrier->rank() == 0) end = own;
                         });
  return end;
}

}  // namespace

ExitCode fine_tune(const FineTuneRequest& request, const std::atomic<bool>& stop_requested,
                   const Log& log) {
  // Nodes may start this long after each other: images are fetched, programs loaded.
  constexpr std::chrono::minutes kReachTimeout{30};
  // The flight record is made first, so that it covers everything that follows.
  telemetry::FlightWriter flight = telemetry::FlightWriter::attach();
  flight.set_phase("start");
  const auto store_barrier =
      std::make_shared<comm::StoreBarrier>(comm::read_rank_environment(), kReachTimeout, &flight);
  settings::TrainSettings settings;
  or_tell(*store_barrier, [&] { agree_on_settings(*store_barrier, request.settings, settings); });
  return settings.parallel.strategy == "dp"
             ? run_in_threads(request, settings, *store_barrier, stop_requested, log)
             : run_rank(request, settings, store_barrier, stop_requested, log);
}

}  // namespace convoy::recipes
