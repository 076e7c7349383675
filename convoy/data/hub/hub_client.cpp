// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/hub_client.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/data/hub/url.h"

namespace convoy::hub {
namespace {

constexpr int kMostRedirects = 8;
constexpr int64_t kMostFileBytes = int64_t{1} << 50;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The etag without quotes and weak mark: W/"abc" -> abc.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

// True for a valid file name in the cache.
bool is_blob_name(const std::string& etag) {
  return !etag.empty() && etag.size() <= 128 &&
         std::all_of(etag.begin(), etag.end(), [](unsigned char letter) {
           return std::isalnum(letter) || letter == '-' || letter == '_';
         });
}

bool is_path_inside(const std::string& path) {
  if (path.size() > 1024 || path.find_first_of(std::string_view("\\\0", 2)) != path.npos)
    return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    begin = end + 1;
  }
  return true;
}

// Where a partial answer (status 206) begins in the file: 5 of "bytes 5-9/10". -1 when it is
// unknown.
int64_t range_begin(const http::Answer& answer) {
  const std::string range = answer.header("content-range");
  if (!range.starts_with("bytes ")) return -1;
  return whole_number(range.substr(6, range.find('-') - 6));
}

}  // namespace

HubClient::HubClient(const http::CurlLibrary& curl, const HubSettings& settings,
                     RepositoryName repository, StopTest stop, Log log)
    : requests_(curl, settings, settings.stall_seconds, std::move(stop), std::move(log)),
      settings_(settings),
      repository_(std::move(repository)) {}

std::string HubClient::api_url(const std::string& revision) const {
  const bool is_model = repository_.kind == io::HubRepository::Model;
  return fmt::format("{}/api/{}/{}/revision/{}", settings_.endpoint,
                     is_model ? "models" : "datasets", repository_.id,
                     escaped_for_url(revision, ""));
}

std::string HubClient::file_url(const std::string& commit, const std::string& path) const {
  const bool is_model = repository_.kind == io::HubRepository::Model;
  return fmt::format("{}/{}{}/resolve/{}/{}", settings_.endpoint, is_model ? "" : "datasets/",
                     repository_.id, commit, escaped_for_url(path));
}

const char* HubClient::kind_word() const {
  return repository_.kind == io::HubRepository::Model ? "model" : "data set";
}

void HubClient::refuse_access(const http::Answer& answer) const {
  const std::string page =
      fmt::format("{}/{}{}", settings_.endpoint,
                  repository_.kind == io::HubRepository::Model ? "" : "datasets/", repository_.id);
  const bool is_gated = answer.header("x-error-code") == "GatedRepo";
  const std::string who = settings_.token.empty() ? "nobody (no token is set)"
                                                  : fmt::format("the owner of the token from {}",
                                                                settings_.token_source);
  if (is_gated || answer.status == 403)
    throw DataError(
        fmt::format("the hub does not give {} to {}: access must be granted", repository_.id, who),
        {.hint =
             fmt::format("accept the terms on {} with your account, then set HF_TOKEN to a token "
                         "of that account ({}/settings/tokens)",
                         page, settings_.endpoint)});
  throw DataError(
      fmt::format("the hub does not show {} to {}: it is private, or there is none of that name",
                  repository_.id, who),
      {.hint =
           fmt::format("check the name; for a private one set HF_TOKEN to a token that may read "
                       "it ({}/settings/tokens)",
                       settings_.endpoint)});
}

void HubClient::refuse(const http::Answer& answer, const std::string& url) const {
  const std::string reason = reason_of(answer);
  HubRequests::require_not_busy(answer, url);
  // The address of a file at another host expires. Then that host answers 403, and the next attempt
  // gets a new address.
  if (answer.status == 403 && !same_origin(url, settings_.endpoint))
    throw HubBusy(fmt::format("{} answers {}{}", url, answer.status, reason), 0);
  if (answer.status == 401 || answer.status == 403) refuse_access(answer);
  if (answer.status == 404) {
    const bool no_revision = answer.header("x-error-code") == "RevisionNotFound";
    throw DataError(
        fmt::format("the hub has no {} {}: {} answers 404{}",
                    no_revision ? "such revision of" : kind_word(), repository_.id, url, reason),
        {.hint = no_revision ? "--revision takes a branch, a tag or a commit"
                             : "check the name, and HF_ENDPOINT where it is set"});
  }
  throw DataError(
      fmt::format("{} answers {}{}", url, answer.status, reason),
      {.hint =
           "check HF_ENDPOINT, and run the same command again later: the downloaded part is kept"});
}

