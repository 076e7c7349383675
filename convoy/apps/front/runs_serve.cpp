// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "convoy/apps/front/runs_actions.h"
#include "convoy/apps/page/page_server.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {

int serve_runs(const Context& context, const RunsServeFlags& flags,
               const std::vector<std::string>& words) {
  CONVOY_CHECK(words.empty(), ConfigError,
               "runs serve shows all runs of a folder, found `{}`; --dir names another folder",
               words.front());
  // Blocked before any thread starts, so that only sigwait() receives them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  page::PageServer server({.runs = std::filesystem::absolute(flags.dir).lexically_normal(),
                           .host = flags.host,
                           .port = static_cast<int>(flags.port),
                           .token = flags.token ? page::new_token() : ""});
  if (!std::filesystem::is_directory(flags.dir))
    context.log().warning(fmt::format("there is no folder {} yet", flags.dir));
  if (!flags.token)
    context.log().warning(
        fmt::format("without a token, anybody who reaches {} port {} can read the runs, including "
                    "other users of this host",
                    flags.host, server.port()));
  else if (flags.host != "127.0.0.1" && flags.host != "localhost" && flags.host != "::1")
    context.log().warning(fmt::format(
        "anybody who reaches {} and has the token can read the runs; from another machine, "
        "`ssh -L {}:127.0.0.1:{}` is safer",
        flags.host, server.port(), server.port()));
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

}  // namespace convoy::apps
