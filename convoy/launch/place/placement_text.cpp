// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "convoy/core/base/text_table.h"
#include "convoy/launch/place/placement.h"

namespace convoy::launch {

std::string placement_table(const std::vector<RankPlacement>& ranks) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "local", "host", "device", "cores", "bound", "numa", "threads", "uuid"}};
  for (const RankPlacement& each : ranks)
    rows.push_back({std::to_string(each.rank), std::to_string(each.local_rank), each.host,
                    each.device, cpu_list_text(each.cpus), each.bind ? "yes" : "no",
                    each.numa_node < 0 ? "" : std::to_string(each.numa_node),
                    each.threads == 0 ? "" : std::to_string(each.threads), each.device_uuid});
  return text_table(rows);
}

std::string placement_json(const std::vector<RankPlacement>& ranks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const RankPlacement& each : ranks)
    rows.push_back({{"rank", each.rank},
                    {"local_rank", each.local_rank},
                    {"host", each.host},
                    {"device", each.device},
                    {"device_uuid", each.device_uuid},
                    {"visible_device", each.visible_device},
                    {"cpus", cpu_list_text(each.cpus)},
                    {"bound", each.bind},
                    {"numa_node", each.numa_node},
                    {"threads", each.threads}});
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace convoy::launch
