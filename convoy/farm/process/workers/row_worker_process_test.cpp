// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/row_worker_process.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

TEST(WorkerStatus, IsALineThatIsReadBack) {
  WorkerStatus status;
  status.worker.rows = 3;
  status.worker.new_tokens = int64_t{1} << 40;
  status.worker.not_begun = {7, 8};
  status.engine.running = 5;
  status.engine.kv_use = 0.25;
  const std::string line = status.line();
  ASSERT_EQ(line.find('\n'), line.size() - 1);
  const std::optional<WorkerStatus> read = WorkerStatus::parse(line.substr(0, line.size() - 1));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->worker.rows, 3);
  EXPECT_EQ(read->worker.new_tokens, int64_t{1} << 40);
  EXPECT_EQ(read->worker.not_begun, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(read->engine.running, 5);
  EXPECT_EQ(read->engine.kv_use, 0.25);
  EXPECT_EQ(read->line(), line);
}

TEST(WorkerStatus, OtherLinesAreNone) {
  for (const char* const line : {"", "figures", "figures {", "figures []", "figures {\"rows\":1}",
                                 "figures {\"rows\":\"x\"}", "loading the model"})
    EXPECT_FALSE(WorkerStatus::parse(line)) << line;
}

TEST(WorkerAssignment, GoesThroughTheEnvironmentAndIsTakenOutOfIt) {
  const WorkerAssignment task{.store = "postgresql://u:secret@h/db",
                              .run = {.group = 4, .folder = "/a folder/run", .rows = 9},
                              .rows_in_flight = 5,
                              .num_workers = 3,
                              .lease_ms = 7'000,
                              .max_tries = 2};
  for (const auto& [name, value] : task.environment()) ::setenv(name.c_str(), value.c_str(), 1);
  const WorkerAssignment taken = WorkerAssignment::take_from_environment();
  EXPECT_EQ(taken.environment(), task.environment());
  EXPECT_THROW(WorkerAssignment::take_from_environment(), ConfigError);
  ::setenv("CONVOY_PROCESS_STORE", "s", 1);
  ::setenv("CONVOY_PROCESS_TASK", "{\"group\":1}", 1);
  EXPECT_THROW(WorkerAssignment::take_from_environment(), ConfigError);
}

TEST(NoteLine, IsReadBackAndNoOtherLineIs) {
  EXPECT_EQ(note_line("a server is away"), "note a server is away\n");
  EXPECT_EQ(parse_note("note a server is away"), "a server is away");
  EXPECT_FALSE(parse_note(WorkerStatus().line()));
}

}  // namespace
}  // namespace convoy::process
