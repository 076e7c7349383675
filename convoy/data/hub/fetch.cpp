// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/fetch.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/file_failure.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/hub/cache_entry.h"
#include "convoy/data/hub/transfer_threads.h"

namespace convoy::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSpareBytes = int64_t{64} << 20;  // space to leave free on the disk

int64_t file_size_or_zero(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

class Fetch {
 public:
  Fetch(const FetchPlan& plan, const HubSettings& settings, const StopTest& stop,
        TransferProgress& progress, const Log& log)
      : plan_(plan),
        settings_(settings),
        stop_(stop),
        progress_(progress),
        log_(log),
        entry_(plan.cache, plan.repository) {}

  FetchResult run() {
    log_.info(fmt::format("asking {} for {}", settings_.endpoint, plan_.repository.id));
    const RepositoryState state = make_client()->find_revision(plan_.revision);
    result_.commit = state.commit;
    result_.folder = entry_.snapshot(state.commit);
    choose_files(state);
    log_.info(fmt::format("{} at {:.12}: {}", plan_.repository.id, state.commit,
                          counted(std::ssize(result_.files), "file")));
    in_parallel([&](HubClient& own, FetchedFile& file) { find_out(own, file); });
    count_bytes();
    if (plan_.dry_run) return std::move(result_);
    const bool has_all = std::all_of(result_.files.begin(), result_.files.end(),
                                     [](const FetchedFile& one) { return one.file.etag.empty(); });
    if (!has_all) {  // else nothing is written: another user may own the cache
      require_space();
      entry_.make_folders(state.commit);
      in_parallel([&](HubClient& own, FetchedFile& file) { fetch_file(own, file); });
    }
    entry_.write_ref(plan_.revision, state.commit);
    return std::move(result_);
  }

 private:
  std::shared_ptr<HubClient> make_client() {
    return std::make_shared<HubClient>(
        curl_, settings_, plan_.repository, [this] { return must_stop(); }, log_);
  }
  bool must_stop() const { return has_failed_ || stop_(); }

  void choose_files(const RepositoryState& state) {
    const std::vector<std::string> chosen = chosen_files(state.files, plan_.choice, plan_.is_read);
    if (chosen.empty())
      throw DataError(
          fmt::format("none of {} of {} is selected", counted(std::ssize(state.files), "file"),
                      plan_.repository.id),
          {.hint = "name files with --include; `--include '*' --dry-run` lists all of them"});
    for (const std::string& path : chosen) result_.files.push_back({.file = {.path = path}});
    progress_.total_files = static_cast<int64_t>(chosen.size());
  }

  // Calls `work` for every file, on several threads with a client each.
  void in_parallel(const std::function<void(HubClient&, FetchedFile&)>& work) {
    run_on_threads(result_.files.size(), plan_.num_parallel, has_failed_, [&]() -> FileWork {
      return [&, client = make_client()](size_t index) { work(*client, result_.files[index]); };
    });
  }

  void find_out(HubClient& client, FetchedFile& fetched) {
    const std::string path = fetched.file.path;
    if (!plan_.verify && entry_.has_file(result_.commit, path)) {
      fetched.was_there = true;
      fetched.file.size_bytes = file_size_or_zero(result_.folder / path);
      return;
    }
    fetched.file = client.find_file(result_.commit, path);
    if (plan_.verify && !plan_.dry_run) forget_if_spoilt(fetched.file);
    fetched.was_there =
        file_size_or_zero(entry_.blob(fetched.file.etag)) == fetched.file.size_bytes &&
        fs::exists(entry_.blob(fetched.file.etag));
  }

  void forget_if_spoilt(const RemoteFile& file) {
    std::error_code error;
    const fs::path blob = fs::canonical(result_.folder / file.path, error);
    if (error) return;
    BlobHash hash(file.etag, file.size_bytes);
    const MappedFile bytes(blob);
    hash.update({reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()});
    if (hash.matches() && static_cast<int64_t>(bytes.bytes().size()) == file.size_bytes) return;
    log_.warning(fmt::format("{} differs from the hub's file: it is fetched again",
                             (result_.folder / file.path).string()));
    entry_.forget_file(result_.commit, file.path);
  }

  void count_bytes() {
    std::set<std::string> counted;
    for (const FetchedFile& fetched : result_.files) {
      if (fetched.was_there || !counted.insert(fetched.file.etag).second) continue;
      const int64_t there = file_size_or_zero(entry_.part(fetched.file.etag));
      const int64_t part = there <= fetched.file.size_bytes ? there : 0;  // a longer one is damaged
      progress_.start_bytes += part;
      progress_.done_bytes += part;
      progress_.total_bytes += fetched.file.size_bytes;
    }
    result_.fetched_bytes = progress_.total_bytes - progress_.start_bytes;
  }

  void require_space() const {
    fs::path folder = fs::absolute(plan_.cache);
    std::error_code error;
    while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
    const fs::space_info space = fs::space(folder, error);
    if (error) return;  // the first write reports it
    const int64_t wanted = progress_.total_bytes - progress_.done_bytes + kSpareBytes;
    if (result_.fetched_bytes == 0 || static_cast<int64_t>(space.available) >= wanted) return;
    throw IoError(fmt::format("{} has {} free, and {} are to be fetched", folder.string(),
                              telemetry::bytes_text(static_cast<int64_t>(space.available)),
                              telemetry::bytes_text(result_.fetched_bytes)),
                  {.file = folder.string(),
                   .hint = "free space, set HF_HUB_CACHE to another disk, or leave files out with "
                           "--exclude"});
  }

  void fetch_file(HubClient& client, FetchedFile& fetched) {
    if (must_stop()) throw StopRequest("stopped on request");
    const RemoteFile& file = fetched.file;
    if (!file.etag.empty()) {  // an empty etag: the snapshot has the file
      if (!fetched.was_there) fetch_blob(client, file);
      entry_.link_file(result_.commit, file);
    }
    ++progress_.done_files;
  }

  void fetch_blob(HubClient& client, const RemoteFile& file) {
    const fs::path blob = entry_.blob(file.etag);
    bool has_told = false;
    const FileLock lock(entry_.lock(file.etag), [&] {
      if (must_stop()) throw StopRequest("stopped on request");
      if (!std::exchange(has_told, true))
        log_.info(fmt::format("{}: another program is fetching it; waiting for that", file.path));
    });
    std::error_code ignored;
    if (fs::exists(blob, ignored)) return;
    BlobPart part(entry_.part(file.etag), file);
    const bool is_resumed = part.size_bytes() > 0;
    fill(client, file, part);
    if (!part.finish()) {
      // If the download was resumed, the earlier partial file may be damaged, so it starts again.
      // Otherwise the hub sent wrong bytes.
      if (is_resumed) {
        log_.detail(fmt::format("{}: the partial download is damaged; starting again", file.path));
        restart(part);
        fill(client, file, part);
      }
      if (!is_resumed || !part.finish()) {
        fs::remove(entry_.part(file.etag), ignored);
        throw DataError(fmt::format("{}: the downloaded bytes do not match the hub's hash {}",
                                    file.path, file.etag),
                        {.file = blob.string(),
                         .hint = "fetch again; if it stays, a proxy or mirror changes it"});
      }
    }
    fs::rename(entry_.part(file.etag), blob, ignored);
    if (ignored) io::throw_file_failure("rename", entry_.part(file.etag), ignored.value());
    sync_folder(blob.parent_path());
  }

  void restart(BlobPart& part) {
    progress_.done_bytes -= part.size_bytes();
    part.restart();
  }

  void fill(HubClient& client, const RemoteFile& file, BlobPart& part) {
    if (part.size_bytes() == file.size_bytes) return;
    client.with_retries(
        [&] {
          client.read_file(result_.commit, file, part.size_bytes(),
                           [&](int64_t begin, std::string_view bytes) {
                             const int64_t before = part.size_bytes();
                             part.write(begin, bytes);
                             progress_.done_bytes += part.size_bytes() - before;
                           });
        },
        [&] { return part.size_bytes(); });
  }

  const FetchPlan& plan_;
  const HubSettings& settings_;
  const StopTest& stop_;
  TransferProgress& progress_;
  const Log& log_;
  CacheEntry entry_;
  http::CurlLibrary curl_;
  std::atomic<bool> has_failed_ = false;  // set by a thread that failed; the other threads then end
  FetchResult result_;
};

}  // namespace

FetchResult fetch(const FetchPlan& plan, const HubSettings& settings, const StopTest& stop,
                  TransferProgress& progress, const Log& log) {
  const std::string& id = plan.repository.id;
  if (!io::looks_like_hub_id(id))
    throw ConfigError(fmt::format("`{}` is no id of the hub", id),
                      {.hint = "wanted ORG/NAME, such as Qwen/Qwen2.5-0.5B-Instruct"});
  if (!io::looks_like_hub_revision(plan.revision))
    throw ConfigError(fmt::format("`{}` is no revision", plan.revision),
                      {.key = "--revision", .hint = "wanted a branch, a tag or a commit"});
  if (settings.is_offline)
    throw ConfigError("HF_HUB_OFFLINE forbids access to the hub",
                      {.hint = "unset it to fetch; the hub cache and folders are used without"});
  return Fetch(plan, settings, stop, progress, log).run();
}

}  // namespace convoy::hub
