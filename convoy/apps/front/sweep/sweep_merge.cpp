// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep merge`: the sweeps of several stores in one.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "convoy/apps/front/sweep/sweep_command.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/sweep/results/grid_text.h"
#include "convoy/farm/sweep/runner/merge_stores.h"

namespace convoy::apps {
namespace {

struct SweepMergeFlags {
  std::string into;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(
        "into", into,
        "store that gets the results: a file, which is made where there is none, its folder, or a "
        "PostgreSQL URL");
  }
};

int merge(const Context& context, const SweepMergeFlags& flags, const Words& places) {
  if (flags.into.empty() || places.empty())
    throw ConfigError(
        fmt::format("wanted stores to read, and --into STORE; found {} and --into `{}`",
                    counted(static_cast<int64_t>(places.size()), "store"), flags.into),
        {.hint = "convoy sweep merge STORE STORE --into STORE"});
  const std::string target = store_at(flags.into);
  // Opens all stores before the target is created.
  std::vector<std::pair<std::string, std::unique_ptr<jobs::JobStore>>> stores;
  for (const std::string& place : places) {
    const std::string store = store_at(place);
    if (store == target)
      throw ConfigError(fmt::format("{} cannot be merged into itself", target),
                        {.hint = "name a new store with --into"});
    stores.emplace_back(store, jobs::open_store(store, {.access = jobs::Access::ReadOnly}));
  }
  make_folder_of_store(target);
  const auto into = jobs::open_store(target);
  nlohmann::ordered_json merged = {{"stores", nlohmann::ordered_json::array()},
                                   {"joined", nlohmann::ordered_json::array()}};
  std::set<std::string> names;
  for (const auto& [store, from] : stores) {
    const sweep::MergeReport report = sweep::merge_store(*from, *into);
    for (const std::string& name : report.skipped)
      context.log().warning(fmt::format("{}: {} has a damaged row and was left out", store, name));
    context.log().info(fmt::format("{}: {} with {}; {} copied, {} known already", store,
                                   counted(report.sweeps, "sweep"), counted(report.cells, "cell"),
                                   counted(report.results, "result"), report.known));
    names.insert(report.names.begin(), report.names.end());
    merged["stores"].push_back({{"store", store},
                                {"sweeps", report.sweeps},
                                {"cells", report.cells},
                                {"added", report.added},
                                {"results", report.results},
                                {"known", report.known}});
  }
  for (const sweep::JoinedSweep& one :
       sweep::join_sweeps(*into, names, experiments::workload_of_version)) {
    merged["joined"].push_back({{"name", one.name}, {"sweeps", one.sweeps}, {"cells", one.cells}});
    context.log().info(fmt::format("{}: {} of {}, as one; `convoy sweep show {}` shows them",
                                   one.name, counted(one.cells, "cell"),
                                   counted(one.sweeps, "sweep"), sweep::shell_text({target})));
  }
  if (context.common.json) fmt::print("{}\n", merged.dump(2));
  return 0;
}

}  // namespace

Command sweep_merge_action() {
  return {.name = "merge",
          .summary = "Put the sweeps of several stores into one",
          .usage = "convoy sweep merge STORE... --into STORE",
          .examples = "convoy sweep merge a/sweep.db b/sweep.db --into results/sweep.db",
          .flags = {flags_of<SweepMergeFlags>()},
          .run = with_flags_of<SweepMergeFlags, merge>};
}

}  // namespace convoy::apps
