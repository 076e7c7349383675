// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewards: a run that was killed and started again ends with the same bits, draws no
// text twice and asks for no reward twice, and its engine and trainer agree to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/http/http_server.h"
#include "convoy/core/io/answer_journal.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "files/run_script.h"
#include "resume/rollout_runs.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPolicySteps = 8;
constexpr int64_t kProblems = 16;
constexpr int64_t kTextsOfStep = 4 * 3;  // problems and samples

// A program rewards texts by their length and notes each question in a file.
Settings policy_settings(const TrainFixture& fixture, const Settings& more) {
  const fs::path folder = fixture.rows().parent_path();
  write_problems(folder / "problems.jsonl", kProblems);
  const std::string program = fmt::format(
      "while read -r line; do echo asked >> {}/asked; echo ${{#line}}; done", folder.string());
  const nlohmann::json rewards = {{{"kind", "command"}, {"command", program}},
                                  {{"kind", "answer"}, {"weight", 0.5}}};
  return Settings{"task=grpo",
                  "reward=" + rewards.dump(),
                  "rollout.samples=3",
                  "rollout.max_new_tokens=10",
                  "rollout.chat=off",
                  "train.batch_size=2",
                  "train.grad_accum=2",
                  "train.save_steps=1",
                  "train.learning_rate=5e-5",
                  "tuning.lora.dropout=0",
                  "train.lr_scheduler_type=constant",
                  "data.train_path=" + (folder / "problems.jsonl").string(),
                  "data.val_path=" + (folder / "problems.jsonl").string(),
                  "train.eval_strategy=steps",
                  "train.eval_steps=4",
                  fmt::format("train.steps={}", kPolicySteps)} +
         more;
}

int64_t num_asked(const TrainFixture& fixture) {
  std::ifstream file(fixture.rows().parent_path() / "asked");
  int64_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

std::vector<nlohmann::json> steps_of(const TrainFixture& fixture, const std::string& name) {
  std::vector<nlohmann::json> steps;
  for (const auto& event : telemetry::read_events(fixture.run_folder(name) / "events.jsonl"))
    if (event["event"] == "step") steps.push_back(event);
  return steps;
}

class PolicyRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(PolicyRuns, EngineAndTrainerAgreeToTheBit) {
  const TrainFixture fixture;
  const Ended ended =
      fixture.run("run", policy_settings(fixture, {std::string("tuning.mode=") + GetParam()}));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  int64_t steps = 0;
  for (const auto& event : telemetry::read_events(fixture.run_folder("run") / "events.jsonl")) {
    if (event["event"] != "step") continue;
    ++steps;
    EXPECT_EQ(event.at("kl_engine_trainer"), 0.0) << event;
    EXPECT_EQ(event.at("logprob_difference"), 0.0) << event;
    EXPECT_GT(event.at("reward_std").get<double>(), 0) << event;
  }
  EXPECT_EQ(steps, kPolicySteps);
  const std::map<std::string, std::string> files = rollouts_of(fixture, "run");
  EXPECT_EQ(std::ssize(files), kPolicySteps);
  const std::string& last = files.at(fmt::format("step-{}.jsonl", kPolicySteps));
  const auto row = nlohmann::json::parse(last.substr(0, last.find('\n')));
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), kTextsOfStep);
  EXPECT_EQ(row["step"], kPolicySteps);
  EXPECT_EQ(row["rewards"].size(), 2u);
  EXPECT_EQ(row["reward"], row["rewards"]["command"]);
  EXPECT_EQ(row["tokens"].size(), row["prompt_tokens"].get<size_t>() + row["logprobs"].size());
}

