// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/page_server.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/apps/page/page_assets.h"
#include "convoy/apps/page/result_files.h"
#include "convoy/apps/page/run_index.h"
#include "convoy/apps/page/sweep_index.h"
#include "convoy/apps/serving/json_answer.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/random_bytes.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/http/handler_threads.h"
#include "convoy/core/http/host_header.h"
#include "convoy/core/http/http_server.h"
#include "convoy/core/http/request_target.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::page {
namespace {

using nlohmann::json;
using serving::ApiError;

constexpr const char* kPolicy = "Content-Security-Policy";
constexpr int kThreads = 8;  // several, because an answer may wait for a disk
constexpr const char* kChatPath = "/v1/chat/completions";
// The clients are limited to far below the usual limit of 1024 descriptors per process.
constexpr http::ServerLimits kLimits{.body_bytes = 1 << 20,
                                     .clients = 256,
                                     .request_time = std::chrono::seconds(5),
                                     .silence_time = std::chrono::seconds(5)};

struct Request {
  explicit Request(const http::Exchange& asked)
      : exchange(asked), target(http::parse_target(asked.target())) {}

  std::string parameter(const std::string& name) const { return target.parameter(name); }
  bool has(const std::string& name) const { return target.parameters.contains(name); }
  std::string header(const char* name) const { return std::string(exchange.header(name)); }

  const http::Exchange& exchange;
  http::RequestTarget target;
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  http::Headers headers{};
};

bool is_every_address(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

std::string cookie_of(const Request& request, const std::string& name) {
  std::string_view cookies = request.exchange.header("cookie");
  while (!cookies.empty()) {
    const std::string_view cookie = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), cookie.size() + 1));
    const std::string_view pair = trimmed(cookie, " \t");
    if (pair.substr(0, pair.find('=')) == name && pair.size() > name.size())
      return std::string(pair.substr(name.size() + 1));
  }
  return {};
}

std::vector<std::string> runs_of(const Request& request) {
  std::vector<std::string> names;
  const auto [begin, end] = request.target.parameters.equal_range("run");
  for (auto run = begin; run != end; ++run) names.push_back(run->second);
  return names;
}

int64_t number_of(const Request& request, const char* name) {
  const std::string text = request.parameter(name);
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return 0;
  return std::stoll(text);
}

Response as_json(const json& value) {
  return {.type = "application/json",
          .body = value.dump(-1, ' ', false, json::error_handler_t::replace)};
}

// Any program may have written the figure, so when it is opened on its own it must not run or load
// anything.
Response as_file(const std::string& name, const std::optional<std::string>& bytes) {
  if (!bytes) return {.status = 404, .body = "there is no such file\n"};
  return {.type = std::string(type_of_result(name)),
          .body = *bytes,
          .headers = {
              {kPolicy, "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"}}};
}

}  // namespace

std::string new_token() { return hex_of(random_bytes(16)); }

struct PageServer::Server {
  explicit Server(PageOptions chosen)
      : options(std::move(chosen)),
        index(options.runs),
        sweeps(options.runs),
        chat(options.chat.pool ? std::make_unique<ChatEngine>(options.chat, options.log) : nullptr),
        threads(kThreads,
                [this](std::unique_ptr<http::Exchange> exchange) { answer(std::move(exchange)); }),
        http(options.host, options.port, kLimits, [this](std::unique_ptr<http::Exchange> exchange) {
          threads.take(std::move(exchange));
        }) {
    http.stop_time = std::chrono::seconds(1);
  }

  void answer(std::unique_ptr<http::Exchange> exchange) {
    Response response;
    try {
      const Request request(*exchange);
      if (const std::optional<Response> refusal = refused(request)) {
        response = *refusal;
      } else if (asks_a_model(request)) {
        const ChatModel model = asked_model(request);
        return chat->take(model.flags, std::move(exchange));
      } else {
        response = response_to(request);
      }
    } catch (const ApiError& error) {
      return respond_error(*exchange, error);
    } catch (const std::exception& error) {
      response = {.status = 500, .body = std::string(error.what()) + "\n"};
    }
    response.headers.emplace_back("Content-Type", response.type);
    for (const auto& header : kHeaders) response.headers.emplace_back(header);
    exchange->respond(response.status, response.headers, response.body);
  }

  bool asks_a_model(const Request& request) const {
    return chat && request.target.path == kChatPath && request.exchange.method() == "POST";
  }

  // Requires JSON: a page of another origin cannot send JSON without a CORS preflight, which this
  // server does not permit. Throws ApiError.
  ChatModel asked_model(const Request& request) {
    if (!request.header("content-type").starts_with("application/json"))
      throw ApiError(415, "the body must be JSON (Content-Type: application/json)");
    if (nested_deeper(request.exchange.body()))
      throw ApiError(400, "the body is nested too deeply");
    const std::string run = request.parameter("run");
    std::optional<ChatModel> found = index.chat_model(run);
    if (!found)
      throw ApiError(404, fmt::format("`{}` is no run here, or it has no model to ask", run),
                     "run");
    return *std::move(found);
  }