http::Answer HubClient::ask(const http::Request& request) {
  std::string url = request.url;
  for (int hops = 0; hops <= kMostRedirects; ++hops) {
    http::Request hop = request;
    hop.url = url;
    http::Answer answer = requests_.send(std::move(hop));
    if (answer.status == 200 || answer.status == 206) return answer;
    if (!is_redirect(answer.status)) refuse(answer, url);
    // The hub's own answer to a HEAD request has the facts about the file. The host of the bytes
    // may lack them, so the redirect is not followed.
    const bool tells_all = request.head && !answer.header("x-linked-etag").empty();
    if (tells_all) return answer;
    url = redirected_url(url, answer.header("location"));
  }
  throw DataError(fmt::format("{} is redirected more than {} times", request.url, kMostRedirects),
                  {.hint = "check HF_ENDPOINT, and the proxy"});
}

RepositoryState HubClient::find_revision(const std::string& revision) {
  const std::string url = api_url(revision);
  http::Answer answer;
  requests_.with_retries(
      [&] { answer = ask({.url = url, .headers = {"Accept: application/json"}}); });
  const io::JsonReader state(io::parse_json(answer.body, url), url);
  RepositoryState found{.commit = state.require_string("sha")};
  if (found.commit.find('/') != std::string::npos || !io::looks_like_hub_revision(found.commit))
    state.fail("sha", fmt::format("`{:.100}` is no commit", found.commit));
  const io::Json* siblings = state.find("siblings");
  if (siblings == nullptr || !siblings->is_array())
    state.fail("siblings", "wanted a list of files");
  for (const io::Json& sibling : *siblings) {
    const std::string path = io::JsonReader(sibling, url).require_string("rfilename");
    if (!is_path_inside(path))
      state.fail("siblings", fmt::format("`{:.200}` is no path inside the repository", path));
    found.files.push_back(path);
  }
  return found;
}

RemoteFile HubClient::find_file(const std::string& commit, const std::string& path) {
  const std::string url = file_url(commit, path);
  http::Answer answer;
  requests_.with_retries(
      [&] { answer = ask({.url = url, .headers = {"Accept-Encoding: identity"}, .head = true}); });
  const auto first_of = [&](const char* linked, const char* own) {
    const std::string value = answer.header(linked);
    return value.empty() ? answer.header(own) : value;
  };
  RemoteFile file{.path = path,
                  .etag = plain_etag(first_of("x-linked-etag", "etag")),
                  .size_bytes = whole_number(first_of("x-linked-size", "content-length"))};
  if (!is_blob_name(file.etag))
    throw DataError(
        fmt::format("{} comes with the ETag `{:.100}`, which names no file", url, file.etag),
        {.hint = "check HF_ENDPOINT: a mirror must pass the hub's headers on"});
  if (file.size_bytes < 0 || file.size_bytes > kMostFileBytes)
    throw DataError(fmt::format("{} does not say how large it is", url),
                    {.hint = "check HF_ENDPOINT: a mirror must pass the hub's headers on"});
  return file;
}

void HubClient::read_file(const std::string& commit, const RemoteFile& file, int64_t begin,
                          const PieceSink& sink) {
  const std::string url = file_url(commit, file.path);
  int64_t at = -1;  // offset of the next received bytes; -1: unknown
  http::Request request{.url = url, .headers = {"Accept-Encoding: identity"}};
  if (begin > 0) request.headers.push_back(fmt::format("Range: bytes={}-", begin));
  request.on_bytes = [&](const http::Answer& answer, std::string_view bytes) {
    if (at < 0) {
      at = answer.status == 206 ? range_begin(answer) : 0;
      if (answer.status == 206 && at != begin)
        throw DataError(
            fmt::format("{}: asked for bytes from {} on, found `{:.100}`", url, begin,
                        answer.header("content-range")),
            {.hint = "check HF_ENDPOINT: a mirror must answer with the bytes that were asked for"});
    }
    sink(at, bytes);
    at += static_cast<int64_t>(bytes.size());
  };
  ask(request);
  const int64_t reached = std::max<int64_t>(at, 0);
  if (reached < file.size_bytes)
    throw NetworkError(fmt::format("{} ended after {} of {} bytes", url, reached, file.size_bytes),
                       {.hint = "run the same command again: it resumes there"});
}

}  // namespace convoy::hub
