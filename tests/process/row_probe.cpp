// SPDX-License-Identifier: Apache-2.0
//
// Runs all processes of a run with the no-op engine. `row_probe coordinate KEY=VALUE...` plans,
// starts workers and writes out.jsonl into its folder; its workers are `row_probe work` with the
// same words. The folder counts every token that any process has made, even if the process was
// killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/farm/process/ledger/finished_rows.h"
#include "convoy/farm/process/workers/row_supervisor.h"
#include "process/noop_engine.h"

namespace convoy::process {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Words {
  explicit Words(std::vector<std::string> all) : words(std::move(all)) {
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      CONVOY_CHECK(equals != std::string::npos, ConfigError, "'{}' is no KEY=VALUE", word);
      values[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  std::string text(const std::string& key, const std::string& usual) const {
    const auto found = values.find(key);
    return found == values.end() ? usual : found->second;
  }
  int64_t number(const std::string& key, int64_t usual) const {
    const auto found = values.find(key);
    return found == values.end() ? usual : std::atoll(found->second.c_str());
  }
  fs::path folder() const { return values.at("folder"); }
  std::string store() const { return text("store", (folder() / "ledger.db").string()); }

  std::vector<std::string> words;
  std::map<std::string, std::string> values;
};

SourceRow row_at(const Words& words, int64_t index) {
  const auto padding = static_cast<size_t>(words.number("row_bytes", 0));
  return {
      .source_index = index,
      .value = {{"problem", fmt::format("problem {}{}", index % 1'000, std::string(padding, '.'))},
                {"cost", index % 17}}};
}

NoopProgram program_of(const Words& words) {
  return NoopProgram({.candidates = static_cast<int>(words.number("samples", 2)),
                      .judges = words.number("judges", 1) != 0});
}

// Counts its texts in memory that survives a kill, and ends the process at a given text.
class ProbeEngine : public NoopEngine {
 public:
  ProbeEngine(const Words& words, int64_t worker)
      : NoopEngine(
            {.batch = words.number("batch", 16),
             .step_time = std::chrono::microseconds(
                 words.number("step_us", 0) *
                 (worker == words.number("slow_worker", -1) ? words.number("slow_factor", 4) : 1)),
             .tokens_per_step = words.number("tokens_per_step", 1),
             .min_tokens = words.number("min_tokens", 1),
             .max_tokens = words.number("max_tokens", 9)}),
        poison_(words.number("poison", -1)) {
    const int file =
        ::open((words.folder() / "tokens").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CONVOY_CHECK(file >= 0 && ::ftruncate(file, sizeof(int64_t)) == 0, IoError, "no counter");
    made_ = static_cast<std::atomic<int64_t>*>(
        ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
  }
  void submit(TextRequest request) override {
    if (request.draw.row == poison_) ::raise(SIGSEGV);
    NoopEngine::submit(std::move(request));
  }
  std::vector<TextResult> step() override {
    const int64_t before = figures().decode_tokens;
    std::vector<TextResult> results = NoopEngine::step();
    *made_ += figures().decode_tokens - before;
    return results;
  }

 private:
  int64_t poison_;
  std::atomic<int64_t>* made_;
};

int64_t peak_kib(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return usage.ru_maxrss;
}

int work(const Words& words) {
  const char* const number = std::getenv("PROBE_WORKER");
  CONVOY_CHECK(words.number("broken", 0) == 0, DataError, "this worker is broken");
  run_row_worker_process(WorkerAssignment::take_from_environment(), [&] {
    return WorkerEquipment{std::make_unique<NoopProgram>(program_of(words)),
                           std::make_unique<ProbeEngine>(words, std::atoll(number))};
  });
  return 0;
}

FinishedPass publish(jobs::JobStore& store, const RowRun& run, const fs::path& path) {
  AtomicFile file(path);
  std::string buffer;
  const FinishedPass pass = for_each_finished(store, run, [&](PublishedRow& row) {
    buffer += fmt::format("{} {} {}\n", row.stored.index, row.stored.row.state,
                          row.stored.row.value.dump());
    if (buffer.size() < (1 << 20)) return;
    file.write(buffer);
    buffer.clear();
  });
  file.write(buffer);
  if (pass.reopened == 0) file.commit();
  return pass;
}

RowRun planned(jobs::JobStore& store, const Words& words) {
  PlanRequest request;
  request.run = {.name = words.text("name", "probe"), .folder = words.folder() / "run"};
  request.run.configuration = {{"samples", words.number("samples", 2)}};
  const int64_t count = words.number("rows", 0);
  request.run.texts_in_store = words.number("texts_in_store", 0) != 0;
  if (words.number("node_rank", 0) == 0 || !request.run.texts_in_store)
    request.run.data_hash = std::to_string(count);
  if (words.number("node_rank", 0) > 0)
    return wait_for_plan(
        store, request.run, std::chrono::seconds(60), [] { return true; }, Log());
  request.rows = [&, next = int64_t{0}, count]() mutable -> std::optional<SourceRow> {
    if (next == count) return std::nullopt;
    return row_at(words, next++);
  };
  if (words.number("longest_first", 0) != 0)
    request.expected_cost = [](const InputRow& row) -> int64_t { return row.value.at("cost"); };
  return plan_rows(store, request);
}

int coordinate(const Words& words, const std::string& self) {
  fs::create_directories(words.folder());
  const auto store = jobs::open_store(words.store());
  const auto begin = std::chrono::steady_clock::now();
  const RowRun run = planned(*store, words);
  const double plan_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RowSupervisorOptions options;
  options.worker_command = {self, "work"};
  options.worker_command.insert(options.worker_command.end(), words.words.begin(),
                                words.words.end());
  options.workers = words.number("workers", 1);
  for (int64_t worker = 0; worker < options.workers; ++worker)
    options.environment.push_back({{"PROBE_WORKER", std::to_string(worker)}});
  options.log = Log(words.number("quiet", 1) != 0 ? LogLevel::Quiet : LogLevel::Normal);
  const WorkerAssignment task{.store = words.store(),
                              .run = run,
                              .rows_in_flight = words.number("rows_in_flight", 16),
                              .num_workers = words.number("all_workers", options.workers),
                              .lease_ms = words.number("lease_ms", 60'000)};
  double publish_seconds = 0;
  json report;
  for (;;) {
    const RowSupervisorReport end = run_rows(options, task);
    if (end.stop_signal != 0) return static_cast<int>(ExitCode::Stopped);
    report["seconds"] = end.seconds;
    report["rows"] = end.work.rows;
    report["deaths"] = end.deaths;
    for (const auto& [worker, figures] : end.each)
      report["each"][std::to_string(worker)] = figures.rows;
    if (words.number("node_rank", 0) > 0) break;
    const auto publish_begin = std::chrono::steady_clock::now();
    const bool whole = publish(*store, run, words.folder() / "out.jsonl").reopened == 0;
    publish_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - publish_begin).count();
    if (whole) break;
  }
  report["plan_seconds"] = plan_seconds;
  report["publish_seconds"] = publish_seconds;
  report["coordinator_kib"] = peak_kib(RUSAGE_SELF);
  report["largest_worker_kib"] = peak_kib(RUSAGE_CHILDREN);
  fmt::print("{}\n", report.dump());
  return 0;
}

}  // namespace
}  // namespace convoy::process

int main(int count, char** arguments) {
  const std::vector<std::string> all(arguments, arguments + count);
  try {
    CONVOY_CHECK(count >= 2, ConfigError, "row_probe coordinate|work KEY=VALUE...");
    const convoy::process::Words words({all.begin() + 2, all.end()});
    return all[1] == "work" ? convoy::process::work(words)
                            : convoy::process::coordinate(words, all[0]);
  } catch (const convoy::Error& error) {
    fmt::print(stderr, "{}\n{}\n", error.sentence(), error.json_line());
    return static_cast<int>(error.code());
  }
}
