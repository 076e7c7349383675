// SPDX-License-Identifier: Apache-2.0
//
// `convoy store serve`: runs a private PostgreSQL server for jobs of several hosts.
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/launch/private_store.h"
#include "convoy/core/base/error.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

struct ServeFlags {
  std::string data_dir = "convoy-store";
  std::string host = "127.0.0.1";
  int64_t port = 0;
  std::string user = "postgres";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data_dir", data_dir, "folder of the database; kept when the server ends");
    visit("host", host, "address of this machine that other nodes can reach");
    visit("port", port, "0 = the previous port, else a free one").at_least(0).at_most(65535);
    visit("user", user, "system user who runs the server when this command is run as root");
  }
};

int serve(const Context& context, const ServeFlags& flags, const Words& words) {
  if (!words.empty())
    throw ConfigError(fmt::format("store serve takes flags only, found `{}`", words.front()),
                      {.hint = "`convoy store serve --help` lists them"});
  processes::SignalStream signals(processes::default_stop_signals());
  PrivateStore store(
      {.folder = flags.data_dir, .host = flags.host, .port = flags.port, .user = flags.user},
      context.log());
  if (context.common.json)
    std::cout << nlohmann::json{{"url", store.url()}} << std::endl;
  else
    std::cout << store.url() << std::endl;
  context.log().info(
      "the store serves until Ctrl-C; give its URL to --store on every node (it holds a password)");
  for (;;) {
    std::array<pollfd, 2> watched{pollfd{signals.descriptor(), POLLIN, 0},
                                  pollfd{store.exited(), POLLIN, 0}};
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[1].revents != 0)
      throw IoError(fmt::format("the server ended unexpectedly:\n{}", store.log_tail()),
                    {.hint = "start it again: the folder keeps all that was stored"});
    if (signals.asked_to_stop()) return 0;
  }
}

}  // namespace

Command store_command() {
  return {.name = "store",
          .summary = "Serve a PostgreSQL store for jobs of several hosts",
          .usage = "convoy store serve [--data-dir D] [--host ADDRESS] [--port N]",
          .examples =
              "convoy store serve\n"
              "convoy store serve --host 10.0.0.1 --port 5433 --data-dir /scratch/store",
          .actions = {{.name = "serve",
                       .summary = "Start the server and print its URL",
                       .usage = "convoy store serve [flags]",
                       .examples = "convoy store serve\n"
                                   "convoy store serve --host 10.0.0.1 --port 5433 --data-dir "
                                   "/scratch/store",
                       .flags = {flags_of<ServeFlags>()},
                       .run = with_flags_of<ServeFlags, serve>}}};
}

}  // namespace convoy::apps
