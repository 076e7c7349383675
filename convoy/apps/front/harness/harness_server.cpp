// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/harness_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/http/http_client.h"

namespace convoy::apps {
namespace {

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr std::chrono::seconds kServerEndTime(10);

// The address in the server's line "listening on http://..."; empty while there is none.
std::string listening_url(const std::string& log) {
  constexpr std::string_view kWords = "listening on ";
  const size_t at = log.find(kWords);
  if (at == std::string::npos) return {};
  const size_t begin = at + kWords.size();
  const size_t end = log.find_first_of(" \n", begin);
  return end == std::string::npos ? "" : log.substr(begin, end - begin);
}

// The last line of a command that failed tells the error as JSON.
[[noreturn]] void throw_error_of(const std::string& log, const std::filesystem::path& log_file) {
  const size_t at = log.rfind("{\"code\"");
  const auto line = nlohmann::json::parse(at == std::string::npos ? "" : log.substr(at), nullptr,
                                          /*allow_exceptions=*/false);
  if (!line.is_object())
    throw StateError("the server of the model ended before it listened",
                     {.file = log_file.string(), .hint = "read its messages in that file"});
  throw Error(static_cast<ExitCode>(line.value("code", 70)), line.value("kind", "bug"),
              line.value("message", ""),
              {.file = line.value("file", ""), .hint = line.value("hint", "")});
}

std::string fetched(const std::string& url) {
  const http::CurlLibrary curl;
  http::Client client(curl, {});
  std::promise<http::RequestResult> ended;
  client.send({.url = url},
              [&ended](http::RequestResult result) { ended.set_value(std::move(result)); });
  http::RequestResult result = ended.get_future().get();
  if (result.end != http::RequestEnd::Whole || result.answer.status != 200)
    throw StateError(fmt::format("{} gave no answer: {}", url, result.why));
  return std::move(result.answer.body);
}

}  // namespace

HarnessServer::HarnessServer(const std::filesystem::path& program,
                             const std::vector<std::string>& words,
                             const std::filesystem::path& log_file) {
  const Descriptor log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!log.open())
    throw IoError(
        "the file cannot be written",
        {.file = log_file.string(), .hint = "name a folder that can be written by --output"});
  processes::ChildStart start{.program = {program.string(), "serve"}, .errors = log.get()};
  start.program.insert(start.program.end(), words.begin(), words.end());
  process_ = processes::start_child(start);
  while (url_.empty()) {
    const bool ended = processes::ends_within(process_, kLookAgain);
    const std::string said = read_file(log_file.string());
    url_ = listening_url(said);
    if (url_.empty() && ended) throw_error_of(said, log_file);
  }
}

HarnessServer::~HarnessServer() {
  processes::signal_group(process_.pid, SIGTERM);
  if (!processes::ends_within(process_, kServerEndTime))
    processes::signal_group(process_.pid, SIGKILL);
  processes::wait_for_child(process_.pid);
}

int64_t HarnessServer::max_positions() const {
  const std::string root = url_.substr(0, url_.rfind("/v1"));
  return nlohmann::json::parse(fetched(root + "/tokenizer_info")).at("model_max_length");
}

}  // namespace convoy::apps
