// SPDX-License-Identifier: Apache-2.0
//
// Trains activity recognition as its guide does: tests the flags and the files of a run, and that a
// killed and resumed run ends with the bits of an unbroken run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/progress.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

fs::path example() { return fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/har"; }

// A small network on the 288 windows of the sample, of which about 30 are held out.
const Words kSmall = {"classify.widths=[8, 8]", "classify.kernel_sizes=[3, 3]", "--hidden-dims",
                      "16"};

class ClassifyRuns : public ::testing::Test {
 protected:
  Words command(const std::string& name, const Words& more) const {
    Words words = {"train",      (example() / "har.yaml").string(),
                   "--data-dir", (example() / "sample").string(),
                   "--save-dir", fixture_.run_folder(name).string()};
    words.insert(words.end(), kSmall.begin(), kSmall.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  TrainProcess start(const Words& words) {
    return TrainProcess(words, errors_ / std::to_string(++count_));
  }
  TrainProcess start(const std::string& name, const Words& more) {
    return start(command(name, more));
  }
  Ended run(const std::string& name, const Words& more) { return start(name, more).wait(); }
  Ended run_well(const std::string& name, const Words& more) {
    const Ended ended = run(name, more);
    EXPECT_EQ(ended.status, 0) << ended.errors;
    return ended;
  }

  json results(const std::string& name) const {
    return json::parse(read_file(fixture_.run_folder(name) / "training_results.json"));
  }
  // Returns the results without the measured times.
  json lasting_results(const std::string& name) const {
    json found = results(name);
    for (const char* const key : {"total_time_minutes", "samples_per_second", "config"})
      found.erase(key);
    return found;
  }
  std::string tensorboard_bytes(const std::string& name) const {
    std::string bytes;
    for (const auto& entry : fs::directory_iterator(fixture_.run_folder(name) / "logs"))
      if (entry.path().filename().string().starts_with("events.out.tfevents"))
        bytes += read_file(entry.path());
    return bytes;
  }
  void expect_same_run(const std::string& wanted, const std::string& found) const {
    expect_same_result(fixture_, wanted, found);
    EXPECT_EQ(lasting_results(wanted), lasting_results(found));
  }

  TrainFixture fixture_;

 private:
  TemporaryFolder errors_;
  int count_ = 0;
};

// The guide's first command must learn on two ranks too.
TEST_F(ClassifyRuns, TheQuickTestLearnsTheSample) {
  const Words words = {"train",
                       "--preset",
                       "har-quick-test",
                       "--data-dir",
                       (example() / "sample").string(),
                       "--nproc",
                       "2",
                       "--save-dir",
                       fixture_.run_folder("quick").string()};
  const Ended ended = start(words).wait();
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_GT(results("quick")["test_acc"].get<double>(), 0.85) << ended.errors;
  EXPECT_NE(ended.errors.find("memory of a rank: "), std::string::npos) << ended.errors;
  // The last line shows the speed of the result file.
  const std::string speed =
      telemetry::count_text(results("quick")["samples_per_second"]) + " samples/s";
  EXPECT_NE(ended.errors.rfind(speed), std::string::npos) << speed << "\n" << ended.errors;
}

TEST_F(ClassifyRuns, TakeEveryFlagOfTheGuide) {
  const Ended ended = run_well("guide", {"--multi-gpu",
                                         "ddp",
                                         "--nproc",
                                         "2",
                                         "--local_rank",
                                         "0",
                                         "--mode",
                                         "average",
                                         "--epochs",
                                         "2",
                                         "--batch-size",
                                         "16",
                                         "--lr",
                                         "2e-3",
                                         "--weight-decay",
                                         "1e-3",
                                         "--warmup-epochs",
                                         "1",
                                         "--no-freeze-encoder",
                                         "--hidden-dims",
                                         "24",
                                         "12",
                                         "--dropout",
                                         "0.2",
                                         "--grad-accum-steps",
                                         "2",
                                         "--max-grad-norm",
                                         "0.5",
                                         "--no-amp",
                                         "--num-workers",
                                         "3",
                                         "--early-stopping-patience",
                                         "5",
                                         "--log-interval",
                                         "4"});
  EXPECT_NE(ended.errors.find("16 windows per rank x 2 ranks x 2 accumulation = 64 a step"),
            std::string::npos)
      << ended.errors;
  EXPECT_NE(ended.errors.find("products in fp32"), std::string::npos) << ended.errors;
  const json config = results("guide")["config"];
  EXPECT_EQ(config["parallel.strategy"], "ddp");
  EXPECT_EQ(config["classify.pooling"], "average");
  EXPECT_EQ(config["train.epochs"], 2);
  EXPECT_EQ(config["train.batch_size"], 16);
  EXPECT_EQ(config["train.learning_rate"], 2e-3);
  EXPECT_EQ(config["train.weight_decay"], 1e-3);
  EXPECT_EQ(config["train.warmup_epochs"], 1);
  EXPECT_EQ(config["classify.freeze_encoder"], "false");
  EXPECT_EQ(config["classify.hidden_dims"], (std::vector<int>{24, 12}));
  EXPECT_EQ(config["classify.dropout"], 0.2);
  EXPECT_EQ(config["train.grad_accum"], 2);
  EXPECT_EQ(config["train.max_grad_norm"], 0.5);
  EXPECT_EQ(config["train.bf16"], false);
  EXPECT_EQ(config["classify.num_workers"], 3);
  EXPECT_EQ(config["train.early_stopping_patience"], 5);
  EXPECT_EQ(config["train.logging_steps"], 4);
}

TEST_F(ClassifyRuns, LeaveWhatTheGuidePromises) {
  const Ended ended = run_well("run", {"--epochs", "3", "--nproc", "2"});
  EXPECT_NE(ended.errors.find("macro f1"), std::string::npos) << ended.errors;
  const json found = results("run");
  for (const char* const key : {"best_val_acc", "best_epoch", "test_acc", "test_loss",
                                "total_time_minutes", "history", "config", "samples_per_second"})
    EXPECT_TRUE(found.contains(key) && !found[key].is_null()) << key;
  for (const char* const key : {"train_loss", "train_acc", "val_loss", "val_acc", "learning_rate"})
    EXPECT_EQ(found["history"][key].size(), 3U) << key;
  const double best = found["best_val_acc"];
  for (const double accuracy : found["history"]["val_acc"]) EXPECT_LE(accuracy, best);
  EXPECT_EQ(found["history"]["val_acc"][found["best_epoch"].get<size_t>() - 1], best);
  int64_t tested = 0;
  for (const json& row : found["confusion_matrix"])
    for (const int64_t count : row) tested += count;
  EXPECT_EQ(tested, 120);
  EXPECT_EQ(found["classes"][3]["name"], "SITTING");
  const std::string events = tensorboard_bytes("run");
  for (const char* const tag :
       {"Loss/train", "Loss/val", "Accuracy/train", "Accuracy/val", "Learning_rate"})
    EXPECT_NE(events.find(tag), std::string::npos) << tag;
  const fs::path folder = fixture_.run_folder("run");
  for (const char* const file :
       {"confusion_matrix.svg", "confusion_matrix.png", "model/model.safetensors",
        "model/config.json", "checkpoints/best/model.safetensors",
        "checkpoints/last/buffers.safetensors"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
}

// Labels are codes and not indices. A class without any window does not count in the mean of F1.
TEST_F(ClassifyRuns, TakeLabelsForCodes) {
  const TemporaryFolder folder;
  const fs::path data = folder / "data";
  fs::copy(example() / "sample", data, fs::copy_options::recursive);
  fs::remove(data / "activity_labels.txt");
  const std::vector<std::string> codes = {"0", "7", "20000", "406516", "16777217", "2147483648"};
  for (const fs::path& file : {data / "train/y_train.txt", data / "test/y_test.txt"}) {
    std::string text;
    for (const char label : read_file(file))
      text += label == '\n' ? "\n" : codes[static_cast<size_t>(label - '1')];
    write_file_atomic(file, text);
  }
  const Words settings = {"--epochs", "2"};
  run_well("plain", settings);
  Words coded = settings;
  coded.insert(coded.end(), {"--data-dir", data.string()});
  const Ended ended = run_well("coded", coded);
  EXPECT_NE(ended.errors.find("6 classes (0, 7, 20000, 406516, 16777217, 2147483648)"),
            std::string::npos)
      << ended.errors;
  EXPECT_EQ(results("coded")["confusion_matrix"], results("plain")["confusion_matrix"]);
  EXPECT_EQ(results("coded")["test_macro_f1"], results("plain")["test_macro_f1"]);
  EXPECT_EQ(results("coded")["classes"][2]["name"], "20000");
  std::string subjects;
  for (int window = 0; window < 120; ++window) subjects += "1\n";
  write_file_atomic(data / "test/subject_test.txt", subjects);
  EXPECT_NE(run_well("known", coded).errors.find("warning: subject 1 has windows in the training"),
            std::string::npos);
}

// The run has three epochs, and is killed within epochs and after them.
TEST_F(ClassifyRuns, KilledAndResumedEqualUnbrokenOnes) {
  const Words settings = {"--epochs",
                          "3",
                          "--nproc",
                          "2",
                          "--batch-size",
                          "8",
                          "train.save_strategy=steps",
                          "train.save_steps=3",
                          "logging.log_interval=1"};
  run_well("unbroken", settings);
  for (const int64_t step : {5, 20, 30}) {
    TrainProcess process = start("killed", settings);
    ASSERT_TRUE(process.wait_until([&] { return fixture_.has_event("killed", "step", step); }))
        << process.wait().errors;
    process.kill_everything();
  }
  const Ended resumed = run_well("killed", settings);
  EXPECT_NE(resumed.errors.find("resuming at step"), std::string::npos) << resumed.errors;
  expect_same_run("unbroken", "killed");
}

TEST_F(ClassifyRuns, GoOnOnAnotherNumberOfRanks) {
  const Words settings = {"--epochs", "2", "--batch-size", "8", "--dropout", "0"};
  Words two = settings;
  two.insert(two.end(), {"--nproc", "2"});
  TrainProcess process = start("run", two);
  ASSERT_TRUE(process.wait_until([&] { return fixture_.has_event("run", "checkpoint", 16); }));
  process.kill_everything();
  const Ended resumed = run_well("run", settings);
  EXPECT_NE(resumed.errors.find("= 16 a step"), std::string::npos) << resumed.errors;
  EXPECT_EQ(results("run")["history"]["train_loss"].size(), 2U);
}

TEST_F(ClassifyRuns, OfReplicasInOneProcessEqualThoseOfRanks) {
  const Words settings = {"--epochs", "2", "--batch-size", "16"};
  Words ranks = settings;
  ranks.insert(ranks.end(), {"--multi-gpu", "ddp", "--nproc", "2"});
  run_well("ranks", ranks);
  Words replicas = settings;
  replicas.insert(replicas.end(), {"--multi-gpu", "dp", "parallel.replicas=2"});
  run_well("replicas", replicas);
  expect_same_run("ranks", "replicas");
}

TEST_F(ClassifyRuns, EndEarlyWhenNothingGetsBetter) {
  run_well("run",
           {"--epochs", "9", "--early-stopping-patience", "2", "train.early_stopping_threshold=1"});
  EXPECT_EQ(results("run")["history"]["val_acc"].size(), 3U);
}

TEST_F(ClassifyRuns, StartFromAnEncoderAndLeaveItAsItIs) {
  run_well("first", {"--epochs", "1"});
  const fs::path encoder = fixture_.run_folder("first") / "model";
  const Ended frozen =
      run_well("frozen", {"--epochs", "1", "--encoder-path", encoder.string(), "--nproc", "2"});
  EXPECT_NE(frozen.errors.find("(flatten, frozen)"), std::string::npos) << frozen.errors;
  EXPECT_NE(fixture_.weights("first"), fixture_.weights("frozen"));
  const Ended thawed =
      run_well("thawed", {"--epochs", "1", "--no-freeze-encoder", "--encoder-path",
                          (fixture_.run_folder("first") / "checkpoints/last").string()});
  EXPECT_EQ(thawed.errors.find("frozen"), std::string::npos) << thawed.errors;
  const Ended refused =
      run("refused", {"--epochs", "1", "--mode", "joint", "--encoder-path", encoder.string()});
  EXPECT_EQ(refused.status, 10) << refused.errors;
  EXPECT_NE(refused.errors.find("encoder.0.conv.weight is 8 x 1 x 3, wanted 8 x 6 x 3"),
            std::string::npos)
      << refused.errors;
}

TEST_F(ClassifyRuns, RefuseWhatCanNotBe) {
  const Ended frozen = run("a", {"--freeze-encoder"});
  EXPECT_EQ(frozen.status, 2);
  EXPECT_NE(frozen.errors.find("it would never learn"), std::string::npos) << frozen.errors;
  const Ended mode = run("b", {"--mode", "median"});
  EXPECT_EQ(mode.status, 2);
  EXPECT_NE(mode.errors.find("flatten"), std::string::npos) << mode.errors;
  const Ended nowhere = run("c", {"--data-dir", "/nowhere"});
  EXPECT_EQ(nowhere.status, 10);
  EXPECT_NE(nowhere.errors.find("/nowhere"), std::string::npos) << nowhere.errors;
  const Ended other_data = run("d", {"--epochs", "1"});
  EXPECT_EQ(other_data.status, 0) << other_data.errors;
  const Ended resumed = run("d", {"--epochs", "2", "seed=7"});
  EXPECT_EQ(resumed.status, 2) << resumed.errors;
  EXPECT_NE(resumed.errors.find("seed"), std::string::npos) << resumed.errors;
}

TEST_F(ClassifyRuns, RefuseSplitsThatDoNotFitEachOther) {
  const TemporaryFolder folder;
  const fs::path data = folder / "data";
  const auto refused = [&] { return run("run", {"--data-dir", data.string()}).errors; };
  fs::copy(example() / "sample", data, fs::copy_options::recursive);
  const std::string classes = read_file(data / "test/y_test.txt");
  write_file_atomic(data / "test/y_test.txt", "7" + classes.substr(1));
  EXPECT_NE(refused().find("y_test.txt:1: label 7 is no class: "), std::string::npos);
  write_file_atomic(data / "test/y_test.txt", classes);
  fs::rename(data / "test/Inertial Signals/body_gyro_x_test.txt",
             data / "test/Inertial Signals/gyro_test.txt");
  EXPECT_NE(refused().find("wanted the channels of train (body_gyro_x, "), std::string::npos);
}

}  // namespace
}  // namespace convoy::testing
