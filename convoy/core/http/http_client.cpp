// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/http_client.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/core/base/quiet_thread.h"

namespace convoy::http {
namespace {

// Longest sleep of the thread without network events. Orders wake the thread earlier.
constexpr int kLongestSleepMs = 1000;
// Most connections that are kept for a next request. Beyond this number libcurl closes the oldest
// connection.
constexpr long kKeptConnections = 4096;
constexpr long kPieceBytes = 256L << 10;  // most bytes in one call of on_bytes or Upload::read

// One request under way, for libcurl's callbacks. Must not move in memory.
struct Transfer {
  Transfer(const CurlLibrary& library, Request wanted, Client::OnEnd called)
      : curl(library),
        request(std::move(wanted)),
        on_end(std::move(called)),
        headers(library, request.headers),
        handle(library.easy_init()) {
    if (handle == nullptr) throw std::bad_alloc();
  }
  ~Transfer() { curl.easy_cleanup(handle); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  const CurlLibrary& curl;
  Request request;
  Client::OnEnd on_end;
  CurlHeaders headers;
  CURL* handle;
  size_t most_bytes = 0;
  int64_t uploaded_bytes = 0;  // offset of the next byte of Request::upload
  Answer answer = {};
  bool is_too_long = false;
  std::exception_ptr failure = {};
  std::array<char, CURL_ERROR_SIZE> why{};
};

size_t take_head_line(char* bytes, size_t size, size_t count, void* transfer) {
  static_cast<Transfer*>(transfer)->answer.take_line({bytes, size * count});
  return size * count;
}

size_t take_body(char* bytes, size_t size, size_t count, void* opaque) {
  auto* transfer = static_cast<Transfer*>(opaque);
  const std::string_view piece(bytes, size * count);
  Answer& answer = transfer->answer;
  const bool is_success = answer.status >= 200 && answer.status < 300;
  if (!transfer->request.on_bytes || !is_success) {
    transfer->is_too_long = answer.body.size() + piece.size() > transfer->most_bytes;
    if (transfer->is_too_long) return 0;
    answer.body += piece;
    return piece.size();
  }
  try {
    transfer->request.on_bytes(answer, piece);
    return piece.size();
  } catch (...) {
    transfer->failure = std::current_exception();
    return 0;
  }
}

size_t give_upload(char* into, size_t size, size_t count, void* opaque) {
  auto* transfer = static_cast<Transfer*>(opaque);
  const Upload& upload = *transfer->request.upload;
  const auto left = static_cast<size_t>(upload.size_bytes - transfer->uploaded_bytes);
  const size_t most = std::min(size * count, left);
  if (most == 0) return 0;
  try {
    const size_t given = upload.read(transfer->uploaded_bytes, into, most);
    transfer->uploaded_bytes += static_cast<int64_t>(given);
    return given;
  } catch (...) {
    transfer->failure = std::current_exception();
    return CURL_READFUNC_ABORT;
  }
}

// libcurl sends the body from its start again when a kept connection turns out to be closed.
int move_upload(void* transfer, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Transfer*>(transfer)->uploaded_bytes = offset;
  return CURL_SEEKFUNC_OK;
}

int take_progress(void* transfer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(transfer)->request.must_end() ? 1 : 0;
}

// The host in an address: "127.0.0.1" of "http://127.0.0.1:80/v1", "::1" of "http://[::1]/".
std::string host_of(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return {};
  const size_t begin = scheme + 3;
  if (begin < url.size() && url[begin] == '[') {
    const size_t end = url.find(']', begin);
    return end == std::string::npos ? "" : url.substr(begin + 1, end - begin - 1);
  }
  const size_t end = url.find_first_of(":/?#", begin);
  return url.substr(begin, end == std::string::npos ? end : end - begin);
}

void set_up(Transfer& transfer, const ClientLimits& limits) {
  const auto set = [&](CURLoption option, auto value) {
    transfer.curl.easy_setopt(transfer.handle, option, value);
  };
  transfer.most_bytes = limits.answer_bytes;
  set(CURLOPT_URL, transfer.request.url.c_str());
  if (is_loopback_host(host_of(transfer.request.url))) set(CURLOPT_PROXY, "");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  if (transfer.request.body) {
    set(CURLOPT_POSTFIELDS, transfer.request.body->c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.request.body->size()));
  }
  if (transfer.request.upload) {
    set(CURLOPT_UPLOAD, 1L);
    if (transfer.request.upload->method == "POST") set(CURLOPT_CUSTOMREQUEST, "POST");
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(transfer.request.upload->size_bytes));
    set(CURLOPT_READFUNCTION, give_upload);
    set(CURLOPT_READDATA, &transfer);
    set(CURLOPT_SEEKFUNCTION, move_upload);
    set(CURLOPT_SEEKDATA, &transfer);
    set(CURLOPT_UPLOAD_BUFFERSIZE, kPieceBytes);
  }
  if (transfer.request.head) set(CURLOPT_NOBODY, 1L);
  set(CURLOPT_HTTPHEADER, transfer.headers.list);
  set(CURLOPT_USERAGENT, "convoy/" CONVOY_VERSION);
  set(CURLOPT_HEADERFUNCTION, take_head_line);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, take_body);
  set(CURLOPT_WRITEDATA, &transfer);
  if (transfer.request.on_bytes) set(CURLOPT_BUFFERSIZE, kPieceBytes);
  if (transfer.request.must_end) {
    set(CURLOPT_XFERINFOFUNCTION, take_progress);
    set(CURLOPT_XFERINFODATA, &transfer);
    set(CURLOPT_NOPROGRESS, 0L);
  }
  set(CURLOPT_PRIVATE, &transfer);
  set(CURLOPT_ERRORBUFFER, transfer.why.data());
  set(CURLOPT_NOSIGNAL, 1L);
  // Some servers compress without being asked. The empty text accepts every encoding that libcurl
  // can decode.
  if (!transfer.request.on_bytes && !transfer.request.head) set(CURLOPT_ACCEPT_ENCODING, "");
  if (transfer.request.fresh_connection) set(CURLOPT_FRESH_CONNECT, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);  // an answer may take minutes without a byte
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_time.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(limits.whole_time.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.stall_time.count()));
  if (!limits.certificates.empty()) set(CURLOPT_CAINFO, limits.certificates.c_str());
}