// Engine, trainer and reference have the temperature of the draws. The model starts as its own
// reference: a new adapter changes nothing, and a whole model has a second copy beside it.
TEST_P(PolicyRuns, AgreeToTheBitAtTemperaturesWithTheirReferenceBesideThem) {
  const TrainFixture fixture;
  for (const char* const temperature : {"0.7", "1.3"}) {
    const Ended ended = fixture.run(
        temperature,
        policy_settings(fixture,
                        {std::string("tuning.mode=") + GetParam(), "policy.kl_beta=0.05",
                         fmt::format("rollout.temperature={}", temperature), "rollout.top_p=0.95",
                         "train.steps=3", "train.final_eval=false", "train.eval_strategy=no"}));
    ASSERT_EQ(ended.status, 0) << ended.errors;
    const std::vector<nlohmann::json> steps = steps_of(fixture, temperature);
    ASSERT_EQ(steps.size(), 3u);
    for (const nlohmann::json& step : steps) {
      EXPECT_EQ(step.at("kl_engine_trainer"), 0.0) << step;
      EXPECT_EQ(step.at("logprob_difference"), 0.0) << step;
      EXPECT_EQ(step.at("sampling/importance_sampling_ratio/mean"), 1.0) << step;
    }
    EXPECT_EQ(steps.front().at("kl"), 0.0) << steps.front();
    EXPECT_GT(steps.back().at("kl").get<double>(), 0) << steps.back();
    const bool is_copied = std::string(GetParam()) == "full";
    EXPECT_EQ(ended.errors.find("a second model of") != std::string::npos, is_copied)
        << ended.errors;
  }
}

TEST_P(PolicyRuns, KilledAtRandomMomentsTheyEqualUnbrokenOnes) {
  const TrainFixture fixture;
  const Settings settings = policy_settings(fixture, {std::string("tuning.mode=") + GetParam()});
  const auto begin = std::chrono::steady_clock::now();
  const Ended unbroken = fixture.run("unbroken", settings);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  const int64_t asked_by_unbroken = num_asked(fixture);
  const int64_t kills = run_with_kills(fixture, "killed", settings, whole);
  expect_same_rollouts(fixture, "unbroken", "killed");
  // Questions under way when the kill came are asked again: at most the texts of one step, and the
  // answers of an evaluation, which is measured again.
  EXPECT_LE(num_asked(fixture) - 2 * asked_by_unbroken, kills * (kTextsOfStep + kProblems));
}
INSTANTIATE_TEST_SUITE_P(Modes, PolicyRuns, ::testing::Values("lora", "full"),
                         [](const auto& one) { return std::string(one.param); });

TEST(PolicyRunsGoOn, WithoutDrawingOrAskingAgain) {
  const TrainFixture fixture;
  const Settings settings =
      policy_settings(fixture, {"train.eval_strategy=no", "train.final_eval=false",
                                "train.save_steps=4", "train.async_save=false"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  EXPECT_EQ(num_asked(fixture), kPolicySteps * kTextsOfStep);
  TrainProcess process = fixture.start("killed", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 7); }));
  process.kill_everything();
  const int64_t asked_before = num_asked(fixture);
  const Ended resumed = fixture.run("killed", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step 4"), std::string::npos) << resumed.errors;
  expect_same_rollouts(fixture, "unbroken", "killed");
  // Steps 5 to 7 are computed again from their texts: only step 8 may have been under way.
  EXPECT_LE(num_asked(fixture) - asked_before, kTextsOfStep);
}

// The number of values of rewards that an unfinished step 1 has saved.
int64_t num_saved_values(const fs::path& run) {
  int64_t values = 0;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(run / "rollouts", none)) {
    if (entry.path().string().find(".rewards.") == std::string::npos || !entry.is_regular_file())
      continue;
    const std::string lines = read_file(entry.path());
    values += std::count(lines.begin(), lines.end(), '\n') - 1;  // the first line is the key
  }
  return values;
}

