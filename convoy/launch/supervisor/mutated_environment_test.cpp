// SPDX-License-Identifier: Apache-2.0
//
// Damaged variables of outer schedulers and launchers are accepted or refused as a ConfigError, and
// --explain can print both.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/launch/logs/log_options.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/place/host_list.h"
#include "convoy/launch/place/variables.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/launch/supervisor/health/file_timers.h"
#include "convoy/launch/supervisor/rdzv_conf.h"
#include "convoy/machine/processes/signals.h"
#include "files/mutated_texts.h"

namespace convoy::launch {
namespace {

using testing::MutatedTexts;

struct Outcome {
  int taken = 0, refused = 0;
};

template <class Reading>
void count(Outcome& outcome, const Reading& reading) {
  try {
    reading();
    ++outcome.taken;
  } catch (const ConfigError&) {
    ++outcome.refused;
  }
}

TEST(MutatedEnvironment, IsUnderstoodOrRefusedAndExplained) {
  const std::vector<Environment> whole = {{{"SLURM_JOB_ID", "123456"},
                                           {"SLURM_JOB_NODELIST", "gpu[08-12]"},
                                           {"SLURM_STEP_ID", "0"},
                                           {"SLURM_STEP_NODELIST", "gpu[09-12]"},
                                           {"SLURM_STEP_NUM_NODES", "4"},
                                           {"SLURM_STEP_NUM_TASKS", "7"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                                           {"SLURM_PROCID", "5"},
                                           {"SLURM_LOCALID", "1"},
                                           {"SLURM_NODEID", "2"},
                                           {"SLURM_GTIDS", "4,5"}},
                                          {{"TORCHELASTIC_RUN_ID", "none"},
                                           {"RANK", "3"},
                                           {"WORLD_SIZE", "4"},
                                           {"LOCAL_RANK", "1"},
                                           {"LOCAL_WORLD_SIZE", "2"},
                                           {"GROUP_RANK", "1"},
                                           {"GROUP_WORLD_SIZE", "2"},
                                           {"MASTER_ADDR", "head"},
                                           {"MASTER_PORT", "29511"}},
                                          {{"OMPI_COMM_WORLD_RANK", "3"},
                                           {"OMPI_COMM_WORLD_SIZE", "4"},
                                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                           {"PMIX_RANK", "3"},
                                           {"MASTER_ADDR", "head"}},
                                          {{"PET_NNODES", "1:4"},
                                           {"PET_NODE_RANK", "2"},
                                           {"PET_MASTER_ADDR", "head"},
                                           {"PET_MASTER_PORT", "1"}}};
  MutatedTexts values({"0", "1", "4", "4294967294", "gpu[08-12]", "2(x3),1", "head:29500", "1:4"});
  std::mt19937 random(3);
  Outcome outcome;
  for (int round = 0; round < 3000; ++round) {
    Environment environment = whole[static_cast<size_t>(round) % whole.size()];
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const auto& names = Variables::all();
      auto at = environment.begin();
      std::advance(at, random() % environment.size());
      if (random() % 4 == 0) at = environment.emplace(names[random() % names.size()], "").first;
      at->second = values.next();
    }
    count(outcome, [&] {
      try {
        const ResolvedPlace place = resolve_place(environment);
        EXPECT_TRUE(nlohmann::json::accept(explain_json(place)));
        explain_text(place);
      } catch (const ConfigError& error) {
        EXPECT_TRUE(nlohmann::json::accept(explain_refusal_json(environment, error.what())));
        throw;
      }
    });
  }
  EXPECT_GT(outcome.taken, 100);
  EXPECT_GT(outcome.refused, 100);
}

TEST(MutatedEnvironment, ListsOfHostsAndValuesOfFlags) {
  MutatedTexts texts(
      {"node[01-03,7],gpu-[a,b]x[1-2]", "2(x3),1(x2),4", "[fe80::1]:29500",
       "join_timeout=600,keep_alive_interval=5,keep_alive_max_attempt=3,is_host=True", "0:3,12:1",
       "0,1,2", "apple,a,,b", "SIGTERM,SIGUSR1,INT"});
  Outcome outcome;
  for (int round = 0; round < 1500; ++round) {
    const std::string text = texts.next();
    count(outcome, [&] { EXPECT_LE(expand_host_list(text, "LIST").size(), 100'000u); });
    count(outcome, [&] { EXPECT_LE(expand_counts(text, "LIST").size(), 100'000u); });
    count(outcome, [&] {
      const rendezvous::Endpoint endpoint = rendezvous::parse_endpoint(text, 29500, "the endpoint");
      EXPECT_TRUE(endpoint.port >= 0 && endpoint.port <= 65535 && !endpoint.host.empty());
    });
    count(outcome, [&] { EXPECT_GT(parse_rendezvous_conf(text).silence_limit.count(), 0); });
    count(outcome, [&] { StreamSelection::parse(text, "--tee").contains(3, Stream::Output); });
    count(outcome, [&] { parse_local_ranks_filter(text); });
    count(outcome, [&] { parse_line_filters(text, "--filter"); });
    count(outcome, [&] { processes::parse_signals(text); });
  }
  EXPECT_GT(outcome.taken, 100);
  EXPECT_GT(outcome.refused, 100);
}

// Ranks write the lines of timers. A line that is no timer is dropped, and nothing is thrown.
TEST(MutatedEnvironment, TimersOfRanks) {
  MutatedTexts texts(
      {R"({"version": 1, "pid": 7, "scope_id": "step", "expiration_time": 100.5, "signal": 9})"
       "\n"
       R"({"pid": 8, "scope_id": "step", "expiration_time": -1, "signal": 0})"
       "\n"});
  FileTimers timers;
  int expired = 0, damaged = 0;
  for (int round = 0; round < 3000; ++round) {
    timers.take(texts.next() + "\n");
    damaged += timers.damaged_line() ? 1 : 0;
    for (const TimerExpiry& expiry : timers.expired(200.0)) {
      EXPECT_GT(expiry.pid, 0);
      EXPECT_TRUE(expiry.signal >= 0 && expiry.signal <= 64);
      ++expired;
    }
  }
  EXPECT_GT(expired, 100);
  EXPECT_GT(damaged, 100);
}

}  // namespace
}  // namespace convoy::launch