RequestResult result_of(Transfer& transfer, CURLcode code) {
  if (code == CURLE_OK) return {.answer = std::move(transfer.answer)};
  long sent_bytes = 0;
  transfer.curl.easy_getinfo(transfer.handle, CURLINFO_REQUEST_SIZE, &sent_bytes);
  const RequestEnd end = sent_bytes == 0                    ? RequestEnd::NoConnection
                         : code == CURLE_OPERATION_TIMEDOUT ? RequestEnd::TimedOut
                                                            : RequestEnd::Broken;
  if (transfer.is_too_long)
    return {.end = end,
            .why = fmt::format("an answer of more than {} bytes", transfer.most_bytes),
            .code = code,
            .is_too_long = true};
  return {.end = end,
          .why = transfer.why[0] != '\0' ? transfer.why.data() : transfer.curl.easy_strerror(code),
          .code = code,
          .failure = transfer.failure};
}

}  // namespace

// libcurl's handles belong to this thread. `mutex_` guards the orders that other threads give it.
class Client::Thread {
 public:
  Thread(const CurlLibrary& curl, ClientLimits limits)
      : curl_(curl), limits_(std::move(limits)), multi_(curl.multi_init()) {
    if (multi_ == nullptr) throw std::bad_alloc();
    curl_.multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kKeptConnections);
    thread_ = quiet_thread([this] { run(); });
  }

  ~Thread() {
    order([this] { must_end_ = true; });
    thread_.join();
    for (const auto& [number, transfer] : running_)
      curl_.multi_remove_handle(multi_, transfer->handle);
    running_.clear();
    curl_.multi_cleanup(multi_);
  }

  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  int64_t send(Request request, OnEnd on_end) {
    auto transfer = std::make_unique<Transfer>(curl_, std::move(request), std::move(on_end));
    set_up(*transfer, limits_);
    int64_t number = 0;
    order([&] {
      number = ++last_number_;
      new_.emplace(number, std::move(transfer));
    });
    return number;
  }

  void cancel(int64_t number) {
    order([&] { cancelled_.push_back(number); });
  }

 private:
  using Transfers = std::map<int64_t, std::unique_ptr<Transfer>>;

  template <class Change>
  void order(const Change& change) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      change();
    }
    curl_.multi_wakeup(multi_);
  }

  void run() {
    while (take_orders()) {
      int num_running = 0;
      curl_.multi_perform(multi_, &num_running);
      hand_out_ended();
      curl_.multi_poll(multi_, nullptr, 0, kLongestSleepMs, nullptr);
    }
  }

  bool take_orders() {
    Transfers begun;
    std::vector<int64_t> cancelled;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (must_end_) return false;
      begun.swap(new_);
      cancelled.swap(cancelled_);
    }
    for (const int64_t number : cancelled)
      if (begun.erase(number) == 0) drop(number);
    for (auto& [number, transfer] : begun) {
      curl_.multi_add_handle(multi_, transfer->handle);
      numbers_[transfer->handle] = number;
      running_.emplace(number, std::move(transfer));
    }
    return true;
  }

  std::unique_ptr<Transfer> drop(int64_t number) {
    const auto found = running_.find(number);
    if (found == running_.end()) return nullptr;
    std::unique_ptr<Transfer> transfer = std::move(found->second);
    running_.erase(found);
    numbers_.erase(transfer->handle);
    curl_.multi_remove_handle(multi_, transfer->handle);
    return transfer;
  }

  void hand_out_ended() {
    int left = 0;
    while (const CURLMsg* const message = curl_.multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const std::unique_ptr<Transfer> transfer = drop(numbers_.at(message->easy_handle));
      transfer->on_end(result_of(*transfer, code));
    }
  }

  const CurlLibrary& curl_;
  ClientLimits limits_;
  CURLM* multi_;
  Transfers running_;
  std::map<CURL*, int64_t> numbers_;
  std::mutex mutex_;
  Transfers new_;
  std::vector<int64_t> cancelled_;
  int64_t last_number_ = 0;
  bool must_end_ = false;
  std::thread thread_;
};

Client::Client(const CurlLibrary& curl, ClientLimits limits)
    : thread_(std::make_unique<Thread>(curl, std::move(limits))) {}

Client::~Client() = default;

int64_t Client::send(Request request, OnEnd on_end) {
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://"))
    throw ConfigError(fmt::format("`{}` is no http:// or https:// address", request.url),
                      {.hint = "write the whole address, such as http://HOST:PORT/v1"});
  request.headers.emplace_back("Expect:");  // else libcurl waits for "100 Continue"
  return thread_->send(std::move(request), std::move(on_end));
}

std::future<RequestResult> Client::ask(Request request) {
  const auto ended = std::make_shared<std::promise<RequestResult>>();
  send(std::move(request), [ended](RequestResult result) { ended->set_value(std::move(result)); });
  return ended->get_future();
}

void Client::cancel(int64_t number) { thread_->cancel(number); }

}  // namespace convoy::http
