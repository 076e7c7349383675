// SPDX-License-Identifier: Apache-2.0
//
// `convoy models fetch` and `convoy data fetch`: one download, with progress.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/data/hub/fetch.h"

namespace convoy::apps {

struct FetchFlags {
  std::string revision = "main";
  config::NameList include;
  config::NameList exclude;
  std::string cache_dir;
  int64_t jobs = 4;
  bool verify = false;
  bool dry_run = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("revision", revision, "branch, tag or commit");
    visit("include", include,
          "only files that match, such as '*.json' or 'data/'; may be given more than once; "
          "default: the files that Convoy reads");
    visit("exclude", exclude, "exclude files that match; may be given more than once");
    visit("cache_dir", cache_dir, "hub cache; empty = HF_HUB_CACHE, or the usual place");
    visit("jobs", jobs, "files fetched at once").at_least(1).at_most(32);
    visit("verify", verify, "hash existing files, and fetch damaged ones again");
    visit("dry_run", dry_run, "print the files that would be fetched and their size, and stop");
  }
};

struct FetchRequest {
  hub::RepositoryName repository;
  std::function<bool(const std::string& path)> is_read = {};  // files to fetch without --include
  std::string use;  // a command that uses the download, shown at the end
  // Checks whether the download is usable, and logs problems. May be empty.
  std::function<bool(const std::filesystem::path& folder, const Log& log)> look = {};
};

// Returns the exit code: 0, or 75 when a signal ended the download; finished parts are kept. Throws
// as hub::fetch().
int fetch_from_hub(const Context& context, const FetchFlags& flags, const FetchRequest& request);

}  // namespace convoy::apps
