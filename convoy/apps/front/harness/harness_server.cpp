// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/harness_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/http/http_client.h"
#include "convoy/machine/processes/process_pool.h"

namespace convoy::apps {
namespace {

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr std::chrono::seconds kHarnessEndTime(10);
constexpr int kShownLines = 10;  // the end of a log
constexpr const char* kServerLog = "server.log";

// The address in the server's line "listening on http://..."; empty while there is none.
std::string listening_url(const std::string& log) {
  constexpr std::string_view kWords = "listening on ";
  const size_t at = log.find(kWords);
  if (at == std::string::npos) return {};
  const size_t begin = at + kWords.size();
  const size_t end = log.find_first_of(" \n", begin);
  return end == std::string::npos ? "" : log.substr(begin, end - begin);
}

[[noreturn]] void throw_error_of(const processes::ChildEnd& end, const std::string& log,
                                 const HarnessFolder& folder) {
  processes::ProcessDeath death;
  death.exit_code = end.exit_code;
  death.signal = end.signal;
  death.stderr_tail = log;
  if (const std::optional<Error> error = processes::own_error(death)) throw *error;
  throw StateError(
      fmt::format("the server of the model ended before it listened: {}", last_lines(log)),
      {.hint = fmt::format("read all messages in {}", folder.log(kServerLog))});
}

std::string fetched(const std::string& url, const HarnessFolder& folder) {
  const http::CurlLibrary curl;
  http::Client client(curl, {});
  http::RequestResult result = client.ask({.url = url}).get();
  if (result.end != http::RequestEnd::Whole || result.answer.status != 200)
    throw NetworkError(fmt::format("{} gave no answer: {}", url,
                                   result.end == http::RequestEnd::Whole
                                       ? fmt::format("status {}", result.answer.status)
                                       : result.why),
                       {.hint = fmt::format("read all messages in {}", folder.log(kServerLog))});
  return std::move(result.answer.body);
}

}  // namespace

std::string last_lines(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.size();
  for (int line = 0; line < kShownLines && begin != std::string::npos && begin > 0; ++line)
    begin = text.rfind('\n', begin - 1);
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

void end_process(const processes::ChildProcess& process) {
  processes::signal_group(process.pid, SIGTERM);
  if (!processes::ends_within(process, kHarnessEndTime))
    processes::signal_group(process.pid, SIGKILL);
  processes::wait_for_child(process.pid);
}

HarnessServer::HarnessServer(const std::filesystem::path& program,
                             const std::vector<std::string>& words, HarnessFolder folder,
                             const StopTest& stop)
    : folder_(std::move(folder)) {
  const std::filesystem::path log_file = folder_.path / kServerLog;
  const Descriptor log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!log.open())
    throw IoError(
        "the file cannot be written",
        {.file = log_file.string(), .hint = "name a folder that can be written by --output"});
  processes::ChildStart start{.program = {program.string(), "serve"}, .errors = log.get()};
  start.program.insert(start.program.end(), words.begin(), words.end());
  process_ = processes::start_child(start);
  while (url_.empty()) {
    if (stop()) {
      end_process(process_);
      throw StopRequest("stopped on request");
    }
    const bool ended = processes::ends_within(process_, kLookAgain);
    const std::string said = read_file(log_file.string());
    url_ = listening_url(said);
    if (url_.empty() && ended)
      throw_error_of(processes::wait_for_child(process_.pid), said, folder_);
  }
}

HarnessServer::~HarnessServer() { end_process(process_); }

int64_t HarnessServer::max_positions() const {
  const std::string root = url_.substr(0, url_.rfind("/v1"));
  const std::string url = root + "/tokenizer_info";
  const nlohmann::json told = nlohmann::json::parse(fetched(url, folder_), nullptr, false);
  if (!told.is_object() || !told.contains("model_max_length") ||
      !told["model_max_length"].is_number_integer())
    throw NetworkError(fmt::format("{} gave no model_max_length", url),
                       {.hint = fmt::format("read all messages in {}", folder_.log(kServerLog))});
  return told["model_max_length"];
}

}  // namespace convoy::apps