  Response response_to(const Request& request) {
    const std::string_view method = request.exchange.method();
    if (method != "GET" && method != "HEAD")
      return {.status = 405,
              .body = "this page is read with GET or HEAD\n",
              .headers = {{"Allow", "GET, HEAD"}}};
    const std::string& path = request.target.path;
    const std::string run = request.parameter("run");
    if (path == "/") return page(request);
    if (path == "/api/runs") return as_json({{"folder", options.runs.string()}, {"runs", list()}});
    if (path == "/api/curves") return as_json(index.curves(runs_of(request)));
    if (path == "/api/devices") return as_json(index.device_curves(run));
    if (path == "/api/run") return as_json(details(run));
    if (path == "/api/comparison") return as_json(index.comparison(runs_of(request)));
    if (path == "/api/samples") return as_json(index.samples(run, number_of(request, "step")));
    if (path == "/api/rollouts") return as_json(index.rollouts(run, number_of(request, "step")));
    if (path == "/api/log") return {.body = index.log(run, request.parameter("file"))};
    const std::string sweep = request.parameter("sweep");
    if (path == "/api/sweep") return as_json(sweeps.details(sweep));
    if (path == "/api/sweep/figure")
      return as_file("figure.svg", sweeps.figure_svg(sweep, request.has("log")));
    if (path == "/api/sweep/file") {
      const std::string file = request.parameter("file");
      return as_file(file, sweeps.file(sweep, file));
    }
    return {.status = 404, .body = "there is no such page\n"};
  }

  // Adds `chat`: the names of models that can be asked.
  json details(const std::string& run) {
    json found = index.details(run);
    if (const auto model = chat ? index.chat_model(run) : std::nullopt)
      found["chat"] = model->names;
    return found;
  }

  // Runs and sweeps, most recently changed first.
  std::vector<json> list() {
    std::vector<json> lines = index.list();
    for (json& line : sweeps.list()) lines.push_back(std::move(line));
    std::stable_sort(lines.begin(), lines.end(), [](const json& left, const json& right) {
      return left["updated"].get<double>() > right["updated"].get<double>();
    });
    return lines;
  }

  Response page(const Request& request) const {
    // From here on the cookie carries the token, so that it does not stay in the address.
    if (!options.token.empty() && request.has("token"))
      return {.status = 302,
              .headers = {{"Location", "/"},
                          {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/",
                                                     cookie_name(request), options.token)}}};
    // The page loads nothing from elsewhere, and injected content does not run: its own program and
    // style carry a nonce that only this answer has.
    const std::string nonce = new_token();
    return {.type = "text/html; charset=utf-8",
            .body = page_html(nonce),
            .headers = {{kPolicy, fmt::format("default-src 'none'; script-src 'nonce-{0}'; "
                                              "style-src 'nonce-{0}'; connect-src 'self'; "
                                              "img-src 'self' data:; base-uri 'none'; "
                                              "form-action 'none'",
                                              nonce)}}};
  }

  // The name contains the port, because cookies do not distinguish ports. It is the port that the
  // browser uses; a tunnel may have changed it.
  std::string cookie_name(const Request& request) const {
    const std::string port = http::read_host(request.exchange.header("host")).port;
    return "convoy_token_" + (port.empty() ? std::to_string(http.port()) : port);
  }

  // Refuses a request that a page of another site made the browser send. With a token, such a
  // request lacks it. Without a token, such a request shows in its Host header (DNS rebinding): the
  // header names the other site, never an IP address.
  std::optional<Response> refused(const Request& request) const {
    if (options.token.empty()) {
      const std::string host = http::read_host(request.exchange.header("host")).host;
      if (http::belongs_to_no_site(host) || host == options.host ||
          (is_every_address(options.host) && host == telemetry::host_name()))
        return std::nullopt;
      return Response{.status = 403,
                      .body = fmt::format("this page is served as {}\n", served_as())};
    }
    const std::string given = request.has("token") ? request.parameter("token")
                                                   : cookie_of(request, cookie_name(request));
    if (equal_in_constant_time(given, options.token)) return std::nullopt;
    return Response{
        .status = 401,
        .body = "open the address that `convoy runs serve` printed: it holds the token\n"};
  }

  // A host that listens on every address is shown by its name, because other machines cannot open
  // 0.0.0.0.
  std::string served_as() const {
    return is_every_address(options.host) ? telemetry::host_name()
                                          : http::in_brackets(options.host);
  }

  static constexpr std::pair<const char*, const char*> kHeaders[] = {
      {"Cache-Control", "no-store"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"}};

  PageOptions options;
  RunIndex index;
  SweepIndex sweeps;
  // The order matters: the end of `http` waits for answers of `threads`, and these use `chat`.
  std::unique_ptr<ChatEngine> chat;  // null: the page answers no questions
  http::HandlerThreads threads;
  http::Server http;
};

PageServer::PageServer(PageOptions options)
    : server_(std::make_unique<Server>(std::move(options))) {}

PageServer::~PageServer() = default;

int PageServer::port() const { return server_->http.port(); }

std::string PageServer::url() const {
  const std::string& token = server_->options.token;
  return fmt::format("http://{}:{}/{}", server_->served_as(), port(),
                     token.empty() ? "" : "?token=" + token);
}

}  // namespace convoy::page
