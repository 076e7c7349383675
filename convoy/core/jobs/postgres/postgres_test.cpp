// SPDX-License-Identifier: Apache-2.0
//
// Tests of PostgreSQL only. The tests for every store run against a real server in tests/jobs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/postgres/connection_url.h"
#include "convoy/core/jobs/postgres/postgres_session.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"
#include "jobs/store_under_test.h"

namespace convoy::jobs {
namespace {

using convoy::testing::StoreUnderTest;
using namespace std::chrono_literals;

TEST(PostgresUrl, ShowsNoPassword) {
  EXPECT_EQ(without_secrets("postgresql://ann:s3cret@db:5432/jobs?sslmode=require"),
            "postgresql://ann@db:5432/jobs");
  EXPECT_EQ(without_secrets("postgres://db/jobs?password=s3cret"), "postgres://db/jobs");
  EXPECT_EQ(without_secrets("postgresql://ann:p@ss/w?rd@db/jobs"), "postgresql://ann@db/jobs");
  const std::string url = "postgresql://ann:s3%21cret@db/jobs?sslpassword=other%20one&x=1";
  EXPECT_EQ(strike_secrets("in " + url + ": s3!cret and s3%21cret, other one", url),
            "in postgresql://ann@db/jobs: *** and ***, ***");
}

TEST(PostgresUrl, AKeywordStringIsAServerAndShowsNoPassword) {
  const std::string words =
      "host=db.example port = 5433 user=ann password='s3 c\\'ret' dbname=jobs";
  EXPECT_TRUE(names_postgres(words));
  EXPECT_TRUE(names_postgres("service=sweeps"));
  EXPECT_TRUE(names_postgres("hots=db dbname=jobs"));
  EXPECT_TRUE(names_postgres("postgres://db/jobs"));
  for (const char* file : {"sweep.db", "./host=db", "results/host=db/sweep.db", "a=b.db",
                           "sqlite:host=db", "my results/sweep.db", "C=1 d.db"})
    EXPECT_FALSE(names_postgres(file)) << file;
  EXPECT_EQ(without_secrets(words), "postgresql://ann@db.example:5433/jobs");
  EXPECT_EQ(without_secrets("dbname=jobs"), "postgresql:///jobs");
  EXPECT_EQ(strike_secrets("in " + words + ": s3 c'ret; other", words + " sslpassword=other"),
            "in host=db.example port = 5433 user=ann password=*** dbname=jobs: ***; ***");
  EXPECT_EQ(strike_secrets("missing \"=\" after \"cret\"", "host=db password=s3 cret user=ann"),
            "missing \"=\" after \"***\"");
  EXPECT_FALSE(on_network_file_system(words));
}

TEST(PostgresUrl, AKeywordStringThatCanNotBeOpenedMakesNoFile) {
  for (const std::string words :
       {"host=127.0.0.1 port=1 user=ann password=s3cret dbname=jobs", "hots=db dbname=jobs"}) {
    try {
      open_store(words, {.busy_limit = 200ms});
      ADD_FAILURE() << words << " was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.json_line().find("s3cret"), std::string::npos) << error.json_line();
    }
    EXPECT_FALSE(std::filesystem::exists(words));
  }
}

TEST(PostgresUrl, AnUnreachableServerIsAnErrorWithoutThePassword) {
  const std::string url = "postgresql://ann:s3cret@127.0.0.1:1/jobs";
  try {
    open_store(url, {.busy_limit = 200ms});
    ADD_FAILURE() << "there is no server at port 1";
  } catch (const IoError& error) {
    EXPECT_EQ(error.json_line().find("s3cret"), std::string::npos);
    EXPECT_NE(error.sentence().find("cannot be reached"), std::string::npos) << error.sentence();
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.sentence();  // libpq is missing on this machine
  }
  try {
    open_store("postgresql://ann:s3%zzcret@db/jobs", {.busy_limit = 1ms});
    ADD_FAILURE() << "a broken URL was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.json_line().find("cret"), std::string::npos) << error.json_line();
  }
}

class PostgresServer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("CONVOY_TEST_POSTGRES") == nullptr)
      GTEST_SKIP() << "no server; tests/jobs/postgres_test.sh starts one";
  }
};

TEST_F(PostgresServer, ConnectsAgainAfterTheServerRestarts) {
  const StoreUnderTest under_test("postgres");
  // A restart of the server may take long on a busy machine.
  const std::unique_ptr<JobStore> store = open_store(under_test.url(), {.server_limit = 120s});
  const int64_t group = store->register_group("sweep", "ssm", "1").group.number;
  const std::vector<NewTask> tasks = {{.parameters = R"({"seed":1})"},
                                      {.parameters = R"({"seed":2})"}};
  store->add(group, tasks);
  const std::vector<Lease> leases = store->claim({.group = group, .owner = "w"});
  // Some of these calls begin while the server is down. They wait until it is back.
  const testing::TemporaryFolder folder;
  std::thread restart([&] {
    const auto end =
        testing::run_script(folder.path(), std::getenv("CONVOY_TEST_POSTGRES_RESTART"));
    EXPECT_EQ(end.code, 0) << end.out;
  });
  for (int turn = 0; turn < 200; ++turn) {
    store->counts(group);
    std::this_thread::sleep_for(10ms);
  }
  restart.join();
  const Completion completion{.lease = leases.at(0), .payload = "1", .result = {}};
  EXPECT_TRUE(store->complete({&completion, 1}, {}).at(0).counted);
  EXPECT_EQ(store->unfinished_complete(group).size(), 1u);
}

TEST_F(PostgresServer, ALockedTaskDelaysNobodyAndALockHasALimit) {
  const StoreUnderTest under_test("postgres");
  const std::unique_ptr<JobStore> store = open_store(under_test.url(), {.busy_limit = 300ms});
  const int64_t group = store->register_group("sweep", "ssm", "1").group.number;
  const std::vector<NewTask> tasks = {{.parameters = R"({"seed":1})"},
                                      {.parameters = R"({"seed":2})"}};
  store->add(group, tasks);
  PostgresSession other(under_test.url(), {});
  other.begin(Begin::Write);
  other.run("SELECT number FROM convoy_tasks WHERE number = 1 FOR UPDATE", {});
  const std::vector<Lease> leases = store->claim({.group = group, .owner = "w", .max_ranges = 5});
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].task, 2);
  EXPECT_THROW(store->claim({.group = group, .owner = "w"}), IoError);
  other.rollback();
  EXPECT_EQ(store->claim({.group = group, .owner = "w"}).size(), 1u);
}

TEST_F(PostgresServer, IsAlsoKnownByAKeywordString) {
  const StoreUnderTest under_test("postgres");
  under_test.open()->register_group("sweep", "ssm", "1");
  const std::string url = under_test.url();
  const std::string words =
      "dbname=postgres user=postgres host=" + url.substr(url.find("host=") + 5);
  EXPECT_EQ(open_store(words)->groups().size(), 1u);
}

TEST_F(PostgresServer, OpenedByManyAtOnceTheSchemaIsMadeOnce) {
  const StoreUnderTest under_test("postgres");
  std::vector<std::thread> threads;
  for (int number = 0; number < 6; ++number)
    threads.emplace_back([&] { EXPECT_NO_THROW(under_test.open()->groups()); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace convoy::jobs
