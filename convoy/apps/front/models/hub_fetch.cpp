// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/models/hub_fetch.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/models/hub_transfer.h"
#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/progress.h"

namespace convoy::apps {
namespace {

nlohmann::ordered_json result_json(const FetchRequest& request, const FetchFlags& flags,
                                   const hub::FetchResult& result) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const hub::FetchedFile& one : result.files)
    files.push_back(
        {{"path", one.file.path}, {"bytes", one.file.size_bytes}, {"was_there", one.was_there}});
  return {{"repository", request.repository.id},
          {"revision", flags.revision},
          {"commit", result.commit},
          {"folder", result.folder.string()},
          {"fetched_bytes", flags.dry_run ? 0 : result.fetched_bytes},
          {"to_fetch_bytes", flags.dry_run ? result.fetched_bytes : 0},
          {"files", std::move(files)}};
}

void print_result(const Context& context, const FetchFlags& flags, const FetchRequest& request,
                  const hub::FetchResult& result) {
  if (context.common.json) {
    std::cout << result_json(request, flags, result).dump(1) << "\n";
    return;
  }
  if (flags.dry_run) {
    for (const hub::FetchedFile& one : result.files)
      fmt::print("{:>12}  {}{}\n", one.file.size_bytes, one.file.path,
                 one.was_there ? "  (is there)" : "");
    fmt::print("{} to fetch\n", telemetry::bytes_text(result.fetched_bytes));
    return;
  }
  const Log log = context.log();
  if (result.fetched_bytes == 0)
    log.info(fmt::format("{}: {} there", request.repository.id,
                         result.files.size() == 1
                             ? std::string("the file is")
                             : fmt::format("all {} files are", result.files.size())));
  if (!request.look || request.look(result.folder, log))
    log.info(fmt::format("use it by its id: {}", request.use));
  fmt::print("{}\n", result.folder.string());
}

}  // namespace

int fetch_from_hub(const Context& context, const FetchFlags& flags, const FetchRequest& request) {
  const hub::HubSettings settings = hub::read_hub_settings();
  const hub::FetchPlan plan{
      .repository = request.repository,
      .revision = flags.revision,
      .choice = {.include = flags.include.names, .exclude = flags.exclude.names},
      .is_read = request.is_read,
      .cache =
          flags.cache_dir.empty() ? io::hub_cache_folder() : std::filesystem::path(flags.cache_dir),
      .num_parallel = flags.jobs,
      .verify = flags.verify,
      .dry_run = flags.dry_run};
  hub::FetchResult result;
  const Log log = context.log();
  const bool is_whole =
      run_transfer(context, flags.dry_run ? "ask" : "fetch", !flags.dry_run,
                   [&](const hub::StopTest& stop, hub::TransferProgress& progress) {
                     result = hub::fetch(plan, settings, stop, progress, log);
                   });
  if (!is_whole) {
    log.info("stopped; the same command resumes the download");
    return static_cast<int>(ExitCode::Stopped);
  }
  print_result(context, flags, request, result);
  return 0;
}

}  // namespace convoy::apps
