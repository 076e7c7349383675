// SPDX-License-Identifier: Apache-2.0
//
// `convoy serve`: this process listens, convoy-workers compute.
#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/generate/engine_pool.h"
#include "convoy/apps/serving/engine_group.h"
#include "convoy/apps/serving/front_desk.h"
#include "convoy/apps/serving/served_names.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/core/http/host_header.h"
#include "convoy/core/http/http_server.h"
#include "convoy/core/settings/worker_calls.h"
#include "convoy/launch/supervisor/launch_flags.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTurn(100);
// Time that engines may take to end after their last answer.
constexpr std::chrono::seconds kEndTime(5);

std::vector<std::string> keys_for(const settings::ServerFlags& flags) {
  if (!flags.api_key_file.empty()) return serving::read_api_keys(flags.api_key_file);
  if (!is_loopback_host(flags.host))
    throw ConfigError(
        fmt::format("--host {} is reachable from other machines", flags.host),
        {.key = "--api-key-file", .hint = "give it a file with a key, or leave --host out"});
  return {};
}

// Waits until all engines are ready. Returns false when a stop was requested before that.
bool load(serving::EngineGroup& engines, processes::SignalStream& signals) {
  while (!engines.all_ready()) {
    engines.turn(kTurn, signals.descriptor());
    if (signals.asked_to_stop()) return false;
  }
  // Prints what the engines said before they were ready, which lies in their pipes, before the
  // address.
  engines.turn(std::chrono::milliseconds(0), signals.descriptor());
  return true;
}

void end(serving::EngineGroup& engines, processes::SignalStream& signals, double shutdown_seconds) {
  engines.stop();
  const auto limit = std::chrono::duration<double>(shutdown_seconds) + kEndTime;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  while (!engines.all_ended() && Clock::now() < deadline) {
    engines.turn(kTurn, signals.descriptor());
    while (const std::optional<int> signal = signals.next())
      if (processes::contains(processes::default_stop_signals(), *signal))
        return engines.fail_all(serving::ApiError(503, "the server was stopped twice"));
  }
}

int run_serve(Context& context, const Words& arguments) {
  settings::ServerFlags flags;
  launch::DeviceFlags devices;
  settings::ServeCall call;
  std::vector<config::Section> of_worker = call.lists();
  of_worker.push_back(config::list_fields(context.common));
  const Words words = config::take_flags({config::list_fields(flags), config::list_fields(devices)},
                                         of_worker, arguments)
                          .left;
  const std::vector<std::string> keys = keys_for(flags);
  const std::vector<std::string> names = serving::served_names(call.model, call.flags);
  processes::SignalStream signals(processes::default_stop_signals());
  processes::PoolOptions pool = engine_pool(
      context, {.devices = devices.devices, .engines = flags.engines, .threads = devices.threads},
      words);
  pool.signals = signals.mask_for_ranks();
  const int64_t count = pool.workers;
  serving::EngineGroup engines(std::move(pool), context.log(),
                               std::chrono::seconds(flags.engine_timeout));
  if (!load(engines, signals)) return 0;
  serving::FrontDesk desk(names, keys, engines);
  http::Server server(
      flags.host, static_cast<int>(flags.port), {},
      [&desk](std::unique_ptr<http::Exchange> exchange) { desk.take(std::move(exchange)); },
      serving::error_answer);
  context.log().info(fmt::format("listening on http://{}:{}/v1{}", http::in_brackets(flags.host),
                                 server.port(),
                                 count > 1 ? " with " + counted(count, "engine") : ""));
  while (!signals.asked_to_stop()) engines.turn(kTurn, signals.descriptor());
  desk.close();
  end(engines, signals, call.flags.shutdown_time);
  return 0;
}

}  // namespace

Command serve_command() {
  return {.name = "serve",
          .summary = "Serve a model by OpenAI's HTTP API",
          .usage = "convoy serve --model D [--adapter NAME=DIR ...] [--host H] [--port P]",
          .examples =
              "convoy serve --model models/tally-3m\n"
              "convoy serve --model models/tally-3m --adapter sums=runs/sums/adapter --port 0\n"
              "convoy serve --model models/tally-3m --host 0.0.0.0 --api-key-file keys.txt",
          .flags = {flags_of<settings::ServerFlags>("Server"),
                    flags_of<settings::ServeFlags>("Answers"),
                    flags_of<settings::ServedModelFlags>("Model"),
                    flags_of<settings::EngineFlags>("Engine"),
                    flags_of<launch::DeviceFlags>("Devices")},
          .first_flags = {"model", "adapter", "host", "port", "api-key-file", "served-name",
                          "engines", "max-waiting", "batch-size", "dtype", "weights", "devices"},
          .run = run_serve,
          .group = HelpGroup::TrainAndUse};
}

}  // namespace convoy::apps
