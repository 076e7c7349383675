// SPDX-License-Identifier: Apache-2.0
//
// Downloads a revision of a hub repository into the local hub cache, where every command finds it
// by its id. Fetches several files at once; a stopped or killed fetch is resumed by the next one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/data/hub/file_choice.h"
#include "convoy/data/hub/hub_client.h"
#include "convoy/data/hub/hub_settings.h"
#include "convoy/data/hub/transfer_progress.h"

namespace convoy::hub {

struct FetchPlan {
  RepositoryName repository;
  std::string revision = "main";
  FileChoice choice = {};
  std::function<bool(const std::string&)> is_read = {};  // files to fetch when `include` is empty
  std::filesystem::path cache;
  int64_t num_parallel = 4;
  bool verify = false;   // also hash files that exist already
  bool dry_run = false;  // ask the hub for everything, write nothing
};

struct FetchedFile {
  RemoteFile file;
  bool was_there = false;
};

struct FetchResult {
  std::string commit;
  std::filesystem::path folder;  // folder of the snapshot
  std::vector<FetchedFile> files;
  int64_t fetched_bytes = 0;
};

// Downloads the files. Blocks until it is done, or until `stop` returns true; then it throws
// StopRequest. Throws ConfigError when the hub may not be contacted, DataError for files that the
// hub does not have or refuses and for content that does not match its hash, NetworkError, and
// IoError (before fetching also for too little space).
FetchResult fetch(const FetchPlan& plan, const HubSettings& settings, const StopTest& stop,
                  TransferProgress& progress, const Log& log);

}  // namespace convoy::hub
