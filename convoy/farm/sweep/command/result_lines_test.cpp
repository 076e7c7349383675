// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/result_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "convoy/farm/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

// Returns the result, for example "0.5", or the kind of the failure. The loss 2.5 of epoch 1
// precedes `line` and is never the result.
std::string result_after(const OutputLine& line, const std::string& key = "loss") {
  ResultLines lines({key});
  lines.take({.text = "{\"epoch\": 1, \"loss\": 2.5, \"final\": {\"loss\": 2.5}}"});
  lines.take(line);
  try {
    const double value = lines.value(key);
    return std::isfinite(value) ? fmt::format("{}", value) : "non_finite";
  } catch (const TaskFailure& failed) {
    return failed.failure().kind;
  }
}

std::string result_after(const std::string& line, const std::string& key = "loss") {
  return result_after(OutputLine{.text = line}, key);
}

TEST(ResultLines, NotANumberInAnySpellingIsNotFinite) {
  for (const char* const word : {"nan",       "NaN",
                                 "NAN",       "-nan",
                                 "+nan",      "inf",
                                 "-inf",      "+inf",
                                 "Inf",       "+Inf",
                                 "-Inf",      "INF",
                                 "Infinity",  "-Infinity",
                                 "+Infinity", "infinity",
                                 "nan(ind)",  "-nan(ind)",
                                 "1.#QNAN",   "-1.#IND",
                                 "1.#INF",    "nan(0x8000000000000)",
                                 "1e999",     "-1e400",
                                 "\"nan\"",   "\"Infinity\"",
                                 "∞"})
    EXPECT_EQ(result_after(fmt::format("{{\"epoch\": 2, \"loss\": {}}}", word)), "non_finite")
        << word;
  for (const char* const line :
       {"{'epoch': 2, 'loss': nan}", "{'loss': inf, 'epoch': 2}", "{'loss': np.float64(nan)}",
        "{'loss': np.float32(-inf)}", "{'loss': tensor(nan)}",
        "{'loss': tensor(nan, device='cuda:0')}", "{'loss': float('nan')}",
        "{ epoch: 2, loss: NaN }", "{:epoch=>2, :loss=>NaN}", "{\"loss\"=>nan}",
        "{\"loss\": Decimal('NaN')}", "{\"loss\": torch.tensor(inf)}"})
    EXPECT_EQ(result_after(line), "non_finite") << line;
}

TEST(ResultLines, ALaterLineThatCannotBeReadIsNoOlderValue) {
  for (const char* const line : {"{'epoch': 2, 'loss': 0.4}",
                                 "{\"loss\": 0.4,}",
                                 "{\"loss\": 0,4}",
                                 "{\"loss\": .4}",
                                 "{\"loss\": np.float64(0.4)}",
                                 "{'loss': tensor(0.4000, grad_fn=<MseLossBackward0>)}",
                                 "{\"loss\": 0.",
                                 "{\"loss\": ",
                                 "{\"loss\"",
                                 "{\"epoch\": 2, \"lo",
                                 "{'epoch': 2, 'lo",
                                 "{loss: 0.4}",
                                 "{ epoch: 2, loss: 0.4 }",
                                 "{\"epoch\": 2 \"loss\": 0.4}",
                                 "step 3: {'loss': 0.4}",
                                 "\x1b[32m{'loss': 0.4}\x1b[0m",
                                 "  \"loss\": 0.4,",
                                 "'loss': 0.4}",
                                 "[{\"loss\": 0.1}, {\"loss\": 0.4}]",
                                 "({\"loss\": 0.4},)",
                                 "\"valid\": {\"loss\": 0.4}",
                                 "{\"loss\": null}",
                                 "{\"loss\": \"oops\"}",
                                 "{\"loss\": [0.4]}",
                                 "{\"loss\": true}",
                                 "msg=\"{\\\"loss\\\": 0.4}\"",
                                 "{\"loss\": 0.4, \"note\": \"\xff\"}",
                                 "{\"loss\": 0x1p-1}"})
    EXPECT_EQ(result_after(line), "output") << line;
  EXPECT_EQ(result_after(OutputLine{.text = "{\"epoch\": 2, ", .ended = false}), "output");
  EXPECT_EQ(result_after(OutputLine{.text = "{\"history\": [1, 2", .too_long = true}), "output");
}

