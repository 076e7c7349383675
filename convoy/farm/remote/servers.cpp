// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/servers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/base/utf8.h"
#include "convoy/farm/remote/server_answer.h"

namespace convoy::remote {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostQuoted = 400;
constexpr const char* kCreditHint =
    "the account of this key cannot pay: add credit, then run the same command again";
constexpr const char* kKeyHint = "put the server's key into CONVOY_ENGINE_KEY";

struct HostAndPort {
  std::string host;
  std::string port = "80";  // where none is written
};

// `rest`: what follows "http://".
HostAndPort host_and_port(std::string_view rest) {
  const std::string_view both = rest.substr(0, rest.find('/'));
  const size_t colon = both.rfind(':');
  const size_t bracket = both.rfind(']');  // ends an address of IPv6
  if (colon == both.npos || (bracket != both.npos && colon < bracket))
    return {.host = std::string(both)};
  return {.host = std::string(both.substr(0, colon)), .port = std::string(both.substr(colon + 1))};
}

bool is_port(const std::string& text) {
  const auto port = text_as<int64_t>(text);
  return port && *port >= 1 && *port <= 65535;
}

std::string checked_address(std::string address) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw ConfigError(why, {.key = "--engine", .hint = hint});
  };
  const size_t scheme = address.find("://");
  if (!address.starts_with("http://") && !address.starts_with("https://"))
    // The address is not quoted if it may hold a password.
    refuse(address.find('@') == std::string::npos
               ? fmt::format("`{}` is no http:// or https:// address", address)
               : "an address of --engine is no http:// or https:// address",
           "write it as http://HOST:PORT/v1");
  const std::string_view rest = std::string_view(address).substr(scheme + 3);
  if (rest.find('@') != rest.npos || rest.find('?') != rest.npos || rest.find('#') != rest.npos)
    refuse("an address of --engine holds more than host, port and path",
           "take a key out of the address; CONVOY_ENGINE_KEY holds it");
  const bool has_space =
      std::any_of(rest.begin(), rest.end(), [](unsigned char letter) { return letter <= ' '; });
  if (has_space)
    refuse(fmt::format("`{}` has white space", address), "write it as http://HOST:PORT/v1");
  const auto [host, port] = host_and_port(rest);
  if (host.empty() || host == "[]")
    refuse(fmt::format("`{}` has no host", address), "write it as http://HOST:PORT/v1");
  if (!is_port(port))
    refuse(fmt::format("`{}` has no port of 1 to 65535: `{}`", address, port),
           "write it as http://HOST:PORT/v1");
  while (address.ends_with('/')) address.pop_back();
  return address;
}

std::string key_from_environment() {
  for (const char* name : {"CONVOY_ENGINE_KEY", "OPENAI_API_KEY"}) {
    const std::string value = environment_text(name);
    const std::string key(trimmed(value, " \t\r\n"));
    // The key becomes part of a header. A line break in the key would start another header.
    if (std::any_of(key.begin(), key.end(), [](unsigned char c) { return c <= ' ' || c >= 127; }))
      throw ConfigError(
          fmt::format("{} holds no key: wanted letters and digits without spaces", name),
          {.key = name, .hint = "copy the key again"});
    if (!key.empty()) return key;
  }
  return {};
}

std::vector<std::string> model_names(const Json& list) {
  std::vector<std::string> names;
  if (!list.is_object() || !list.contains("data") || !list["data"].is_array()) return names;
  for (const Json& model : list["data"])
    if (model.is_object() && model.contains("id") && model["id"].is_string())
      names.push_back(model["id"]);
  return names;
}

// Throws if the server's list of models shows that the server cannot answer any request. Returns
// the reason why the server did not answer; empty if it did.
std::string problem_of(const Servers& servers, const std::string& address,
                       const http::RequestResult& result) {
  if (result.end != http::RequestEnd::Whole) return result.why;
  const int status = result.answer.status;
  // A server without a list of models is used without this check.
  if (status == 404 || status == 405 || status == 501) return {};
  if (sense_of(result.answer) == AnswerSense::OfCredit)
    refuse_answer(servers, address, result.answer);
  if (status == 429 || status >= 500)
    return fmt::format("status {}: {}", status, error_message(servers, result.answer));
  if (status != 200) refuse_answer(servers, address, result.answer);
  const Json list = Json::parse(result.answer.body, nullptr, false);
  if (list.is_discarded()) return "its list of models is no JSON";
  const std::vector<std::string> names = model_names(list);
  if (names.empty() || std::find(names.begin(), names.end(), servers.model) != names.end())
    return {};
  throw ConfigError(
      fmt::format("{} has no model `{}`; it has {}", address, servers.model,
                  servers.quoted(fmt::format("{}", fmt::join(names, ", ")))),
      {.key = "--engine-model", .hint = fmt::format("--engine-model {}", names.front())});
}

}  // namespace

