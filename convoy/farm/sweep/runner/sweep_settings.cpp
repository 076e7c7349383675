// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/sweep_settings.h"

namespace convoy::sweep {

std::map<std::string, std::set<nlohmann::json>> settings_of(jobs::JobStore& store,
                                                            const StoredSweep& sweep) {
  std::map<std::string, std::set<nlohmann::json>> settings;
  PlannedCellReader reader;
  SharedText last;
  for (const jobs::Group& group : sweep.groups)
    store.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
      const PlannedCell& planned = reader.read(task.parameters);
      if (planned.guesses > 0) settings["guesses"].insert(planned.guesses);
      if (planned.stop.accepted > 0) settings["target_accepted"].insert(planned.stop.accepted);
      if (planned.stop.standard_error > 0)
        settings["target_standard_error"].insert(planned.stop.standard_error);
      if (last.shares(planned.cell.parameters)) return;
      last = planned.cell.parameters;
      const auto parameters = nlohmann::json::parse(last.str(), nullptr, false);
      if (!parameters.is_object()) return;
      for (const auto& [name, value] : parameters.items())
        if (name != "values" && name != "command") settings[name].insert(value);
    });
  return settings;
}

PlannedCell without_place(const PlannedCell& planned, const Workload& workload) {
  auto parameters = nlohmann::json::parse(planned.cell.parameters.str());
  parameters.erase("values");
  for (const std::string& name : workload.axes()) parameters.erase(name);
  for (const std::string& name : workload.data_of_seeds()) parameters.erase(name);
  PlannedCell other = planned;
  other.cell.seed = 0;
  other.cell.parameters = parameters.dump();
  return other;
}

}  // namespace convoy::sweep