// A file of texts that lost a line, or has numbers of other texts, has one way out.
TEST(PolicyRunsGoOn, FromADamagedFileOnceItIsRemoved) {
  const TrainFixture fixture;
  const Settings settings =
      policy_settings(fixture, {"train.eval_strategy=no", "train.final_eval=false",
                                "train.save_steps=4", "train.async_save=false"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  TrainProcess process = fixture.start("killed", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 7); }));
  process.kill_everything();
  const fs::path file = fixture.run_folder("killed") / "rollouts/step-6.jsonl";
  const std::string good = read_file(file);
  const size_t begin = good.find('\n') + 1;
  const auto refused = [&](const std::string& first, const std::string& said) {
    write_file_atomic(file, first + good.substr(begin));
    const Ended ended = fixture.run("killed", settings);
    EXPECT_EQ(ended.status, 10) << ended.errors;
    for (const std::string& part :
         {said, file.string(), std::string("remove the file: its texts are drawn again")})
      EXPECT_NE(ended.errors.find(part), std::string::npos) << part << " in " << ended.errors;
  };
  const auto refused_with = [&](const char* key, const nlohmann::json& value,
                                const std::string& said) {
    auto row = nlohmann::json::parse(good.substr(0, begin));
    row[key] = value;
    refused(row.dump() + "\n", said);
  };
  refused("", "found none of problem ");
  refused_with("prompt_tokens", 1000000, "with a prompt of 1000000");
  refused_with("prompt_tokens", 3, "log-probabilities of a text of ");
  std::vector<int32_t> tokens = nlohmann::json::parse(good.substr(0, begin))["tokens"];
  ++tokens[0];
  refused_with("tokens", tokens, "a prompt that is not problem ");
  refused_with("problem", 1000, "problem 1000 of 16");
  refused_with("logprobs", {-0.5}, "1 log-probabilities of a text of ");
  fs::remove(file);
  const Ended resumed = fixture.run("killed", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  expect_same_rollouts(fixture, "unbroken", "killed");
}