std::vector<std::string> Servers::headers() const {
  std::vector<std::string> lines = {"Content-Type: application/json"};
  if (!key.empty()) lines.push_back("Authorization: Bearer " + key);
  return lines;
}

std::string Servers::quoted(std::string_view text) const {
  std::string line(trimmed(text, " \t\r\n"));
  // The search continues after the stars, because a key may be a part of them, such as `*`.
  constexpr std::string_view kStars = "***";
  for (size_t at = line.find(key); !key.empty() && at != line.npos;
       at = line.find(key, at + kStars.size()))
    line.replace(at, key.size(), kStars);
  if (const auto end = find_invalid_utf8(line)) line.resize(*end);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
  if (cut_to_characters(line, kMostQuoted)) line += "...";
  return line;
}

http::ClientLimits Servers::limits() const {
  return {.whole_time = std::chrono::seconds(timeout_s),
          .certificates = http::trusted_certificates()};
}

Servers read_servers(const settings::RemoteSettings& settings, const std::string& model) {
  Servers servers{.model = settings.engine_model.empty() ? model : settings.engine_model,
                  .key = key_from_environment(),
                  .timeout_s = settings.engine_timeout};
  for (const std::string& address : settings.engine)
    servers.addresses.push_back(checked_address(address));
  if (servers.model.empty())
    throw ConfigError("no model given", {.key = "--engine-model",
                                         .hint = "--engine-model NAME, as the server calls it"});
  return servers;
}

std::string error_message(const Servers& servers, const http::Answer& answer) {
  const Json body = Json::parse(answer.body, nullptr, false);
  const Json* message = body.is_object() ? &body : nullptr;
  // The message is in {"error": {"message"}} for OpenAI, {"error"} for llama.cpp, {"message"} for
  // vLLM and {"detail"} for FastAPI.
  for (const char* name : {"error", "message", "detail"})
    if (message != nullptr && message->is_object() && message->contains(name))
      message = &message->at(name);
  if (message != nullptr && message->is_string())
    return servers.quoted(message->get<std::string>());
  return answer.body.empty() ? "no message" : servers.quoted(answer.body);
}

void refuse_answer(const Servers& servers, const std::string& address, const http::Answer& answer) {
  const std::string message = fmt::format("{} answers with status {}: {}", address, answer.status,
                                          error_message(servers, answer));
  if (sense_of(answer) == AnswerSense::OfCredit)
    throw ConfigError(message, {.key = "--engine", .hint = kCreditHint});
  if (answer.status == 401 || answer.status == 403)
    throw ConfigError(message, {.key = "--engine", .hint = kKeyHint});
  if (sense_of(answer) == AnswerSense::OfAddress && answer.status >= 400)
    throw ConfigError(message,
                      {.key = "--engine",
                       .hint = "check --engine-model and the address, which mostly ends in /v1"});
  if (answer.status < 400)
    throw ConfigError(message, {.key = "--engine",
                                .hint = fmt::format("name the address that it leads to: {}",
                                                    servers.quoted(answer.header("location")))});
  throw ConfigError(message, {.key = "--engine",
                              .hint = "the server refuses what the request holds: leave out the "
                                      "setting that it names, or take another --engine-model"});
}

void look_at_servers(const Servers& servers, http::Client& client, const Log& log) {
  std::vector<std::future<http::RequestResult>> results;
  for (const std::string& address : servers.addresses)
    results.push_back(client.ask({.url = address + "/models", .headers = servers.headers()}));
  std::string problems;
  size_t silent = 0;
  for (size_t server = 0; server < results.size(); ++server) {
    const std::string& address = servers.addresses[server];
    const std::string problem = problem_of(servers, address, results[server].get());
    if (problem.empty()) continue;
    ++silent;
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", address, problem);
  }
  if (silent == results.size())
    throw NetworkError("no server of --engine answers: " + problems,
                       {.key = "--engine", .hint = "start it, or check address and network"});
  if (silent > 0) log.warning("not all servers of --engine answer: " + problems);
}

}  // namespace convoy::remote
