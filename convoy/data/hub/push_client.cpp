// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/push_client.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/printable_text.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/data/hub/url.h"

namespace convoy::hub {
namespace {

using nlohmann::json;

constexpr size_t kFilesOfARequest = 256;  // as huggingface_hub
constexpr size_t kSampleBytes = 512;      // by which the hub tells text from binary files
constexpr int kMostAddresses = 4;         // for one object: its signed addresses expire
constexpr const char* kJsonType = "application/json";
constexpr const char* kLfsType = "application/vnd.git-lfs+json";
constexpr const char* kRealHub = "https://huggingface.co";
// The hub reads a whole commit, and joins the parts of an object, before it answers.
constexpr int64_t kStallSeconds = 300;

// The store does not take an address of the hub any more.
class ExpiredAddress : public NetworkError {
 public:
  using NetworkError::NetworkError;
};

bool is_success(int status) { return status >= 200 && status < 300; }

http::Request json_request(const std::string& url, const json& body, const std::string& type) {
  return {
      .url = url,
      .headers = {"Content-Type: " + type, type == kLfsType ? "Accept: " + type : "Accept: */*"},
      .body = body.dump()};
}

// Calls `work` with runs of at most kFilesOfARequest items.
template <class Item, class Work>
void in_runs(const std::vector<Item>& items, const Work& work) {
  for (size_t begin = 0; begin < items.size(); begin += kFilesOfARequest)
    work(std::span<const Item>(items).subspan(begin,
                                              std::min(kFilesOfARequest, items.size() - begin)));
}

WebAction action_of(const io::JsonReader& actions, const std::string& name) {
  WebAction action;
  const auto found = actions.optional_object(name);
  if (!found) return action;
  action.url = found->require_string("href");
  if (const auto header = found->optional_object("header"))
    for (const std::string& key : header->keys()) {
      const io::Json& value = *header->find(key);
      action.header[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  return action;
}

// Part addresses of a multipart upload, in order: header members "1", "00002", ...
std::vector<std::string> part_addresses(const WebAction& upload) {
  std::map<int64_t, std::string> by_number;
  for (const auto& [name, value] : upload.header)
    if (const int64_t number = whole_number(name); number >= 0) by_number[number] = value;
  std::vector<std::string> addresses;
  for (auto& [number, address] : by_number) addresses.push_back(std::move(address));
  return addresses;
}

}  // namespace

PushClient::PushClient(const http::CurlLibrary& curl, const HubSettings& settings,
                       PushTarget target, StopTest stop, Log log)
    : requests_(curl, settings, std::max(kStallSeconds, settings.stall_seconds), std::move(stop),
                std::move(log)),
      settings_(settings),
      target_(std::move(target)) {}

std::string PushClient::api_url(std::string_view action) const {
  return fmt::format("{}/api/models/{}/{}/{}", settings_.endpoint, target_.id, action,
                     escaped_for_url(target_.revision, ""));
}

std::string PushClient::own_address(const std::string& url) const {
  const bool names_real_hub = url.starts_with(std::string(kRealHub) + "/");
  return names_real_hub ? settings_.endpoint + url.substr(std::string_view(kRealHub).size()) : url;
}

void PushClient::refuse(const http::Answer& answer, const std::string& url) const {
  HubRequests::require_not_busy(answer, url);
  const std::string reason = reason_of(answer);
  const std::string tokens = settings_.endpoint + "/settings/tokens";
  switch (answer.status) {
    case 401:
      throw DataError(
          fmt::format("the hub does not know the token of {}: it answers 401{}",
                      settings_.token_source, reason),
          {.hint = fmt::format("set HF_TOKEN to a token with write access ({})", tokens)});
    case 403:
      throw DataError(
          fmt::format("the token of {} may not write {}: the hub answers 403{}",
                      settings_.token_source, target_.id, reason),
          {.hint = fmt::format("wanted your own name or one of your organizations, and a "
                               "token with write access ({})",
                               tokens)});
    case 404:
      if (!url.starts_with(settings_.endpoint + "/api/models/")) break;  // such as a store
      throw DataError(fmt::format("the hub has no {} {}: it answers 404{}",
                                  target_.revision == "main" ? "model" : "branch of a model",
                                  target_.id, reason),
                      {.hint = "check USER/NAME, --revision and HF_ENDPOINT"});
    case 409:
    case 412:
      throw DataError(fmt::format("{} was changed at the same time: the hub answers {}{}",
                                  target_.id, answer.status, reason),
                      {.hint = "run the same command again: what was sent is not sent again"});
    case 301:
    case 302:
    case 307:
    case 308:
      throw DataError(
          fmt::format("{} was moved: the hub answers {} and names {}", target_.id, answer.status,
                      printable_text(shown_url(answer.header("location")))),
          {.hint = "push to the name that it has now"});
    default:
      break;
  }
  throw DataError(fmt::format("{} answers {}{}", shown_url(url), answer.status, reason),
                  {.hint = "check HF_ENDPOINT, and what the hub says"});
}

http::Answer PushClient::post_any(const std::string& url, const json& body,
                                  const std::string& content_type, Credentials credentials) {
  http::Answer answer;
  requests_.with_retries([&] {
    answer = requests_.send(json_request(url, body, content_type), credentials);
    HubRequests::require_not_busy(answer, url);
  });
  return answer;
}

json PushClient::post(const std::string& url, const json& body, const std::string& content_type) {
  const http::Answer answer = post_any(url, body, content_type);
  if (!is_success(answer.status)) refuse(answer, url);
  return io::parse_json(answer.body, shown_url(url));
}

bool PushClient::create_repository(bool is_private) {
  const size_t slash = target_.id.find('/');
  json body = {{"name", target_.id.substr(slash + 1)},
               {"organization", target_.id.substr(0, slash)}};
  if (is_private) body["visibility"] = "private";
  const std::string url = settings_.endpoint + "/api/repos/create";
  http::Answer answer;
  requests_.with_retries([&] {
    answer = requests_.send(json_request(url, body, kJsonType));
    HubRequests::require_not_busy(answer, url);
    // The hub makes one repository of a user at a time.
    if (answer.status == 409 &&
        answer.body.find("another conflicting operation") != std::string::npos)
      throw HubBusy(fmt::format("{} answers 409{}", url, reason_of(answer)), 0);
  });
  if (is_success(answer.status)) return true;
  if (answer.status == 409) return false;
  // A token may write one repository and make none.
  const bool may_be_there = answer.status >= 401 && answer.status <= 403;
  if (may_be_there) {
    http::Answer found;
    requests_.with_retries([&] {
      found =
          requests_.send({.url = fmt::format("{}/api/models/{}", settings_.endpoint, target_.id)});
      HubRequests::require_not_busy(found, url);
    });
    if (is_success(found.status)) return false;
  }
  refuse(answer, url);
}

void PushClient::create_branch() {
  http::Answer answer;
  const std::string url = api_url("revision");
  requests_.with_retries([&] {
    answer = requests_.send({.url = url});
    HubRequests::require_not_busy(answer, url);
  });
  if (is_success(answer.status)) return;
  if (answer.status != 404) refuse(answer, url);
  const std::string branch = api_url("branch");
  answer = post_any(branch, json::object());
  if (!is_success(answer.status) && answer.status != 409) refuse(answer, branch);
}

void PushClient::check_card(const std::string& text) {
  const std::string url = settings_.endpoint + "/api/validate-yaml";
  const http::Answer answer = post_any(url, {{"content", text}, {"repoType", "model"}});
  if (answer.status != 400) return;  // a mirror may not have it; the commit is checked as well
  std::string reasons;
  const json body = json::parse(answer.body, nullptr, false);
  if (body.is_object() && body.contains("errors") && body["errors"].is_array())
    for (const json& one : body["errors"])
      if (one.is_object())
        reasons += (reasons.empty() ? "" : "; ") + one.value("message", std::string());
  throw DataError(fmt::format("the hub refuses the front matter of README.md: {}", reasons),
                  {.file = "README.md", .hint = "mend the YAML between its lines of `---`"});
}

std::vector<UploadMode> PushClient::find_modes(const std::vector<const PushFile*>& files,
                                               const std::string& git_ignore) {
  const std::string url = api_url("preupload");
  std::map<std::string, UploadMode> modes;
  in_runs(files, [&](std::span<const PushFile* const> run) {
    json asked = json::array();
    for (const PushFile* file : run) {
      const int64_t sample = std::min<int64_t>(kSampleBytes, file->size_bytes);
      asked.push_back({{"path", file->path},
                       {"sample", base64(PushBytes(*file).read(0, sample))},
                       {"size", file->size_bytes}});
    }
    json body = {{"files", std::move(asked)}};
    if (!git_ignore.empty()) body["gitIgnore"] = git_ignore;
    const json told = post(url, body);
    const io::JsonReader answer(told, shown_url(url));
    const io::Json* list = answer.find("files");
    if (list == nullptr || !list->is_array()) answer.fail("files", "wanted a list");
    for (const io::Json& one : *list) {
      const io::JsonReader file(one, shown_url(url));
      modes[file.require_string("path")] = {.is_large = file.require_string("uploadMode") == "lfs",
                                            .is_ignored = file.bool_or("shouldIgnore", false),
                                            .remote_id = file.string_or("oid", "")};
    }
  });
  std::vector<UploadMode> in_order;
  for (const PushFile* file : files) {
    const auto found = modes.find(file->path);
    if (found == modes.end())
      throw DataError(
          fmt::format("{} does not say how {} is to be sent", shown_url(url), file->path),
          {.hint = "check HF_ENDPOINT: this is no answer of a hub"});
    in_order.push_back(found->second);
    // The store takes no empty object.
    if (file->size_bytes == 0) in_order.back().is_large = false;
  }
  return in_order;
}

std::vector<ObjectUpload> PushClient::find_uploads(const std::vector<LargeObject>& objects) {
  const std::string url =
      fmt::format("{}/{}.git/info/lfs/objects/batch", settings_.endpoint, target_.id);
  std::map<std::string, ObjectUpload> uploads;
  in_runs(objects, [&](std::span<const LargeObject> run) {
    json asked = json::array();
    for (const LargeObject& object : run)
      asked.push_back({{"oid", object.sha256}, {"size", object.size_bytes}});
    const json told = post(url,
                           {{"operation", "upload"},
                            {"transfers", {"basic", "multipart"}},
                            {"objects", std::move(asked)},
                            {"hash_algo", "sha256"},
                            {"ref", {{"name", target_.revision}}}},
                           kLfsType);
    const io::JsonReader answer(told, url);
    const std::string transfer = answer.string_or("transfer", "basic");
    if (transfer != "basic" && transfer != "multipart")
      throw DataError(
          fmt::format("{} asks for the transfer `{}`: wanted basic or multipart", url, transfer),
          {.hint = "push with huggingface_hub: hf upload"});
    const io::Json* list = answer.find("objects");
    if (list == nullptr || !list->is_array()) answer.fail("objects", "wanted a list");
    for (const io::Json& one : *list) {
      const io::JsonReader object(one, url);
      const std::string oid = object.require_string("oid");
      if (const auto error = object.optional_object("error"))
        throw DataError(fmt::format("the hub does not take object {:.12}: {}", oid,
                                    error->string_or("message", "it says no reason")),
                        {.hint = "do what it says, and run the same command again"});
      ObjectUpload& how = uploads[oid];
      if (const auto actions = object.optional_object("actions"))
        how = {.upload = action_of(*actions, "upload"), .verify = action_of(*actions, "verify")};
    }
  });
  std::vector<ObjectUpload> in_order;
  for (const LargeObject& object : objects) {
    const auto found = uploads.find(object.sha256);
    if (found == uploads.end())
      throw DataError(fmt::format("{} does not name object {}", url, object.sha256),
                      {.hint = "check HF_ENDPOINT: this is no answer of a hub"});
    in_order.push_back(found->second);
  }
  return in_order;
}

http::Answer PushClient::put(const PushBytes& bytes, const WebAction& to, int64_t begin,
                             int64_t size_bytes, const SentBytes& sent) {
  http::Answer answer;
  requests_.with_retries([&] {
    int64_t sent_bytes = 0;
    http::Request request{.url = to.url};
    for (const auto& [name, value] : to.header)
      request.headers.push_back(fmt::format("{}: {}", name, value));
    request.upload =
        http::Upload{.size_bytes = size_bytes, .read = [&](int64_t at, char* into, size_t most) {
                       const size_t given = bytes.read(begin + at, into, most);
                       const int64_t reached = at + static_cast<int64_t>(given);
                       sent(reached - sent_bytes);
                       sent_bytes = reached;
                       return given;
                     }};
    try {
      answer = requests_.send(std::move(request), Credentials::None);
      HubRequests::require_not_busy(answer, to.url);
    } catch (const NetworkError&) {
      sent(-sent_bytes);
      throw;
    }
    if (is_success(answer.status)) return;
    sent(-sent_bytes);
    // The store of the bytes says so of an address that is too old, and of a slow upload.
    if ((answer.status == 403 || answer.status == 400) && !same_origin(to.url, settings_.endpoint))
      return;
    refuse(answer, to.url);
  });
  if (!is_success(answer.status))
    throw ExpiredAddress(
        fmt::format("{} answers {}{}", shown_url(to.url), answer.status, reason_of(answer)),
        {.hint = "run the same command again"});
  return answer;
}

void PushClient::send_parts(const PushFile& file, const LargeObject& object,
                            const WebAction& upload, int64_t part_bytes, const SentBytes& sent) {
  const std::vector<std::string> addresses = part_addresses(upload);
  const int64_t wanted = (file.size_bytes + part_bytes - 1) / part_bytes;
  if (std::ssize(addresses) != wanted)
    throw DataError(fmt::format("{}: wanted {} addresses of parts of {} bytes, found {}", file.path,
                                wanted, part_bytes, addresses.size()),
                    {.hint = "check HF_ENDPOINT: this is no answer of a hub"});
  const PushBytes bytes(file);
  json parts = json::array();
  int64_t begin = 0;
  for (const std::string& address : addresses) {
    const int64_t size_bytes = std::min(part_bytes, file.size_bytes - begin);
    try {
      const http::Answer answer = put(bytes, {.url = address}, begin, size_bytes, sent);
      const std::string etag = answer.header("etag");
      if (etag.empty())
        throw DataError(fmt::format("{} answers without an ETag", shown_url(address)),
                        {.hint = "check the proxy: it must pass the store's headers on"});
      parts.push_back({{"partNumber", parts.size() + 1}, {"etag", etag}});
    } catch (const ExpiredAddress&) {
      sent(-begin);  // the parts of an upload belong to its addresses
      throw;
    }
    begin += size_bytes;
  }
  const std::string url = own_address(upload.url);
  const http::Answer answer = post_any(url, {{"oid", object.sha256}, {"parts", std::move(parts)}},
                                       kLfsType, Credentials::None);
  if (!is_success(answer.status)) refuse(answer, url);
}

void PushClient::send_object(const PushFile& file, const LargeObject& object,
                             const ObjectUpload& how, const SentBytes& sent) {
  const auto chunk = how.upload.header.find("chunk_size");
  if (chunk != how.upload.header.end()) {
    const int64_t part_bytes = whole_number(chunk->second);
    if (part_bytes < 1)
      throw DataError(fmt::format("{}: wanted the bytes of a part, the hub answers chunk_size `{}`",
                                  file.path, printable_text(chunk->second)),
                      {.hint = "check HF_ENDPOINT: this is no answer of a hub"});
    send_parts(file, object, how.upload, part_bytes, sent);
  } else {
    WebAction to = how.upload;
    to.url = own_address(to.url);
    put(PushBytes(file), to, 0, file.size_bytes, sent);
  }
  if (how.verify.url.empty()) return;
  const std::string url = own_address(how.verify.url);
  const http::Answer answer = post_any(url, {{"oid", object.sha256}, {"size", object.size_bytes}});
  if (!is_success(answer.status)) refuse(answer, url);
}

void PushClient::upload(const PushFile& file, const LargeObject& object, ObjectUpload how,
                        const SentBytes& sent) {
  for (int addresses = 1; !how.upload.url.empty(); ++addresses) {
    try {
      send_object(file, object, how, sent);
      return;
    } catch (const ExpiredAddress&) {
      if (addresses == kMostAddresses) throw;
    }
    how = find_uploads({object}).front();
  }
}

CommitResult PushClient::commit(CommitBody& body) {
  const std::string url = api_url("commit");
  http::Answer answer;
  std::exception_ptr lost;  // no answer came, and the commit may have been made
  requests_.with_retries([&] {
    http::Request request{.url = url, .headers = {"Content-Type: application/x-ndjson"}};
    request.fresh_connection = true;  // libcurl repeats a request whose kept connection breaks
    request.upload = http::Upload{.method = "POST",
                                  .size_bytes = body.size_bytes(),
                                  .read = [&](int64_t begin, char* into, size_t most) {
                                    return body.read(begin, into, most);
                                  }};
    try {
      answer = requests_.send(std::move(request));
    } catch (const NetworkError&) {
      lost = std::current_exception();
      return;
    }
    if (answer.status == 429 || answer.status == 503)  // surely not made
      HubRequests::require_not_busy(answer, url);
  });
  if (lost) std::rethrow_exception(lost);
  if (!is_success(answer.status)) refuse(answer, url);
  const io::JsonReader told(io::parse_json(answer.body, url), url);
  return {.url = told.require_string("commitUrl"), .commit = told.require_string("commitOid")};
}

}  // namespace convoy::hub
