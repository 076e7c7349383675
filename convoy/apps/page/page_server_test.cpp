// SPDX-License-Identifier: Apache-2.0
//
// Requests pages from the server over HTTP, as a browser does.
#include "convoy/apps/page/page_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/farm/sweep/command/command_grid.h"
#include "convoy/farm/sweep/runner/sweep_store.h"

namespace convoy::page {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Answer {
  int status = 0;
  std::string head{};
  std::string body{};
};

Descriptor connected(int port) {
  Descriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // If the server does not answer, the test fails and does not hang.
  const timeval patience{60, 0};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  EXPECT_EQ(::connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return connection;
}

void send_text(const Descriptor& connection, const std::string& text) {
  EXPECT_EQ(::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Reads one answer and leaves the connection open. `has_body` is false for the answer to HEAD.
Answer read_answer(const Descriptor& connection, bool has_body = true) {
  std::string text;
  char block[4096];
  const auto read_on = [&] {
    const ssize_t count = ::recv(connection.get(), block, sizeof(block), 0);
    if (count > 0) text.append(block, static_cast<size_t>(count));
    return count > 0;
  };
  while (text.find("\r\n\r\n") == std::string::npos)
    if (!read_on()) return {};
  const size_t end = text.find("\r\n\r\n") + 4;
  const std::string head = text.substr(0, end);
  const std::string kLength = "\r\ncontent-length: ";
  const size_t length = head.find(kLength);
  if (!has_body || length == std::string::npos)
    return {std::stoi(head.substr(9, 3)), head, text.substr(end)};
  const size_t size = std::stoul(head.substr(length + kLength.size()));
  while (text.size() < end + size && read_on()) continue;
  return {std::stoi(head.substr(9, 3)), head, text.substr(end)};
}

Answer ask(int port, const std::string& request) {
  const Descriptor connection = connected(port);
  send_text(connection, request);
  return read_answer(connection, !request.starts_with("HEAD"));
}

class Page : public ::testing::Test {
 protected:
  Page() {
    std::string pattern = (fs::temp_directory_path() / "convoy-page-XXXXXX").string();
    runs_ = ::mkdtemp(pattern.data());
  }
  ~Page() override {
    server_.reset();
    fs::remove_all(runs_);
  }

  void write_run(const std::string& name, int steps, const std::string& ending) {
    fs::create_directories(runs_ / name / "logs");
    std::string events = R"({"event":"start","time":100.0,"total_steps":9})"
                         "\n";
    for (int step = 1; step <= steps; ++step)
      events += fmt::format(
          R"({{"event":"step","time":{},"step":{},"loss":{},"tokens_per_second":50,"rank_losses":[1,2]}})"
          "\n",
          100 + step, step, 10.0 / step);
    events += ending;
    write_file_atomic(runs_ / name / "events.jsonl", events);
  }

  // Writes a sweep into `folder` and returns its name.
  std::string write_sweep(const std::string& folder) {
    fs::create_directories(runs_ / folder);
    const sweep::SweepPlan plan = sweep::plan_command({}, {"true"});
    sweep::store_plan(*jobs::open_store((runs_ / folder / "sweep.db").string()), plan);
    return plan.name();
  }

  void serve(const std::string& token = "", const std::string& host = "127.0.0.1") {
    server_ = std::make_unique<PageServer>(
        PageOptions{.runs = runs_, .host = host, .port = 0, .token = token});
  }

  Answer get(const std::string& path, const std::string& headers = "",
             const std::string& host = "127.0.0.1") {
    return ask(server_->port(),
               fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", path, host, headers));
  }
  json api(const std::string& path) { return json::parse(get(path).body); }

  fs::path runs_;
  std::unique_ptr<PageServer> server_;
};

const std::string kEnd = R"({"event":"end","time":200.0,"status":"finished"})"
                         "\n";

TEST_F(Page, ListsRunsWithTheirStates) {
  write_run("done", 4, kEnd);
  write_run("deep/dead", 2, "");
  write_run("broken", 3,
            R"({"event":"failure","time":150.0,"message":"no memory"})"
            "\n");
  serve();
  const json runs = api("/api/runs")["runs"];
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0]["name"], "done");  // the run that changed last
  EXPECT_EQ(runs[0]["state"], "finished");
  EXPECT_EQ(runs[0]["loss"], 2.5);
  EXPECT_EQ(runs[1]["failure"], "no memory");
  EXPECT_EQ(runs[2]["name"], "deep/dead");
  EXPECT_EQ(runs[2]["state"], "failed");
  EXPECT_EQ(runs[2]["total_steps"], 9);
}

TEST_F(Page, ARunThatGoesOnHasASpeedAndATimeLeft) {
  write_run("done", 4, kEnd);
  write_run("now", 4, "");
  const auto held = telemetry::RunFolder::create(runs_ / "now", "now");
  serve();
  const json runs = api("/api/runs")["runs"];
  const auto line_of = [&](const char* name) {
    return *std::find_if(runs.begin(), runs.end(),
                         [&](const json& run) { return run["name"] == name; });
  };
  EXPECT_EQ(line_of("now")["state"], "running");
  EXPECT_EQ(line_of("now")["speed"], 50);
  EXPECT_EQ(line_of("now")["speed_unit"], "tokens/s");
  EXPECT_EQ(line_of("now")["seconds_left"], 5) << "five steps of a second";
  EXPECT_TRUE(line_of("done")["seconds_left"].is_null());
  std::ofstream(runs_ / "now/events.jsonl", std::ios::app)
      << R"({"event":"start","time":500.0,"resume_step":4,"total_steps":9})"
         "\n"
      << R"({"event":"step","time":510.0,"step":5,"samples_per_second":7})"
         "\n"
      << R"({"event":"step","time":520.0,"step":6,"samples_per_second":7})"
         "\n";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const json resumed = api("/api/runs")["runs"];
  EXPECT_EQ(resumed[0]["name"], "now");
  EXPECT_EQ(resumed[0]["seconds_left"], 30) << "the pause before the resume is no part of it";
  EXPECT_EQ(resumed[0]["speed_unit"], "samples/s");
}

TEST_F(Page, CurvesFollowTheFileAndAResume) {
  write_run("run", 4, "");
  serve();
  json curves = api("/api/curves?run=run")["run"];
  EXPECT_EQ(curves["train/loss"].size(), 4U);
  EXPECT_EQ(curves["rank/1/losses"][0][1], 2.0);
  std::ofstream(runs_ / "run/events.jsonl", std::ios::app)
      << R"({"event":"start","time":120.0,"resume_step":2,"total_steps":9})"
         "\n"
      << R"({"event":"step","time":121.0,"step":3,"loss":7})"
         "\n"
      << R"({"event":"step","time":122.0,"st)";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  curves = api("/api/curves?run=run")["run"];
  ASSERT_EQ(curves["train/loss"].size(), 3U) << curves["train/loss"];
  EXPECT_EQ(curves["train/loss"][2], json::array({3, 7.0, 7.0, 7.0}));
  std::ofstream(runs_ / "run/events.jsonl", std::ios::app) << R"(ep":4,"loss":6})"
                                                              "\n"
                                                           << kEnd;
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(api("/api/curves?run=run")["run"]["train/loss"][3][0], 4);
  EXPECT_EQ(api("/api/runs")["runs"][0]["state"], "finished");
}

