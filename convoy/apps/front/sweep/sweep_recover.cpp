// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep recover`: copies the undamaged rows of a store into a new one.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/sweep/sweep_command.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/jobs/recover_store.h"

namespace convoy::apps {
namespace {

struct SweepRecoverFlags {
  std::string store;
  std::string results_dir = "results";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store,
          "file, PostgreSQL URL or \"host=... dbname=...\"; default sweep.db in --results-dir");
    visit("results_dir", results_dir, "folder of the store");
  }
};

std::string kept_words(const jobs::Recovery& recovery) {
  std::string words = fmt::format("kept: {} of {}", counted(recovery.results, "result"),
                                  counted(recovery.tasks, "cell"));
  if (recovery.reopened > 0)
    words += fmt::format("; {} lost what was known of {} and {} open again",
                         counted(recovery.reopened, "cell"), recovery.reopened == 1 ? "it" : "them",
                         recovery.reopened == 1 ? "is" : "are");
  if (recovery.renamed_groups > 0)
    words += "; a sweep whose name was damaged is now recovered-NUMBER";
  return words + ". The same sweep command computes what is missing";
}

int recover(const Context& context, const SweepRecoverFlags& flags, const Words& rest) {
  if (rest.size() > 1)
    throw ConfigError(fmt::format("wanted one store at most, found {}", rest.size()),
                      {.hint = "convoy sweep recover --store STORE"});
  const std::string named = rest.empty() ? flags.store : rest.front();
  const std::string store =
      named.empty() ? (std::filesystem::path(flags.results_dir) / "sweep.db").string() : named;
  const jobs::Recovery recovery = jobs::recover_store(store);
  if (context.common.json) {
    const nlohmann::ordered_json object = {
        {"was_sound", recovery.was_sound},       {"cells", recovery.tasks},
        {"results", recovery.results},           {"reopened", recovery.reopened},
        {"dropped_rows", recovery.dropped_rows}, {"renamed", recovery.renamed_groups},
        {"kept_aside", recovery.kept_aside}};
    fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  if (recovery.was_sound) {
    context.log().info("the store is sound; nothing was changed");
    return 0;
  }
  if (!recovery.kept_aside.empty())
    context.log().info(fmt::format("the damaged store is kept as {}", recovery.kept_aside));
  context.log().info(kept_words(recovery));
  return 0;
}

}  // namespace

Command sweep_recover_action() {
  return {.name = "recover",
          .summary = "Copy the undamaged rows of a store into a new one",
          .usage = "convoy sweep recover [STORE] [flags]",
          .examples = "convoy sweep recover results/sweep.db",
          .flags = {flags_of<SweepRecoverFlags>()},
          .run = with_flags_of<SweepRecoverFlags, recover>};
}

}  // namespace convoy::apps
