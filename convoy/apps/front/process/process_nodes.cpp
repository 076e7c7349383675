// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_nodes.h"

#include <fmt/format.h>

#include "convoy/apps/front/process/process_folder_nodes.h"
#include "convoy/apps/front/process/process_store_nodes.h"

namespace convoy::apps {

void ProcessNodes::start_server(const std::filesystem::path& run_folder,
                                const std::string& password) {
  server_.emplace(PrivateStoreOptions{.folder = run_folder / "store",
                                      .host = workers_.master_addr,
                                      .port = workers_.master_port,
                                      .password = password},
                  log_);
  log_.info(fmt::format("the store of the run serves at {}:{}", workers_.master_addr,
                        workers_.master_port));
}

std::unique_ptr<ProcessNodes> process_nodes(const settings::WorkerSettings& workers,
                                            const std::filesystem::path& run_folder,
                                            const std::string& run_name, const Log& log) {
  if (workers.texts_in_store)
    return std::make_unique<StoreNodes>(workers, run_folder, run_name, log);
  return std::make_unique<FolderNodes>(workers, run_folder, log);
}

}  // namespace convoy::apps
