// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>

#include <filesystem>

#include "convoy/apps/front/generate/engine_pool.h"
#include "convoy/apps/front/runs/runs_actions.h"
#include "convoy/apps/page/page_server.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/core/config/flags.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

page::ChatOptions chat_options(const Context& context, const RunsServeFlags& flags,
                               const processes::SignalStream& signals) {
  if (!flags.chat) return {};
  const auto pool = [&context, &flags, &signals](const std::vector<std::string>& words) {
    processes::PoolOptions one = engine_pool(
        context, {.devices = flags.devices, .engines = 1, .threads = flags.threads}, words);
    one.signals = signals.mask_for_ranks();
    return one;
  };
  pool({});  // reports a missing convoy-worker now, not at the first question
  return {.pool = pool, .idle_time = milliseconds_of(flags.chat_idle)};
}

}  // namespace

int serve_runs(const Context& context, const RunsServeFlags& flags,
               const std::vector<std::string>& words) {
  if (!words.empty())
    throw ConfigError(
        fmt::format("runs serve shows all runs of a folder, found `{}`", words.front()),
        {.hint = fmt::format("--dir {} names another folder", words.front())});
  if (!flags.chat)
    config::refuse_without_effect(flags, {"chat_idle", "devices", "threads"}, "without --chat");
  // Blocks the signals before any thread starts, so that no thread takes their default action.
  processes::SignalStream signals(processes::default_stop_signals());
  page::PageServer server({.runs = std::filesystem::absolute(flags.dir).lexically_normal(),
                           .host = flags.host,
                           .port = static_cast<int>(flags.port),
                           .token = flags.token ? page::new_token() : "",
                           .chat = chat_options(context, flags, signals),
                           .log = context.log()});
  if (!std::filesystem::is_directory(flags.dir))
    context.log().warning(fmt::format("there is no folder {} yet", flags.dir));
  const char* const allowed = flags.chat ? "read the runs and ask their models" : "read the runs";
  if (!flags.token)
    context.log().warning(
        fmt::format("without a token, anybody who reaches {} port {} can {}, including "
                    "other users of this host",
                    flags.host, server.port(), allowed));
  else if (!is_loopback_host(flags.host))
    context.log().warning(
        fmt::format("anybody who reaches {} and has the token can {}; from another machine, "
                    "`ssh -L {}:127.0.0.1:{}` is safer",
                    flags.host, allowed, server.port(), server.port()));
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  pollfd readable{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
  while (!signals.asked_to_stop()) ::poll(&readable, 1, -1);
  return 0;
}

}  // namespace convoy::apps