// The long run has a hundred megabytes. The other runs are shown at once, and the long one in
// parts.
TEST_F(Page, ALongRunKeepsNoOtherBack) {
  write_run("short", 4, kEnd);
  fs::create_directories(runs_ / "long");
  {
    std::ofstream events(runs_ / "long/events.jsonl");
    events << R"({"event":"start","time":100.0,"total_steps":300000})"
              "\n";
    for (int step = 1; step <= 300'000; ++step)
      events << R"({"event":"step","time":101.0,"step":)" << step << R"(,"loss":2,"note":")"
             << std::string(300, 'x') << "\"}\n";
    events << kEnd;
  }
  serve();
  json runs = api("/api/runs")["runs"];
  ASSERT_EQ(runs.size(), 2U);
  const auto line_of = [&](const char* name) {
    return *std::find_if(runs.begin(), runs.end(),
                         [&](const json& run) { return run["name"] == name; });
  };
  EXPECT_EQ(line_of("short")["state"], "finished");
  EXPECT_EQ(line_of("long")["state"], "reading");
  double read = line_of("long")["read"];
  EXPECT_LT(read, 1);
  while (line_of("long").contains("read")) {
    EXPECT_GE(line_of("long")["read"], read);
    read = line_of("long")["read"];
    runs = api("/api/runs")["runs"];
  }
  EXPECT_EQ(line_of("long")["state"], "finished");
  EXPECT_EQ(line_of("long")["steps"], 300'000);
}

TEST_F(Page, DevicesOverSeconds) {
  write_run("run", 1, kEnd);
  write_file_atomic(runs_ / "run/devices.csv",
                    "timestamp,elapsed_s,host,device,name,gpu_util_pct,power_w,host_cpu_pct\n"
                    "2026-01-31T23:59:59.500Z,0.0,h,gpu0,\"a, \"\"b\"\"\",90,500.5,\n"
                    "2026-01-31T23:59:59.500Z,0.0,h,host,,,,12\n"
                    "2026-02-01T00:00:04.500Z,5.0,h,gpu0,x,,400,\n"
                    "broken\n");
  serve();
  const json devices = api("/api/devices?run=run")["h"];
  EXPECT_EQ(devices["gpu0/gpu_util_pct"], json::parse("[[0, 90.0, 90.0, 90.0]]"));
  EXPECT_EQ(devices["gpu0/power_w"][1][0], 5);
  EXPECT_EQ(devices["host/host_cpu_pct"][0][1], 12.0);
  EXPECT_EQ(devices.size(), 3U);
  EXPECT_EQ(api("/api/devices?run=none"), json::object());
}

// The second host began a minute later.
TEST_F(Page, DevicesOfEveryHostOnOneClock) {
  write_run("run", 1, kEnd);
  write_file_atomic(runs_ / "run/devices.csv",
                    "timestamp,elapsed_s,host,device,power_w\n"
                    "2026-01-31T12:00:00.000Z,0.0,node0,gpu0,500\n");
  write_file_atomic(runs_ / "run/logs/devices-node1.csv",
                    "timestamp,elapsed_s,host,device,power_w\n"
                    "2026-01-31T12:01:00.000Z,0.0,node1,gpu0,400\n");
  serve();
  const json devices = api("/api/devices?run=run");
  ASSERT_EQ(devices.size(), 2U) << devices;
  EXPECT_EQ(devices["node0"]["gpu0/power_w"], json::parse("[[0, 500.0, 500.0, 500.0]]"));
  EXPECT_EQ(devices["node1"]["gpu0/power_w"], json::parse("[[60, 400.0, 400.0, 400.0]]"));
}

TEST_F(Page, RunsOfProcessAreRowsWithTheirEngines) {
  write_run("rows", 0, "");
  write_file_atomic(
      runs_ / "rows/events.jsonl",
      R"({"event":"start","time":100.0,"task":"process","total_steps":9})"
      "\n"
      R"({"event":"step","time":101.0,"step":4,"tokens_per_second":50,"rows_failed":1})"
      "\n");
  write_file_atomic(runs_ / "rows/devices.csv",
                    "Timestamp,Elapsed,GPU_Index,GPU_Name,Temperature,Tokens_Per_Second,KV_Use\n"
                    "2026-01-31 12:00:00,0.00,N/A,No GPU found,N/A,10.5,0.25\n"
                    "2026-01-31 12:00:02,2.00,1,a GPU,50,20.5,0.5\n");
  serve();
  const json line = api("/api/runs")["runs"][0];
  EXPECT_EQ(line["kind"], "process");
  EXPECT_EQ(line["steps"], 4);
  EXPECT_EQ(line["failed"], 1);
  const json devices = api("/api/devices?run=rows")["node 0"];
  EXPECT_EQ(devices["host/tokens_per_second"][1], json::parse("[2, 20.5, 20.5, 20.5]"));
  EXPECT_EQ(devices["gpu1/temp_c"][0][1], 50.0);
}

TEST_F(Page, DetailsLogsAndSamples) {
  write_run("run", 1, kEnd);
  write_file_atomic(runs_ / "run/run.json",
                    R"({"config": {"train": {"lr": 1}}, "stamp": {"a": "b"}})");
  write_file_atomic(runs_ / "run/logs/rank-00.log", std::string(100'000, 'x') + "\nlast line\n");
  write_file_atomic(runs_ / "run/logs/rank-10.log", "ten");
  write_file_atomic(runs_ / "run/logs/rank-2.log", "two");
  write_file_atomic(runs_ / "run/samples/step-3.jsonl", "{\"answer\": \"4\"}\nnot json\n");
  write_file_atomic(runs_ / "run/rollouts/step-2.jsonl",
                    "{\"row\": 3, \"sample\": 0, \"prompt\": \"2 + 2\", \"text\": \"4\", "
                    "\"reward\": 1, \"logprobs\": [-1]}\n");
  write_file_atomic(runs_ / "run/rollouts/step-3.jsonl", "{\"row\": 3, \"samp");
  write_run("other", 1, kEnd);
  write_file_atomic(runs_ / "other/run.json", R"({"config": {"train": {"lr": 2}}})");
  serve();
  const json details = api("/api/run?run=run");
  EXPECT_EQ(details["identity"]["stamp"]["a"], "b");
  EXPECT_EQ(details["logs"], json::array({"rank-00.log", "rank-2.log", "rank-10.log"}));
  EXPECT_EQ(details["samples"], json::array({3}));
  EXPECT_EQ(details["rollouts"], json::array({2, 3}));
  EXPECT_EQ(api("/api/rollouts?run=run&step=2")[0],
            json::parse(R"({"shown_as": "best", "row": 3, "sample": 0, "prompt": "2 + 2",
                            "text": "4", "reward": 1, "text_tokens": 1})"));
  const json damaged = api("/api/rollouts?run=run&step=3");
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_NE(damaged[0]["damage"].get<std::string>().find("step-3.jsonl:1: "), std::string::npos);
  EXPECT_EQ(get("/api/log?run=run&file=rank-00.log").body, "last line\n");
  EXPECT_EQ(api("/api/samples?run=run&step=3"), json::parse(R"([{"answer": "4"}])"));
  const json differ = api("/api/comparison?run=run&run=other")["settings"];
  ASSERT_EQ(differ.size(), 1U);
  EXPECT_EQ(differ[0]["values"], json::array({"1", "2"}));
  EXPECT_TRUE(api("/api/run?run=../../etc").is_null());
  EXPECT_EQ(get("/api/log?run=../run&file=rank-00.log").body, "");
  EXPECT_EQ(get("/api/log?run=run&file=../run.json").body, "");
}

TEST_F(Page, FiguresOfSweepsRunNoScripts) {
  const std::string name = write_sweep("results");
  write_file_atomic(runs_ / "results/figure.svg", "<svg><script>steal()</script></svg>");
  write_run("run", 1, kEnd);
  serve();
  EXPECT_EQ(api("/api/runs")["runs"].size(), 2U);
  EXPECT_EQ(api("/api/sweep?sweep=results/" + name)["num_cells"], 1);
  for (const char* path :
       {"/api/sweep/figure?sweep=results/", "/api/sweep/file?file=figure.svg&sweep=results/"}) {
    const Answer answer = get(path + name);
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(answer.head.find("image/svg+xml"), std::string::npos);
    EXPECT_NE(
        answer.head.find("default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"),
        std::string::npos)
        << answer.head;
  }
  EXPECT_EQ(get("/api/sweep/file?file=../run/events.jsonl&sweep=results/" + name).status, 404);
  EXPECT_EQ(get("/api/sweep/figure?sweep=none").status, 404);
}

TEST_F(Page, OnlyWhoHasTheTokenIsAnswered) {
  serve("secret");
  const std::string cookie = fmt::format("convoy_token_{}", server_->port());
  EXPECT_EQ(get("/").status, 401);
  EXPECT_EQ(get("/api/runs?token=wrong").status, 401);
  EXPECT_EQ(get("/api/runs", fmt::format("Cookie: a=b; {}=secret\r\n", cookie)).status, 200);
  EXPECT_EQ(get("/api/runs", fmt::format("Cookie: {}=\r\n", cookie)).status, 401);
  const Answer entry = get("/?token=secret");
  EXPECT_EQ(entry.status, 302);
  EXPECT_NE(entry.head.find("set-cookie: " + cookie + "=secret; HttpOnly; SameSite=Strict"),
            std::string::npos)
      << entry.head;
  EXPECT_NE(server_->url().find("?token=secret"), std::string::npos);
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}

// A browser sends a host's cookies to all ports of the host.
TEST_F(Page, ServersInOneBrowserKeepTheirCookiesApart) {
  serve("secret");
  const char* const tunnel = "127.0.0.1:7001";
  EXPECT_NE(get("/?token=secret", "", tunnel).head.find("set-cookie: convoy_token_7001="),
            std::string::npos)
      << "the port is the one that the browser uses";
  const std::string cookies = "Cookie: convoy_token_7000=other; convoy_token_7001=secret\r\n";
  EXPECT_EQ(get("/api/runs", cookies, tunnel).status, 200);
  EXPECT_EQ(get("/api/runs", cookies, "127.0.0.1:7000").status, 401);
}

TEST_F(Page, OtherMachinesAreAnsweredWhereTheHostIsEveryAddress) {
  serve("secret", "0.0.0.0");
  for (const char* host : {"192.0.2.7:6007", "[2001:db8::7]:6007", "node7.example:6007"}) {
    EXPECT_EQ(get("/?token=secret", "", host).status, 302) << host;
    EXPECT_EQ(get("/", "", host).status, 401) << host;
  }
  EXPECT_EQ(server_->url().find("0.0.0.0"), std::string::npos) << "no other machine can open that";
}

TEST_F(Page, AddressesOfSixteenBytesStandInBrackets) {
  try {
    serve("", "::1");
  } catch (const IoError&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  EXPECT_EQ(server_->url(), fmt::format("http://[::1]:{}/", server_->port()));
}

TEST_F(Page, AnotherHostsNameAndOtherMethodsAreRefused) {
  serve();
  EXPECT_EQ(get("/", "", "evil.example").status, 403);
  EXPECT_EQ(get("/", "", "[::1").status, 403);
  EXPECT_EQ(get("/", "", "192.0.2.7:6007").status, 200) << "no name leads here from elsewhere";
  EXPECT_EQ(get("/", "", "[::1]:6007").status, 200);
  EXPECT_EQ(get("/").status, 200);
  EXPECT_NE(get("/").body.find("/api/curves"), std::string::npos) << "the program is inside";
  const Answer posted = ask(server_->port(), "POST /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(posted.status, 405);
  EXPECT_NE(posted.head.find("allow: GET, HEAD"), std::string::npos);
  EXPECT_EQ(get("/nothing").status, 404);
  EXPECT_EQ(ask(server_->port(), "nonsense\r\n\r\n").status, 400);
}

TEST_F(Page, HeadIsTheAnswerWithoutItsBody) {
  serve();
  const Answer head = ask(server_->port(), "HEAD /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_NE(head.head.find(fmt::format("content-length: {}", get("/api/runs").body.size())),
            std::string::npos)
      << head.head;
}

TEST_F(Page, OnlyTheProgramOfThePageRuns) {
  serve();
  const Answer page = get("/");
  EXPECT_EQ(page.head.find("unsafe-inline"), std::string::npos) << page.head;
  const size_t at = page.head.find("script-src 'nonce-");
  ASSERT_NE(at, std::string::npos) << page.head;
  const std::string nonce = page.head.substr(at + 18, 32);
  EXPECT_NE(page.body.find("<script nonce=\"" + nonce + "\">"), std::string::npos);
  EXPECT_NE(page.body.find("<style nonce=\"" + nonce + "\">"), std::string::npos);
  EXPECT_EQ(get("/").body.find(nonce), std::string::npos) << "the next answer has another";
}

TEST_F(Page, ClientsThatTrickleKeepNobodyWaiting) {
  serve();
  std::vector<Descriptor> slow;
  for (int client = 0; client < 32; ++client) slow.push_back(connected(server_->port()));
  std::atomic<bool> ends = false;
  std::thread trickle([&] {
    while (!ends) {
      for (const Descriptor& client : slow) ::send(client.get(), "G", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  EXPECT_EQ(get("/api/runs").status, 200);
  ends = true;
  trickle.join();
}

TEST_F(Page, ABrowserKeepsItsConnection) {
  serve();
  const Descriptor browser = connected(server_->port());
  for (const char* path : {"/api/runs", "/nothing", "/api/runs"}) {
    send_text(browser, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path));
    EXPECT_EQ(read_answer(browser).status, path == std::string("/nothing") ? 404 : 200) << path;
  }
}

// There are more clients than threads, and the answers are larger than the sockets' buffers.
TEST_F(Page, ClientsThatReadNothingKeepNobodyWaiting) {
  const std::string name = write_sweep("results");
  write_file_atomic(runs_ / "results/figure.svg", std::string(12 << 20, ' '));
  serve();
  std::vector<Descriptor> silent;
  for (int client = 0; client < 12; ++client) {
    silent.push_back(connected(server_->port()));
    send_text(silent.back(),
              fmt::format("GET /api/sweep/file?file=figure.svg&sweep=results/{} HTTP/1.1\r\n"
                          "Host: localhost\r\n\r\n",
                          name));
  }
  EXPECT_EQ(get("/api/runs").status, 200);
  EXPECT_EQ(read_answer(silent.back()).body.size(), 12U << 20) << "a patient one gets all of it";
}

TEST_F(Page, APortInUseIsAnError) {
  serve();
  EXPECT_THROW(
      PageServer({.runs = runs_, .host = "127.0.0.1", .port = server_->port(), .token = ""}),
      IoError);
}

}  // namespace
}  // namespace convoy::page
