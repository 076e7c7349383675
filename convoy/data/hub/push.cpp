// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/push.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/utf8.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/hub/hub_client.h"
#include "convoy/data/hub/transfer_threads.h"

namespace convoy::hub {
namespace {

// A large object of the push. Files of equal content are one object.
struct Object {
  LargeObject what;
  const PushFile* file = nullptr;
  ObjectUpload how = {};
};

class Push {
 public:
  Push(const PushPlan& plan, const HubSettings& settings, const StopTest& stop,
       TransferProgress& progress, const Log& log)
      : plan_(plan),
        settings_(settings),
        stop_(stop),
        progress_(progress),
        log_(log),
        client_(
            curl_, settings, plan.target, [this] { return must_stop(); }, log) {}

  PushResult run() {
    require_utf8();
    log_.info(fmt::format("asking {} for {}", settings_.endpoint, plan_.target.id));
    result_.is_new = client_.create_repository(plan_.is_private);
    if (plan_.is_private && !result_.is_new)
      log_.info(fmt::format("{} is there already: its visibility stays", plan_.target.id));
    if (plan_.target.revision != "main") client_.create_branch();
    for (const PushFile& file : plan_.files)
      if (file.path == "README.md") client_.check_card(text_of(file));
    choose();
    send_objects();
    commit();
    return std::move(result_);
  }

 private:
  // The hub reads these as JSON.
  void require_utf8() const {
    for (const PushFile& file : plan_.files)
      if (file.path == "README.md" || file.path == ".gitignore")
        if (const auto at = find_invalid_utf8(text_of(file)))
          throw DataError(fmt::format("{}: wanted UTF-8, found another byte at {}", file.path, *at),
                          {.file = file.path, .hint = "save the file as UTF-8"});
  }

  bool must_stop() const { return has_failed_ || stop_(); }

  static std::string text_of(const PushFile& file) {
    return PushBytes(file).read(0, file.size_bytes);
  }

  // Asks the hub how it wants the files, and hashes them.
  void choose() {
    std::vector<const PushFile*> files;
    std::string git_ignore;
    int64_t bytes = 0;
    for (const PushFile& file : plan_.files) {
      files.push_back(&file);
      bytes += file.size_bytes;
      if (file.path == ".gitignore") git_ignore = text_of(file);
    }
    modes_ = client_.find_modes(files, git_ignore);
    log_.info(fmt::format("hashing {} ({})", counted(std::ssize(files), "file"),
                          telemetry::bytes_text(bytes)));
    ids_.resize(files.size());
    result_.how.resize(files.size());
    TransferAmount& progress = progress_.hashing;
    progress.total_files = std::ssize(files);
    progress.total_bytes = bytes;
    const HashedBytes hashed = [&](int64_t more) {
      progress.done_bytes += more;
      if (must_stop()) throw StopRequest("stopped on request");
    };
    in_parallel(files.size(), [&](size_t index) {
      const PushFile& file = plan_.files[index];
      ids_[index] = modes_[index].is_large ? sha256_of(file, hashed) : git_id_of(file, hashed);
      ++progress.done_files;
    });
    for (size_t index = 0; index < files.size(); ++index) result_.how[index] = fate(index);
  }

  PushedAs fate(size_t index) const {
    const UploadMode& mode = modes_[index];
    if (mode.is_ignored) return PushedAs::Ignored;
    if (mode.remote_id == ids_[index]) return PushedAs::Unchanged;
    return mode.is_large ? PushedAs::Large : PushedAs::Small;
  }

  void send_objects() {
    std::vector<Object> objects = objects_to_send();
    for (const Object& object : objects) progress_.total_bytes += object.what.size_bytes;
    progress_.total_files = std::ssize(objects);
    in_parallel(objects.size(), [&](size_t index) {
      Object& object = objects[index];
      PushClient client(
          curl_, settings_, plan_.target, [this] { return must_stop(); }, log_);
      client.upload(*object.file, object.what, std::move(object.how),
                    [&](int64_t bytes) { progress_.done_bytes += bytes; });
      ++progress_.done_files;
    });
    result_.sent_bytes = progress_.total_bytes;
  }

