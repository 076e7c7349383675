// SPDX-License-Identifier: Apache-2.0
#include "convoy/page/page_server.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/page/http_server.h"
#include "convoy/page/page_assets.h"
#include "convoy/page/result_files.h"
#include "convoy/page/run_index.h"
#include "convoy/page/sweep_index.h"

namespace convoy::page {
namespace {

using nlohmann::json;

constexpr std::string_view kCookie = "convoy_token=";

std::string host_of(const std::string& header) {
  if (header.starts_with('[')) return header.substr(0, header.find(']') + 1);
  return header.substr(0, header.find(':'));
}

// All bytes are compared, whatever the first difference.
bool equal_in_constant_time(const std::string& left, const std::string& right) {
  if (left.size() != right.size()) return false;
  unsigned difference = 0;
  for (size_t at = 0; at < left.size(); ++at)
    difference |= static_cast<unsigned char>(left[at] ^ right[at]);
  return difference == 0;
}

std::string cookie_of(const HttpRequest& request) {
  const std::string cookies = request.header("cookie");
  const size_t at = cookies.find(kCookie);
  if (at == std::string::npos) return {};
  const size_t begin = at + kCookie.size();
  return cookies.substr(begin, cookies.find(';', begin) - begin);
}

std::vector<std::string> runs_of(const HttpRequest& request) {
  std::vector<std::string> names;
  const auto [begin, end] = request.query.equal_range("run");
  for (auto run = begin; run != end; ++run) names.push_back(run->second);
  return names;
}

int64_t number_of(const HttpRequest& request, const char* name) {
  const std::string text = request.parameter(name);
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return 0;
  return std::stoll(text);
}

HttpResponse as_json(const json& value) {
  return {.type = "application/json",
          .body = value.dump(-1, ' ', false, json::error_handler_t::replace)};
}

// A figure is drawn by whatever program wrote it: opened on its own it may run nothing and ask for nothing.
HttpResponse as_file(const std::string& name, const std::optional<std::string>& bytes) {
  if (!bytes) return {.status = 404, .body = "there is no such file\n"};
  return {.type = std::string(type_of_result(name)),
          .body = *bytes,
          .headers = {{"Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"}}};
}

}  // namespace

std::string new_token() {
  std::ifstream random("/dev/urandom", std::ios::binary);
  std::string token;
  for (int byte = 0; byte < 16; ++byte)
    token += fmt::format("{:02x}", static_cast<unsigned char>(random.get()));
  CONVOY_CHECK(random.good(), IoError, "/dev/urandom can not be read");
  return token;
}

struct PageServer::Server {
  explicit Server(PageOptions chosen)
      : options(std::move(chosen)),
        index(options.runs),
        sweeps(options.runs),
        http(options.host, options.port, [this](const HttpRequest& request) {
          HttpResponse response = answer(request);
          // Where an answer has a policy of its own, a browser keeps to both.
          for (const auto& header : kHeaders) response.headers.emplace_back(header);
          return response;
        }) {}

  HttpResponse answer(const HttpRequest& request) {
    if (auto refusal = refused(request)) return *refusal;
    const std::string& path = request.path;
    const std::string run = request.parameter("run");
    if (path == "/") return page(request);
    if (path == "/api/runs") return as_json({{"folder", options.runs.string()}, {"runs", list()}});
    if (path == "/api/curves") return as_json(index.curves(runs_of(request)));
    if (path == "/api/devices") return as_json(index.device_curves(run));
    if (path == "/api/run") return as_json(index.details(run));
    if (path == "/api/comparison") return as_json(index.comparison(runs_of(request)));
    if (path == "/api/samples") return as_json(index.samples(run, number_of(request, "step")));
    if (path == "/api/log") return {.body = index.log(run, request.parameter("file"))};
    const std::string sweep = request.parameter("sweep");
    if (path == "/api/sweep") return as_json(sweeps.details(sweep));
    if (path == "/api/sweep/figure")
      return as_file("figure.svg", sweeps.figure_svg(sweep, request.query.contains("log")));
    if (path == "/api/sweep/file") {
      const std::string file = request.parameter("file");
      return as_file(file, sweeps.file(sweep, file));
    }
    return {.status = 404, .body = "there is no such page\n"};
  }

  // Runs and sweeps, those that changed last first.
  std::vector<json> list() {
    std::vector<json> lines = index.list();
    for (json& line : sweeps.list()) lines.push_back(std::move(line));
    std::stable_sort(lines.begin(), lines.end(), [](const json& left, const json& right) {
      return left["updated"].get<double>() > right["updated"].get<double>();
    });
    return lines;
  }

  HttpResponse page(const HttpRequest& request) const {
    // From here on the cookie carries the token, so that it does not stay in the address.
    if (!options.token.empty() && request.query.contains("token"))
      return {.status = 302,
              .headers = {{"Location", "/"},
                          {"Set-Cookie", fmt::format("{}{}; HttpOnly; SameSite=Strict; Path=/",
                                                     kCookie, options.token)}}};
    return {.type = "text/html; charset=utf-8", .body = std::string(page_html())};
  }

  // A page elsewhere can make a browser ask this server, but not under this host's name, nor with the token.
  std::optional<HttpResponse> refused(const HttpRequest& request) const {
    const std::string host = host_of(request.header("host"));
    if (host != options.host && host != "localhost" && host != "127.0.0.1" && host != "[::1]")
      return HttpResponse{.status = 403,
                          .body = fmt::format("this page is served as {}\n", options.host)};
    const std::string given =
        request.query.contains("token") ? request.parameter("token") : cookie_of(request);
    if (options.token.empty() || equal_in_constant_time(given, options.token)) return std::nullopt;
    return HttpResponse{
        .status = 401,
        .body = "open the address that `convoy runs serve` printed: it holds the token\n"};
  }

  // Nothing of the page comes from elsewhere.
  static constexpr std::pair<const char*, const char*> kHeaders[] = {
      {"Cache-Control", "no-store"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src "
       "'self'; img-src 'self' data:"}};

  PageOptions options;
  RunIndex index;
  SweepIndex sweeps;
  HttpServer http;
};

PageServer::PageServer(PageOptions options)
    : server_(std::make_unique<Server>(std::move(options))) {}

PageServer::~PageServer() = default;

int PageServer::port() const { return server_->http.port(); }

std::string PageServer::url() const {
  const std::string& token = server_->options.token;
  return fmt::format("http://{}:{}/{}", server_->options.host, port(),
                     token.empty() ? "" : "?token=" + token);
}

void PageServer::run() { server_->http.run(); }

void PageServer::stop() { server_->http.stop(); }

}  // namespace convoy::page
