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
#include "convoy/core/http/http_client.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/data/hub/hub_settings.h"

namespace convoy::hub {

// Returns true when the request must end. Called by several threads.
using StopTest = std::function<bool()>;

struct RepositoryName {
  std::string id = {};  // "org/name"
  io::HubRepository kind = io::HubRepository::Model;
};

struct RepositoryState {
  std::string commit = {};
  std::vector<std::string> files = {};  // paths inside the repository
};

struct RemoteFile {
  std::string path = {};
  std::string etag = {};  // names the blob: the file's sha256 or its git id
  int64_t size_bytes = 0;
};

// Receives a piece of a file; `begin` is its offset in the file.
using PieceSink = std::function<void(int64_t begin, std::string_view bytes)>;

// One thread.
class HubClient {
 public:
  HubClient(const http::CurlLibrary& curl, const HubSettings& settings, RepositoryName repository,
            StopTest stop, Log log);

  // Each retries temporary failures of the hub or the network. Throws DataError for a file that the
  // hub does not have or refuses, NetworkError when the hub cannot be reached, StopRequest.
  RepositoryState find_revision(const std::string& revision);
  RemoteFile find_file(const std::string& commit, const std::string& path);

  // One attempt: bytes from `begin` on, or all of them from 0 when the server does not support
  // ranges. Throws the errors of find_file(), and NetworkError when the bytes end early; the
  // received bytes were already passed on.
  void read_file(const std::string& commit, const RemoteFile& file, int64_t begin,
                 const PieceSink& sink);

  // Calls `attempt` until it returns, waiting longer after each NetworkError, and not at all when
  // `progress` (bytes so far) has grown. Throws the last error.
  void with_retries(const std::function<void()>& attempt,
                    const std::function<int64_t()>& progress = {});

 private:
  http::Answer ask(const http::Request& request);  // follows redirects; 200, 206, or it throws
  http::Answer send_hop(http::Request hop);
  [[noreturn]] void refuse(const http::Answer& answer, const std::string& url) const;
  [[noreturn]] void refuse_access(const http::Answer& answer) const;
  const char* kind_word() const;  // "model" or "data set"
  std::string api_url(const std::string& revision) const;
  std::string file_url(const std::string& commit, const std::string& path) const;
  void wait(double seconds) const;  // throws StopRequest

  http::Client http_;
  const HubSettings& settings_;
  RepositoryName repository_;
  StopTest stop_;
  Log log_;
};

}  // namespace convoy::hub