  std::vector<Object> objects_to_send() {
    std::map<std::string, const PushFile*> by_hash;
    for (size_t index = 0; index < plan_.files.size(); ++index)
      if (result_.how[index] == PushedAs::Large) by_hash[ids_[index]] = &plan_.files[index];
    if (by_hash.empty()) return {};
    std::vector<LargeObject> asked;
    for (const auto& [hash, file] : by_hash) asked.push_back({hash, file->size_bytes});
    std::vector<ObjectUpload> uploads = client_.find_uploads(asked);
    std::vector<Object> objects;
    for (size_t index = 0; index < asked.size(); ++index)
      if (!uploads[index].upload.url.empty())
        objects.push_back(
            {asked[index], by_hash.at(asked[index].sha256), std::move(uploads[index])});
    if (objects.size() < asked.size())
      log_.info(fmt::format("{} of {} in the hub's store already", asked.size() - objects.size(),
                            counted(std::ssize(asked), "large file")));
    return objects;
  }

  // Calls `work` for every index, on several threads.
  void in_parallel(size_t count, const FileWork& work) {
    run_on_threads(count, plan_.num_parallel, has_failed_, [&]() -> FileWork {
      return [&](size_t index) {
        if (must_stop()) throw StopRequest("stopped on request");
        work(index);
      };
    });
  }

  void commit() {
    CommitBody body(plan_.message, "");
    bool has_changes = false;
    for (size_t index = 0; index < plan_.files.size(); ++index) {
      const PushedAs how = result_.how[index];
      if (how == PushedAs::Small) body.add_file(plan_.files[index]);
      if (how == PushedAs::Large) body.add_large_file(plan_.files[index], ids_[index]);
      has_changes |= how == PushedAs::Small || how == PushedAs::Large;
    }
    if (has_changes) {
      result_.commit = client_.commit(body);
      return;
    }
    HubClient reader(curl_, settings_, {.id = plan_.target.id}, stop_, log_);
    result_.commit.commit = reader.find_revision(plan_.target.revision).commit;
  }

  const PushPlan& plan_;
  const HubSettings& settings_;
  const StopTest& stop_;
  TransferProgress& progress_;
  const Log& log_;
  http::CurlLibrary curl_;
  std::atomic<bool> has_failed_ = false;  // set by a thread that failed; the other threads then end
  PushClient client_;
  std::vector<UploadMode> modes_;  // by file of the plan
  std::vector<std::string> ids_;   // by file of the plan: SHA-256 or git id
  PushResult result_;
};

}  // namespace

std::string_view pushed_word(PushedAs how) {
  switch (how) {
    case PushedAs::Small:
      return "in the commit";
    case PushedAs::Large:
      return "large";
    case PushedAs::Unchanged:
      return "unchanged";
    case PushedAs::Ignored:
      return "ignored by .gitignore";
  }
  return "";
}

void require_push_name(const PushTarget& target) {
  if (!io::looks_like_hub_id(target.id) || target.id.find('/') == std::string::npos)
    throw ConfigError(fmt::format("`{}` is no name for a repository of the hub", target.id),
                      {.hint = "wanted USER/NAME: letters, digits, '-', '_', '.'"});
  if (!io::looks_like_hub_revision(target.revision))
    throw ConfigError(fmt::format("`{}` is no branch", target.revision),
                      {.key = "--revision", .hint = "wanted the name of a branch"});
}

PushResult push(const PushPlan& plan, const HubSettings& settings, const StopTest& stop,
                TransferProgress& progress, const Log& log) {
  require_push_name(plan.target);
  if (find_invalid_utf8(plan.message))
    throw ConfigError("the message of the commit is not UTF-8",
                      {.key = "--message", .hint = "write it in UTF-8"});
  if (settings.is_offline)
    throw ConfigError("HF_HUB_OFFLINE forbids access to the hub", {.hint = "unset it to push"});
  if (settings.token.empty())
    throw ConfigError(
        "the hub takes files only with a token, and none is set",
        {.key = "HF_TOKEN",
         .hint = fmt::format("set HF_TOKEN to a token with write access ({}/settings/tokens), or "
                             "log in once: hf auth login",
                             settings.endpoint)});
  return Push(plan, settings, stop, progress, log).run();
}

}  // namespace convoy::hub
