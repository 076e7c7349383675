// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/http_client.h"

#include <array>
#include <exception>
#include <new>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::hub {
namespace {

// One running request, for libcurl's callbacks.
struct Exchange {
  const HttpRequest& request;
  const StopTest& stop;
  HttpAnswer answer = {};
  std::exception_ptr failure = {};

  bool wants_bytes() const {
    return request.on_bytes && (answer.status == 200 || answer.status == 206);
  }

  void take_bytes(std::string_view bytes) {
    if (wants_bytes()) return request.on_bytes(answer, bytes);
    if (answer.body.size() + bytes.size() > HttpClient::kMostKeptBytes)
      throw DataError(fmt::format("{}: an answer of more than {} bytes", request.url,
                                  HttpClient::kMostKeptBytes),
                      {.hint = "check HF_ENDPOINT: this is no answer of a hub"});
    answer.body += bytes;
  }
};

size_t on_header(char* bytes, size_t size, size_t count, void* exchange) {
  static_cast<Exchange*>(exchange)->answer.take_line({bytes, size * count});
  return size * count;
}

size_t on_body(char* bytes, size_t size, size_t count, void* opaque) {
  auto* exchange = static_cast<Exchange*>(opaque);
  try {
    exchange->take_bytes({bytes, size * count});
    return size * count;
  } catch (...) {
    exchange->failure = std::current_exception();
    return 0;
  }
}

int on_progress(void* exchange, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(exchange)->stop() ? 1 : 0;
}

}  // namespace

HttpClient::HttpClient(const http::CurlLibrary& curl, HttpLimits limits, StopTest stop)
    : curl_(curl), limits_(std::move(limits)), stop_(std::move(stop)), handle_(curl.easy_init()) {
  if (handle_ == nullptr) throw std::bad_alloc();
}

HttpClient::~HttpClient() { curl_.easy_cleanup(handle_); }

HttpAnswer HttpClient::send(const HttpRequest& request) {
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://"))
    throw ConfigError(fmt::format("`{}` is no http:// or https:// address", request.url),
                      {.hint = "check HF_ENDPOINT"});
  Exchange exchange{.request = request, .stop = stop_};
  const http::CurlHeaders headers(curl_, request.headers);
  std::array<char, CURL_ERROR_SIZE> reason{};
  const auto set = [&](CURLoption option, auto value) {
    curl_.easy_setopt(handle_, option, value);
  };
  curl_.easy_reset(handle_);  // keeps its open connections
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  set(CURLOPT_HTTPHEADER, headers.list);
  set(CURLOPT_USERAGENT, "convoy/" CONVOY_VERSION);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &exchange);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, &exchange);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, reason.data());
  set(CURLOPT_BUFFERSIZE, 256L << 10);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(limits_.connect_seconds));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits_.stall_seconds));
  if (!limits_.certificates.empty()) set(CURLOPT_CAINFO, limits_.certificates.c_str());
  const CURLcode code = curl_.easy_perform(handle_);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
  if (exchange.failure) std::rethrow_exception(exchange.failure);
  if (stop_()) throw StopRequest("stopped on request");
  if (code == CURLE_OK) return std::move(exchange.answer);
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
    throw ConfigError(fmt::format("`{}` is no address", request.url),
                      {.hint = "check HF_ENDPOINT"});
  throw NetworkError(
      fmt::format("{}: {}", request.url,
                  reason[0] != '\0' ? reason.data() : curl_.easy_strerror(code)),
      {.hint = "set HF_ENDPOINT to a mirror, or https_proxy to a proxy, that this machine reaches; "
               "without a network, fetch on another machine and copy the folder that it prints: a "
               "folder can be given in place of an id and needs no network"});
}

}  // namespace convoy::hub