TEST(ResultLines, AnObjectIsReadWhateverStandsBeside) {
  for (const char* const line :
       {"{\"loss\": 0.5}", "step 3: {\"loss\": 0.5}", "[3/10] {\"loss\": 0.5} (best)",
        "INFO:root:{\"epoch\": 2, \"loss\": 0.5}", "\x1b[32m{\"loss\": 0.5}\x1b[0m",
        "\x1b[1mdone\x1b[0m {\"loss\": \x1b[31m0.5\x1b[0m}", "\x1b]8;;http://a\x07{\"loss\": 0.5}",
        "{\"loss\": 2.5}{\"loss\": 0.5}", "{\"epoch\": 2} {\"loss\": 0.5}",
        "{\"loss\": 0.5} {\"epoch\": 2}", "{epoch 2} {\"loss\": 0.5}",
        "{\"loss\": 0.5, \"grad\": nan}", "\xef\xbb\xbf{\"loss\": 5e-1}"})
    EXPECT_EQ(result_after(line), "0.5") << line;
  EXPECT_EQ(result_after("{\"final\": {\"loss\": 0.5}}", "final.loss"), "0.5");
  EXPECT_EQ(result_after("{'final': {'loss': nan}}", "final.loss"), "non_finite");
  EXPECT_EQ(result_after("{\"pr\\u00e9cision\": 0.5}", "précision"), "0.5");
}

TEST(ResultLines, OtherLinesSayNothingOfTheKey) {
  for (const char* const line : {"",
                                 "done",
                                 "Epoch 2, val_loss: nan",
                                 "val loss: nan",
                                 "eval.loss=nan",
                                 "loss 2 of 3",
                                 "val loss nan",
                                 "loss nanny",
                                 "| val loss | nan |",
                                 "nan loss: 0.3",
                                 "loss: nanny",
                                 "aux loss: 0.1",
                                 "test loss: inf",
                                 "loss: 2-norm",
                                 "computing loss",
                                 "computing loss: please wait",
                                 "lossless: 0.4",
                                 "glossary = 4",
                                 "eval/loss: nan",
                                 "val-loss: nan",
                                 "{\"settings\": {\"loss\": \"mse\"}}",
                                 "{\"metrics\": {\"val_loss\": 0.4}}",
                                 "{\"metrics\": [0.4]} {\"names\": [\"loss\"]}",
                                 "{\"epoch\": 2}",
                                 "{\"val-loss\": 0.4}",
                                 "{\"val_loss\": nan}",
                                 "{'val_loss': nan}",
                                 "{\"eval.loss\": 0.4}",
                                 "{'eval.loss': nan}",
                                 "{\"metric\": \"loss\"}",
                                 "epoch {1}",
                                 "{",
                                 "}",
                                 "{'lr': 0.1,",
                                 "wrote the loss to {out}",
                                 "{\"losses\": [1]}"})
    EXPECT_EQ(result_after(line), "2.5") << line;
  EXPECT_EQ(result_after("{\"loss\": 0.4}", "final.loss"), "2.5");
  EXPECT_EQ(result_after(OutputLine{.text = "0000000", .too_long = true}), "2.5");
}

