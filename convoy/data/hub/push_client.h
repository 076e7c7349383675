// SPDX-License-Identifier: Apache-2.0
//
// The hub's protocol for uploads, as huggingface_hub speaks it: a repository and a branch are made,
// the hub says which files are large, large files go to its store by git-LFS's batch API
// (github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md) with the hub's transfer "multipart", and
// a commit names them and carries the small ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/hub/commit_body.h"
#include "convoy/data/hub/hub_requests.h"
#include "convoy/data/hub/push_file.h"

namespace convoy::hub {

struct PushTarget {
  std::string id = {};  // "user/name"
  std::string revision = "main";
};

// How the hub wants a file.
struct UploadMode {
  bool is_large = false;       // to the store of large files
  bool is_ignored = false;     // the repository's .gitignore names it
  std::string remote_id = {};  // the SHA-256 or git id of the file there, or empty
};

struct LargeObject {
  std::string sha256 = {};
  int64_t size_bytes = 0;
};

struct WebAction {
  std::string url = {};
  std::map<std::string, std::string> header = {};
};

// How an object goes to the store. Without an upload the store has the object.
struct ObjectUpload {
  WebAction upload = {};  // url is empty: nothing is to be sent
  WebAction verify = {};  // url is empty: nothing is to be asked afterwards
};

struct CommitResult {
  std::string url = {};
  std::string commit = {};
};

// Called by the thread of the requests with bytes that were sent; negative: sent again.
using SentBytes = std::function<void(int64_t bytes)>;

// One thread. Requests are retried when the hub or the network fails for a while. Every function
// throws DataError for what the hub refuses, NetworkError, StopRequest.
class PushClient {
 public:
  PushClient(const http::CurlLibrary& curl, const HubSettings& settings, PushTarget target,
             StopTest stop, Log log);

  // Returns true when the repository is new. One that is there stays as it is.
  bool create_repository(bool is_private);
  // Makes the branch from the main one, unless it is there.
  void create_branch();
  // Refuses a model card whose front matter the hub would refuse in the commit.
  void check_card(const std::string& text);
  // `git_ignore`: the content of the .gitignore among the files, or empty.
  std::vector<UploadMode> find_modes(const std::vector<const PushFile*>& files,
                                     const std::string& git_ignore);
  std::vector<ObjectUpload> find_uploads(const std::vector<LargeObject>& objects);
  // Sends the bytes of `file`, which is `object`, and lets the hub verify them.
  void upload(const PushFile& file, const LargeObject& object, ObjectUpload how,
              const SentBytes& sent);
  // Not repeated when its answer is lost, since it may have been made.
  CommitResult commit(CommitBody& body);

 private:
  std::string api_url(std::string_view action) const;
  // Returns the JSON of an answer of status 2xx.
  nlohmann::json post(const std::string& url, const nlohmann::json& body,
                      const std::string& content_type = "application/json");
  http::Answer post_any(const std::string& url, const nlohmann::json& body,
                        const std::string& content_type = "application/json",
                        Credentials credentials = Credentials::Token);
  http::Answer put(const PushBytes& bytes, const WebAction& to, int64_t begin, int64_t size_bytes,
                   const SentBytes& sent);
  void send_object(const PushFile& file, const LargeObject& object, const ObjectUpload& how,
                   const SentBytes& sent);
  void send_parts(const PushFile& file, const LargeObject& object, const WebAction& upload,
                  int64_t part_bytes, const SentBytes& sent);
  [[noreturn]] void refuse(const http::Answer& answer, const std::string& url) const;
  // The hub's addresses name its own host also where HF_ENDPOINT is another one.
  std::string own_address(const std::string& url) const;

  HubRequests requests_;
  const HubSettings& settings_;
  PushTarget target_;
};

}  // namespace convoy::hub
