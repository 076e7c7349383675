// SPDX-License-Identifier: Apache-2.0
//
// The hub's protocol: files of a revision, facts about a file, its bytes. The token is sent only to
// the hub's own host, never to a host that it redirects to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/data/hub/hub_requests.h"
#include "convoy/data/hub/hub_settings.h"

namespace convoy::hub {

struct RepositoryName {
  std::string id = {};  // such as "org/name"
  io::HubRepository kind = io::HubRepository::Model;
};

struct RepositoryState {
  std::string commit = {};
  std::vector<std::string> files = {};  // paths inside the repository
};

struct RemoteFile {
  std::string path = {};
  std::string etag = {};  // name of the blob: the file's sha256 or its git id
  int64_t size_bytes = 0;
};

// Receives a piece of a file; `begin` is its offset in the file.
using PieceSink = std::function<void(int64_t begin, std::string_view bytes)>;

// One thread.
class HubClient {
 public:
  HubClient(const http::CurlLibrary& curl, const HubSettings& settings, RepositoryName repository,
            StopTest stop, Log log);

  // find_revision() and find_file() retry temporary failures of the hub or the network. They throw
  // DataError for a file that the hub does not have or refuses, NetworkError when the hub cannot be
  // reached, StopRequest.
  RepositoryState find_revision(const std::string& revision);
  RemoteFile find_file(const std::string& commit, const std::string& path);

  // Makes one attempt. Passes the bytes from `begin` on, or all bytes from 0 when the server does
  // not support ranges. Throws the errors of find_file(), and NetworkError when the bytes end
  // early; `sink` then has the received bytes already.
  void read_file(const std::string& commit, const RemoteFile& file, int64_t begin,
                 const PieceSink& sink);

  // As HubRequests::with_retries().
  void with_retries(const std::function<void()>& attempt,
                    const std::function<int64_t()>& progress = {}) {
    requests_.with_retries(attempt, progress);
  }

 private:
  http::Answer ask(const http::Request& request);  // follows redirects; throws unless 200 or 206
  [[noreturn]] void refuse(const http::Answer& answer, const std::string& url) const;
  [[noreturn]] void refuse_access(const http::Answer& answer) const;
  const char* kind_word() const;  // "model" or "data set"
  std::string api_url(const std::string& revision) const;
  std::string file_url(const std::string& commit, const std::string& path) const;

  HubRequests requests_;
  const HubSettings& settings_;
  RepositoryName repository_;
};

}  // namespace convoy::hub