TEST(ResultLines, ALineWithoutAnObjectThatIsNotFiniteEndsTheOlderValue) {
  for (const char* const line :
       {"loss: nan", "loss=nan", "loss = NaN", "  loss:\tinf", "Epoch 2, loss: nan",
        "Epoch 2 loss: nan", "epoch=2 loss=-inf lr=0.1", "[2/10] loss: nan",
        "step 3 - loss: nan - acc: 0.1", "\x1b[31mloss: nan\x1b[0m",
        "loss: tensor(nan, device='cuda:0')", "{\"epoch\": 2} loss: nan"})
    EXPECT_EQ(result_after(line), "non_finite") << line;
  // Without another line, "loss: nan" is no result, as "loss: 0.4" is none.
  ResultLines lines({"loss"});
  lines.take({.text = "loss: nan"});
  EXPECT_THROW(lines.value("loss"), TaskFailure);
  lines.take({.text = "{\"loss\": 0.5}"});
  EXPECT_EQ(lines.value("loss"), 0.5);
}

TEST(ResultLines, ALineWithoutAnObjectThatGivesTheKeyAValueEndsTheOlderValue) {
  for (const char* const line :
       {"final loss: nan", "Final Loss = NaN", "training loss: nan", "**loss**: nan",
        "Done. Loss: inf", "loss: nan {\"epoch\": 2}", "loss nan", "iter 10: loss nan, time 3ms",
        "epoch 2 | loss nan | acc 0.1", "loss is nan", "| loss | nan |", "{\"Loss\": NaN}"})
    EXPECT_EQ(result_after(line), "non_finite") << line;
  for (const char* const line :
       {"loss: 0.4", "loss=0.4", "final loss: 0.4.", "Epoch 2, mean loss = 4e-1 (best)",
        "'loss' = 0.4", "loss => tensor(0.4, device='cuda:0')", "total loss: 40%",
        "100% {1/10}, loss: 0.3", "loss: 0.4 {\"epoch\": 2}", "iter 10: loss 0.3",
        "| loss | 0.3 |"})
    EXPECT_EQ(result_after(line), "output") << line;
  ResultLines lines({"loss"});
  lines.take({.text = "loss: 0.4"});
  lines.take({.text = "{\"loss\": 0.5}"});
  EXPECT_EQ(lines.value("loss"), 0.5);
}

TEST(ResultLines, ANumberDeeperInAnObjectEndsTheOlderValue) {
  for (const char* const line :
       {"{\"metrics\": {\"loss\": 0.4}}", "{\"train\": {\"loss\": 0.4}}",
        "{\"a\": [{\"b\": {\"loss\": 4}}]}", "{\"metrics\": {\"loss\": null}}"})
    EXPECT_EQ(result_after(line), "output") << line;
  EXPECT_EQ(result_after("{\"last\": {\"loss\": NaN}}"), "non_finite");
  EXPECT_EQ(result_after("{\"best\": {\"final\": {\"loss\": 0.4}}}", "final.loss"), "output");
}

TEST(ResultLines, AKeyMayBeWrittenInCodes) {
  EXPECT_EQ(result_after("{\"lo\\u0073s\": 0.5}"), "0.5");
  EXPECT_EQ(result_after("{\"\\u006coss\": nan}"), "non_finite");
  EXPECT_EQ(result_after("{\"final\": {\"l\\u006Fss\": 0.5}}", "final.loss"), "0.5");
}

TEST(ResultLines, WordsOfTheLineAreInTheFailure) {
  ResultLines lines({"loss", "acc"});
  const auto message = [&](const std::string& key) -> std::string {
    try {
      lines.value(key);
    } catch (const TaskFailure& failed) {
      return failed.failure().message;
    }
    return "";
  };
  EXPECT_EQ(message("loss"), "no line of stdout is a JSON object with `loss`; it is empty");
  lines.take({.text = "{'loss': 0.4}"});
  EXPECT_EQ(message("loss"),
            "the last line of stdout with `loss` cannot be read: `{'loss': 0.4}`; wanted a JSON "
            "object on one line");
  EXPECT_NE(message("acc").find("its last is `{'loss': 0.4}`"), std::string::npos);
  // A later line that can be read gives the results.
  lines.take({.text = "{\"loss\": 0.4, \"acc\": 1}"});
  EXPECT_EQ(lines.value("loss"), 0.4);
  EXPECT_EQ(lines.value("acc"), 1);
}

}  // namespace
}  // namespace convoy::sweep
