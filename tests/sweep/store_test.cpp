// SPDX-License-Identifier: Apache-2.0
//
// Tests stores that cannot be used, and two runners on one store.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"
#include "sweep/sweep_process.h"

namespace convoy::testing {
namespace {

using nlohmann::json;

class SweepStore : public SweepTest {};

const std::vector<std::string> kSmall = {"ssm", "--num-seeds",       "2",      "--student-dims",
                                         "20",  "--gnc-num-samples", "100000", "--workers",
                                         "2"};

std::vector<std::string> small(const std::vector<std::string>& more) {
  std::vector<std::string> words = kSmall;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(SweepStore, AFolderThatMayNotBeWrittenIsSaidAtOnce) {
  const SweepEnd end = run_with_mounts("mkdir -p locked && mount -t tmpfs -o ro none locked",
                                       small({"--results-dir", "locked"}));
  if (end.status == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_EQ(json::parse(end.last_line())["kind"], "io") << end.errors;
  EXPECT_TRUE(end.output.empty()) << end.output;
}

// Tables are written at the end of a sweep, so a folder that cannot be written is refused at the
// start.
TEST_F(SweepStore, AFolderOfTablesThatMayNotBeWrittenIsSaidAtOnce) {
  for (const char* const flag : {"--results-dir", "--figures-dir", "--log-dir"}) {
    const SweepEnd end = run_with_mounts("mkdir -p locked && mount -t tmpfs -o ro none locked",
                                         small({"--store", "here.db", flag, "locked"}));
    if (end.status == 77) GTEST_SKIP() << "no mount namespaces here";
    EXPECT_EQ(end.status, 12) << end.errors;
    const json last = json::parse(end.last_line());
    EXPECT_EQ(last["kind"], "io") << end.errors;
    EXPECT_NE(last["message"].get<std::string>().find(flag), std::string::npos) << end.errors;
    EXPECT_FALSE(std::filesystem::exists(path("here.db"))) << flag;
  }
}

TEST_F(SweepStore, AFullDiskEndsTheRunWithoutANumber) {
  const SweepEnd end = run_with_mounts("mkdir -p full && mount -t tmpfs -o size=96k none full",
                                       small({"--results-dir", "full"}));
  if (end.status == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(end.status, 12) << end.errors;
  EXPECT_EQ(json::parse(end.last_line())["kind"], "io") << end.errors;
  EXPECT_TRUE(end.output.empty()) << end.output;
}

TEST_F(SweepStore, AStoreThatHoldsNothingIsABadFileHoweverItIsEmpty) {
  write("empty.db", "");
  jobs::open_store(text("no-sweep.db"));
  for (const char* const store : {"missing.db", "empty.db", "no-sweep.db"})
    for (const char* const action : {"show", "plot", "export"}) {
      const SweepEnd end = run({action, "--store", store});
      EXPECT_EQ(end.status, 10) << store << end.errors;
      EXPECT_NE(end.errors.find(store), std::string::npos) << end.errors;
    }
}

TEST_F(SweepStore, AFlippedByteIsNoResult) {
  ASSERT_EQ(run(small({})).status, 0);
  std::string bytes;
  {
    std::ifstream file(path("results/sweep.db"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = bytes.find("\"accepted\":");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 12] = bytes[at + 12] == '7' ? '8' : '7';
  write("results/sweep.db", bytes);
  const SweepEnd end = run({"show"});
  EXPECT_EQ(end.status, 10) << end.errors;
  EXPECT_NE(end.errors.find("sweep.db"), std::string::npos) << end.errors;
}

TEST_F(SweepStore, RecoverKeepsWhatIsSoundAndTheSweepComputesTheRest) {
  ASSERT_EQ(run(small({"--num-seeds", "6"})).status, 0);
  const std::string wanted = run({"export", "--format", "wide"}).output;
  std::string bytes;
  {
    std::ifstream file(path("results/sweep.db"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = bytes.find("\"accepted\":");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 12] = bytes[at + 12] == '7' ? '8' : '7';
  write("results/sweep.db", bytes);
  const SweepEnd refused = run(small({"--num-seeds", "6"}));
  EXPECT_EQ(refused.status, 10) << refused.errors;
  EXPECT_NE(refused.errors.find("convoy sweep recover --store"), std::string::npos)
      << refused.errors;
  const SweepEnd recovered = run({"recover"});
  EXPECT_EQ(recovered.status, 0) << recovered.errors;
  EXPECT_NE(recovered.errors.find("kept: 5 results of 6 cells"), std::string::npos)
      << recovered.errors;
  EXPECT_EQ(file_beginning("results", "sweep.db.damaged-"), bytes);
  const SweepEnd again = run(small({"--num-seeds", "6"}));
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(run({"export", "--format", "wide"}).output, wanted);
  EXPECT_NE(run({"recover"}).errors.find("the store is sound"), std::string::npos);
}

TEST_F(SweepStore, ADamagedSweepHidesNoOther) {
  ASSERT_EQ(run(small({})).status, 0);
  const std::string table = run({"export"}).output;
  ASSERT_EQ(run(small({"--gnc-num-samples", "123457"})).status, 0);
  std::string bytes;
  {
    std::ifstream file(path("results/sweep.db"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = bytes.find("\"guesses\":123457");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 12] = '9';
  write("results/sweep.db", bytes);
  const SweepEnd shown = run({"export"});
  EXPECT_EQ(shown.status, 0) << shown.errors;
  EXPECT_EQ(shown.output, table);
  EXPECT_NE(shown.errors.find("cannot be read"), std::string::npos) << shown.errors;
  EXPECT_NE(shown.errors.find("damaged"), std::string::npos) << shown.errors;
  const json list = json::parse(run({"show", "--list", "--json"}).output);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[0]["problem"].is_null()) << list.dump();
  EXPECT_NE(list[1]["problem"].dump().find("damaged"), std::string::npos) << list.dump();
  EXPECT_EQ(run({"show", "--name", list[1]["name"]}).status, 10);
}

TEST_F(SweepStore, ADamagedNameHidesNoOtherSweep) {
  ASSERT_EQ(run(small({})).status, 0);
  const std::string table = run({"export"}).output;
  ASSERT_EQ(run(small({"--gnc-num-samples", "123457"})).status, 0);
  jobs::SqliteSession(path("results/sweep.db"), {})
      .run(
          "UPDATE convoy_groups SET name = 'x' || name WHERE number = "
          "(SELECT MAX(number) FROM convoy_groups)",
          {});
  const json list = json::parse(run({"show", "--list", "--json"}).output);
  ASSERT_EQ(list.size(), 2u) << list.dump();
  EXPECT_TRUE(list.back()["problem"].is_null()) << list.dump();
  EXPECT_NE(list[0]["problem"].dump().find("damaged"), std::string::npos) << list.dump();
  const SweepEnd shown = run({"export", "--name", list.back()["name"]});
  EXPECT_EQ(shown.status, 0) << shown.errors;
  EXPECT_EQ(shown.output, table);
  EXPECT_NE(shown.errors.find("another may lack cells of it"), std::string::npos) << shown.errors;
  EXPECT_EQ(run({"export"}).status, 0);
  EXPECT_EQ(run({"show", "--name", list[0]["name"]}).status, 10);
}

// The store has a sweep of an older build, or of a later one.
TEST_F(SweepStore, ASweepOfAnotherBuildHidesNoOther) {
  ASSERT_EQ(run(small({})).status, 0);
  const auto add = [&](const std::string& name, const std::string& workload) {
    const auto store = jobs::open_store(text("results/sweep.db"));
    const jobs::NewTask task{
        .parameters = R"({"cell":{"no_such_key":1},"guesses":10,"method":"gnc","seed":0})",
        .units = 10};
    store->add(store->register_group(name + "/gnc", workload, "7-exact").group.number, {&task, 1});
  };
  add("ssm-00000000000a", "ssm");
  add("tomorrow-00000000000b", "tomorrow");
  for (const char* action : {"show", "plot", "export"}) {
    const SweepEnd end = run({action});
    EXPECT_EQ(end.status, 0) << action << end.errors;
    EXPECT_FALSE(end.output.empty()) << action;
    EXPECT_NE(end.errors.find("sweep ssm-00000000000a@7-exact cannot be read: "), std::string::npos)
        << end.errors;
    EXPECT_NE(end.errors.find("unknown workload `tomorrow`"), std::string::npos) << end.errors;
  }
  const SweepEnd list = run({"show", "--list"});
  EXPECT_EQ(list.status, 0) << list.errors;
  EXPECT_NE(list.errors.find("ssm-00000000000a cannot be read"), std::string::npos) << list.errors;
  EXPECT_EQ(run({"show", "--name", "ssm-00000000000a"}).status, 2);
}

TEST_F(SweepStore, ShowsTheSweepThatWasRunLast) {
  ASSERT_EQ(run(small({})).status, 0);
  ASSERT_EQ(run(small({"--student-dims", "30"})).status, 0);
  ASSERT_EQ(run(small({})).status, 0);
  EXPECT_EQ(json::parse(run({"show", "--json"}).output)[0]["student_dim"], 20);
  const json list = json::parse(run({"show", "--list", "--json"}).output);
  ASSERT_EQ(list.size(), 2u);
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)");
  for (const json& row : list) {
    EXPECT_TRUE(std::regex_match(row["created"].get<std::string>(), time)) << row.dump();
    EXPECT_LE(row["created"], row["last_run"]);
    EXPECT_EQ(row["cells"], 2);
  }
  EXPECT_LE(list[1]["created"], list[0]["created"]);
  const SweepEnd text = run({"show", "--list"});
  EXPECT_NE(text.output.find("last run "), std::string::npos) << text.output;
  EXPECT_NE(text.output.find(list[1]["last_run"].get<std::string>()), std::string::npos);
}

TEST_F(SweepStore, TwoRunnersAtOnceShareTheWork) {
  const std::vector<std::string> command = {
      "ssm",     "--num-seeds", "4", "--student-dims", "40", "60", "--gnc-num-samples",
      "4000000", "--workers",   "2", "--json"};
  auto left = start(command);
  auto right = start(command);
  const SweepEnd left_end = left->wait(), right_end = right->wait();
  EXPECT_EQ(left_end.status, 0) << left_end.errors;
  EXPECT_EQ(right_end.status, 0) << right_end.errors;
  const json left_rows = json::parse(left_end.output), right_rows = json::parse(right_end.output);
  ASSERT_EQ(left_rows.size(), 8u);
  for (size_t row = 0; row < left_rows.size(); ++row) {
    EXPECT_EQ(left_rows[row]["guesses"], 4'000'000);
    EXPECT_EQ(left_rows[row]["value"], right_rows[row]["value"]);
  }
}

}  // namespace
}  // namespace convoy::testing