// A server may compare the texts of a problem, so it never gets some of them without the others.
TEST(PolicyRunsGoOn, AskingAServerForWholeProblems) {
  const TrainFixture fixture;
  std::atomic<bool> is_well = false;
  std::atomic<int64_t> asked = 0;
  http::Server server("127.0.0.1", 0, {}, [&](std::unique_ptr<http::Exchange> exchange) {
    std::vector<double> numbers(nlohmann::json::parse(exchange->body()).size(), 0.5);
    if (is_well) asked += std::ssize(numbers);
    if (!is_well) numbers.at(1) = 1e200;
    exchange->respond(200, {}, nlohmann::json(numbers).dump());
  });
  const nlohmann::json rewards = {
      {{"kind", "http"}, {"url", fmt::format("http://127.0.0.1:{}/score", server.port())}}};
  const Settings settings =
      policy_settings(fixture, {"reward=" + rewards.dump(), "train.steps=1",
                                "train.eval_strategy=no", "train.final_eval=false"});
  const Ended failed = fixture.run("run", settings);
  EXPECT_EQ(failed.status, 10) << failed.errors;
  EXPECT_NE(failed.errors.find("1e+200 times the weight 1 is too large"), std::string::npos)
      << failed.errors;
  EXPECT_EQ(num_saved_values(fixture.run_folder("run")), 0) << "of an answer with a bad number";
  // As a kill between two numbers of an answer leaves it.
  for (const auto& entry : fs::directory_iterator(fixture.run_folder("run") / "rollouts")) {
    const std::string name = entry.path().filename().string();
    if (name.find(".texts.") == std::string::npos) continue;
    const std::string key = name.substr(7, name.find(".texts.") - 7);  // behind "step-1-"
    const auto journal = [&](const std::string& kind) {
      return io::AnswerJournal(
          (entry.path().parent_path() / fmt::format("step-1-{}.{}", key, kind)).string(), key, 0,
          Log(LogLevel::Quiet));
    };
    io::AnswerJournal texts = journal("texts");
    ASSERT_FALSE(texts.kept().empty());
    journal("rewards").add({texts.kept().begin()->first.first, 0}, "1000.0");
  }
  ASSERT_EQ(num_saved_values(fixture.run_folder("run")), 1);
  is_well = true;
  const Ended resumed = fixture.run("run", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_EQ(asked, kTextsOfStep);
  EXPECT_EQ(rollouts_of(fixture, "run").at("step-1.jsonl").find("1000.0"), std::string::npos);
}

TEST(PolicyRunsGoOn, WithoutAskingForATextThatHasItsNumber) {
  constexpr int64_t kAnswered = 5;
  const TrainFixture fixture;
  const fs::path folder = fixture.rows().parent_path();
  // The program hangs at the text behind kAnswered numbers, until there is a file `go`.
  write_file_atomic(folder / "hang.sh",
                    fmt::format("cd {}\n"
                                "while read -r line; do\n"
                                "  echo asked >> asked\n"
                                "  [ -e go ] || [ $(wc -l < asked) -le {} ] || sleep 1000\n"
                                "  echo ${{#line}}\n"
                                "done\n",
                                folder.string(), kAnswered));
  const Settings settings = policy_settings(
      fixture, {fmt::format("reward=[{{kind: command, command: sh {}/hang.sh}}]", folder.string()),
                "train.steps=1", "train.eval_strategy=no", "train.final_eval=false"});
  TrainProcess process = fixture.start("run", settings);
  ASSERT_TRUE(
      process.wait_until([&] { return num_saved_values(fixture.run_folder("run")) == kAnswered; }));
  process.kill_everything();
  EXPECT_EQ(num_asked(fixture), kAnswered + 1);
  write_file_atomic(folder / "go", "");
  const Ended resumed = fixture.run("run", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_EQ(num_asked(fixture), kTextsOfStep + 1) << "only the text under way is asked again";
}

TEST(PolicyRunsWithoutSpread, SayThatTheyLearnNothing) {
  const TrainFixture fixture;
  const Ended ended = fixture.run(
      "run", policy_settings(fixture, {R"(reward=[{"kind": "format", "pattern": "never"}])",
                                       "train.steps=2", "train.final_eval=false"}));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  int64_t said = 0;
  for (const auto& event : telemetry::read_events(fixture.run_folder("run") / "events.jsonl")) {
    if (event["event"] == "step") {
      EXPECT_EQ(event.at("frac_reward_zero_std"), 1.0);
    }
    if (event["event"] == "warning")
      said += event.at("message").get<std::string>().starts_with("step 1 teaches nothing") ? 1 : 0;
  }
  EXPECT_EQ(said, 1);
}

TEST(PolicyRunsWithHugeRewards, NameTheText) {
  const TrainFixture fixture;
  const Ended ended = fixture.run(
      "run", policy_settings(
                 fixture, {R"(reward=[{"kind": "format", "pattern": "(?s).*", "weight": 1e200}])",
                           "train.steps=2", "train.final_eval=false"}));
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.errors.find("sample 0: 1 times the weight 1e+200 is too large"),
            std::string::npos)
      << ended.errors;
}

TEST(PolicyProblems, ThatCannotBeAskedAreToldByTheKeysOfATraining) {
  const TrainFixture fixture;
  const fs::path rows = fixture.rows().parent_path() / "sft.jsonl";
  const auto errors_with = [&](const std::string& row) {
    write_file_atomic(rows, row + "\n");
    const Ended ended =
        fixture.run("run", policy_settings(fixture, {"data.train_path=" + rows.string()}));
    EXPECT_EQ(ended.status, 10) << ended.errors;
    return ended.errors;
  };
  for (const auto& [row, said] : std::vector<std::pair<std::string, std::string>>{
           {R"({"prompt": "1 + 2?", "completion": "3"})", "rollout.answer_field=completion"},
           {R"({"prompt": "1 + 2?"})", "(rollout.answer_field)"},
           {R"({"task": "1 + 2?"})", "rollout.problem_field"}})
    EXPECT_NE(errors_with(row).find(said), std::string::npos) << row << errors_with(row);
}

// `convoy eval` asks with the prompt and the rewards of the training, as its evaluations do.
TEST(PolicyProblems, WithoutAColumnThatAJudgeReadsAreToldBeforeARun) {
  const TrainFixture fixture;
  const fs::path prompt = fixture.rows().parent_path() / "judge.txt";
  const auto planned = [&](const std::string& text) {
    write_file_atomic(prompt, text);
    const nlohmann::json rewards = {{{"kind", "judge"},
                                     {"url", "http://127.0.0.1:1/v1"},
                                     {"model", "m"},
                                     {"prompt", prompt.string()}}};
    return fixture.run("run", policy_settings(fixture, {"reward=" + rewards.dump(), "--dry-run"}));
  };
  const Ended good = planned("{{ row.problem }}: {{ text }}");
  EXPECT_EQ(good.status, 0) << good.errors;
  const Ended bad = planned("{{ row.topic }}: {{ text }}");
  EXPECT_EQ(bad.status, 10) << bad.errors;
  EXPECT_NE(bad.errors.find("shows {{ row.topic }}, and no row has this column; columns: answer, "
                            "problem"),
            std::string::npos)
      << bad.errors;
  EXPECT_NE(bad.errors.find("reward[0].prompt"), std::string::npos) << bad.errors;
}

TEST(PolicyProblems, WithoutAnAnswerThatAJudgeIsShownAreToldBeforeARun) {
  const TrainFixture fixture;
  const fs::path folder = fixture.rows().parent_path();
  write_file_atomic(folder / "judge.txt", "Right is {{ answer }}: {{ text }}");
  const nlohmann::json rewards = {{{"kind", "judge"},
                                   {"url", "http://127.0.0.1:1/v1"},
                                   {"model", "m"},
                                   {"prompt", (folder / "judge.txt").string()}}};
  const auto planned = [&](const std::string& row) {
    write_file_atomic(folder / "rows.jsonl", row + "\n");
    const std::string rows = (folder / "rows.jsonl").string();
    return fixture.run("run", policy_settings(fixture, {"reward=" + rewards.dump(), "--dry-run",
                                                        "data.train_path=" + rows}));
  };
  const Ended good = planned(R"({"problem": "1 + 2?", "answer": "3"})");
  EXPECT_EQ(good.status, 0) << good.errors;
  const Ended bad = planned(R"({"problem": "1 + 2?"})");
  EXPECT_EQ(bad.status, 10) << bad.errors;
  EXPECT_NE(bad.errors.find("the row has no answer, and the prompt of reward `judge` shows it as "
                            "{{ answer }}"),
            std::string::npos)
      << bad.errors;
}

TEST(PolicyEvaluations, OfTheCommandAreThoseOfTheTraining) {
  const TrainFixture fixture;
  const fs::path prompt = fixture.rows().parent_path() / "prompt.txt";
  write_file_atomic(prompt, "Count: {{ problem }}");
  const Ended trained =
      fixture.run("run", policy_settings(fixture, {"train.steps=2", "train.eval_steps=2",
                                                   "rollout.prompt=" + prompt.string()}));
  ASSERT_EQ(trained.status, 0) << trained.errors;
  nlohmann::ordered_json wanted;
  for (const auto& event : telemetry::read_events(fixture.run_folder("run") / "events.jsonl")) {
    if (event["event"] == "eval") wanted = event;
    if (event["event"] == "step") {
      EXPECT_GT(event["rewards/command/seconds"], 0) << event;
    }
  }
  const std::string run = fixture.run_folder("run").string();
  const std::string command = fmt::format(
      "{0}/convoy eval {1}/config.yaml --split val --adapter {1}/adapter --dtype fp32 --output "
      "{1}/evaluated",
      std::getenv("CONVOY_BIN_DIR"), run);
  const ScriptEnd ended = run_command(command + " --json 2>/dev/null");
  ASSERT_EQ(ended.code, 0) << ended.out;
  const auto found = nlohmann::json::parse(ended.out);
  EXPECT_EQ(found.at("rows"), kProblems);
  for (const char* const name : {"loss", "reward", "rewards/command/mean", "rewards/answer/mean",
                                 "accuracy", "completions/mean_length"})
    EXPECT_EQ(found.at(name), wanted.at(name)) << name;
  const std::string samples = read_file(fs::path(run) / "evaluated/samples.jsonl");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), kProblems);
  const auto first = nlohmann::json::parse(samples.substr(0, samples.find('\n')));
  EXPECT_EQ(first["reward"], first["rewards"]["command"]);
  EXPECT_EQ(first["ref"], "0");
  EXPECT_EQ(run_command(command + " --generate 2>/dev/null").code, 2);
}

// data.eos_token changes the EOS of the model and of its reference alike.
TEST(PolicyReferences, HaveTheTokensOfTheModelUnderAnEosOfTheRun) {
  const TrainFixture fixture;
  const std::string model = std::string(std::getenv("CONVOY_SOURCE_DIR")) + "/examples/tally-3m";
  const Ended ended = fixture.run(
      "run", policy_settings(fixture, {"tuning.mode=full", "policy.kl_beta=0.05",
                                       "policy.reference=" + model, "data.eos_token=<|endoftext|>",
                                       "train.steps=1", "train.final_eval=false"}));
  EXPECT_EQ(ended.status, 0) << ended.errors;
}

// What a run has trained is a reference by the name that the run's folder gives it.
TEST(PolicyReferences, MayBeAnAdapter) {
  const TrainFixture fixture;
  const auto trained_beside = [&](const std::string& name, const std::string& reference) {
    return fixture.run(
        name, policy_settings(
                  fixture, {"policy.kl_beta=0.05", "train.steps=1", "policy.reference=" + reference,
                            "train.final_eval=false", "train.eval_strategy=no"}));
  };
  ASSERT_EQ(trained_beside("first", "base").status, 0);
  const fs::path first = fixture.run_folder("first");
  const Ended of_run = trained_beside("second", first.string());
  EXPECT_NE(of_run.errors.find("give its adapter, " + (first / "adapter").string()),
            std::string::npos)
      << of_run.errors;
  const Ended ended = trained_beside("second", (first / "adapter").string());
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_GT(steps_of(fixture, "second").back().at("kl").get<double>(), 0);
  // The adapter is watched as a model's folder is.
  std::string weights = read_file(first / "adapter/adapter_model.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  write_file_atomic(first / "adapter/adapter_model.safetensors", weights);
  const Ended changed = fixture.run(
      "second", policy_settings(fixture, {"policy.kl_beta=0.05", "train.steps=3",
                                          "policy.reference=" + (first / "adapter").string()}));
  EXPECT_NE(changed.errors.find("made with other settings"), std::string::npos) << changed.errors;
}

// The reference of a whole model is the model that the run started from: a run that goes on takes
// it from the same folder, and says when the folder is another one by now.
TEST(PolicyReferences, OfAWholeModelStayWhereTheRunStarted) {
  const TrainFixture fixture;
  const fs::path model = fixture.rows().parent_path() / "model";
  fs::copy(fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m", model,
           fs::copy_options::recursive);
  const Settings settings = policy_settings(
      fixture, {"tuning.mode=full", "policy.kl_beta=0.1", "model.name=" + model.string(),
                "train.steps=4", "train.final_eval=false", "train.eval_strategy=no"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  const Ended stopped = fixture.run("stopped", settings + Settings{"train.steps=2"});
  ASSERT_EQ(stopped.status, 0) << stopped.errors;
  const Ended resumed = fixture.run("stopped", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step 2"), std::string::npos) << resumed.errors;
  expect_same_rollouts(fixture, "unbroken", "stopped");
  const std::vector<nlohmann::json> steps = steps_of(fixture, "stopped");
  EXPECT_GT(steps.back().at("kl").get<double>(), 0) << steps.back();

  // A folder named beside it is watched in the same way.
  const fs::path other = fixture.rows().parent_path() / "other";
  fs::copy(model, other, fs::copy_options::recursive);
  const Settings beside = settings + Settings{"policy.reference=" + other.string()};
  ASSERT_EQ(fixture.run("beside", beside + Settings{"train.steps=2"}).status, 0);
  for (const auto& [changed, name, go_on] :
       {std::tuple(model, "stopped", settings), std::tuple(other, "beside", beside)}) {
    std::string weights = read_file(changed / "model.safetensors");
    weights.back() = static_cast<char>(weights.back() ^ 1);
    write_file_atomic(changed / "model.safetensors", weights);
    const Ended refused = fixture.run(name, go_on + Settings{"train.steps=6"});
    EXPECT_NE(refused.status, 0) << name;
    EXPECT_NE(refused.errors.find("made with other settings"), std::string::npos) << refused.errors;
    EXPECT_NE(refused.errors.find(changed == model ? "model" : "objective"), std::string::npos)
        << refused.errors;
  }
}

// Several steps learn from the same texts, held near a reference. A checkpoint between them goes on
// with the texts that were drawn before.
TEST(PolicyRunsGoOn, BetweenStepsOnTheSameTexts) {
  const TrainFixture fixture;
  const Settings settings =
      policy_settings(fixture, {"policy.inner_steps=4", "policy.kl_beta=0.1"});
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  EXPECT_EQ(std::ssize(rollouts_of(fixture, "unbroken")), kPolicySteps / 4);
  const Ended stopped = fixture.run("killed", settings + Settings{"train.steps=6"});
  ASSERT_EQ(stopped.status, 0) << stopped.errors;
  const Ended resumed = fixture.run("killed", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step 6"), std::string::npos) << resumed.errors;
  EXPECT_TRUE(fixture.weights("unbroken") == fixture.weights("killed"));
  EXPECT_TRUE(rollouts_of(fixture, "unbroken") == rollouts_of(fixture, "killed"));
}

// Two ranks share the problems of a step, and draw what one rank draws, from weights that the file
// of the step names alike: however they lie on ranks, texts that are drawn are known again.
TEST(PolicyRanks, ShareProblems) {
  const TrainFixture fixture;
  const Settings settings = policy_settings(fixture, {"train.steps=2"});
  ASSERT_EQ(fixture.run("one", settings + Settings{"train.grad_accum=2"}).status, 0);
  for (const char* const strategy : {"ddp", "zero2", "zero3"}) {
    const Ended ended =
        fixture.run(strategy, settings + Settings{"train.grad_accum=1", "--nproc", "2",
                                                  fmt::format("parallel.strategy={}", strategy)});
    ASSERT_EQ(ended.status, 0) << ended.errors;
    const std::map<int64_t, double> wanted = fixture.losses("one");
    const std::map<int64_t, double> found = fixture.losses(strategy);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [step, loss] : wanted) EXPECT_NEAR(found.at(step), loss, 1e-5) << strategy;
    const auto texts = [&](const std::string& name) {
      std::vector<std::string> all;
      std::ifstream file(fixture.run_folder(name) / "rollouts/step-1.jsonl");
      for (std::string line; std::getline(file, line);)
        all.push_back(nlohmann::json::parse(line)["tokens"].dump());
      return all;
    };
    EXPECT_EQ(texts(strategy), texts("one"));
    const auto weights = [&](const std::string& name) {
      std::string line;
      std::ifstream file(fixture.run_folder(name) / "rollouts/step-1.jsonl");
      std::getline(file, line);
      return nlohmann::json::parse(line)["weights"];
    };
    EXPECT_EQ(weights(strategy), weights("one")) << strategy;
  }
}

}  // namespace
}  // namespace convoy::testing
