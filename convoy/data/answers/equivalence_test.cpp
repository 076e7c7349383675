// SPDX-License-Identifier: Apache-2.0
//
// The checker against labelled pairs (tests/golden/answers), and what must hold for any answer.
#include "convoy/data/answers/equivalence.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "convoy/data/answers/extraction.h"

namespace convoy::answers {
namespace {

using nlohmann::json;

std::string verdict(std::string_view gold, std::string_view prediction) {
  return std::string(verdict_name(check_answer(gold, prediction)));
}

std::vector<json> labelled_pairs() {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  std::ifstream file(std::string(source == nullptr ? "." : source) +
                     "/tests/golden/answers/pairs.jsonl");
  std::vector<json> pairs;
  for (std::string line; std::getline(file, line);) pairs.push_back(json::parse(line));
  return pairs;
}

TEST(Equivalence, EveryLabelOfTheGoldenPairsIsMet) {
  const std::vector<json> pairs = labelled_pairs();
  ASSERT_GE(pairs.size(), 900u);
  for (const json& pair : pairs)
    EXPECT_EQ(verdict(pair["gold"].get<std::string>(), pair["prediction"].get<std::string>()),
              pair["label"].get<std::string>())
        << pair.dump();
}

// A checker that always says the same would meet half of them.
TEST(Equivalence, TheGoldenPairsHoldBothVerdictsOfEachLargeKind) {
  std::map<std::string, std::set<std::string>> labels;
  std::map<std::string, int> sizes;
  for (const json& pair : labelled_pairs()) {
    labels[pair["kind"]].insert(pair["label"].get<std::string>());
    ++sizes[pair["kind"]];
  }
  EXPECT_GE(sizes.size(), 30u);
  for (const auto& [kind, size] : sizes)
    EXPECT_GE(labels[kind].size(), size >= 8 ? 2u : 1u) << kind;
}

TEST(Equivalence, WhereMathVerifyIsNotCorrectedTheyAgree) {
  int64_t corrected = 0;
  int64_t agreed = 0;
  int64_t others = 0;
  for (const json& pair : labelled_pairs()) {
    if (pair.contains("why")) {
      ++corrected;
      continue;
    }
    ++others;
    agreed += verdict(pair["gold"].get<std::string>(), pair["prediction"].get<std::string>()) ==
              pair["math_verify"].get<std::string>();
  }
  EXPECT_GT(others, 3 * corrected);
  EXPECT_GE(static_cast<double>(agreed), 0.99 * static_cast<double>(others));
}

// Products before brackets, congruences, parameters, options within prose, other scripts, units.
TEST(Equivalence, EveryVerdictOfTheFormsIsMet) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  std::ifstream file(std::string(source == nullptr ? "." : source) +
                     "/tests/golden/answers/forms.txt");
  int forms = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    ++forms;
    constexpr std::string_view kBetween = " | ";
    const size_t gold = line.find(kBetween) + kBetween.size();
    const size_t prediction = line.find(kBetween, gold) + kBetween.size();
    const size_t label = line.rfind(kBetween) + kBetween.size();
    const std::string_view all = line;
    const std::string found = verdict(all.substr(gold, prediction - gold - kBetween.size()),
                                      all.substr(prediction, label - prediction - kBetween.size()));
    EXPECT_EQ(found.substr(0, 1), line.substr(label)) << line;
  }
  EXPECT_GT(forms, 550);
}

TEST(Equivalence, TheReferenceMayAskWhatThePredictionMayNotRepeat) {
  EXPECT_EQ(verdict("1 < x < 2", "(1,2)"), "yes");
  EXPECT_EQ(verdict("4 < 2x < 6", "(2,3)"), "yes");
  EXPECT_EQ(verdict("(2,3)", "2 < x < 3"), "yes");
  EXPECT_EQ(verdict("(2,3)", "4 < 2x < 6"), "unknown");
  EXPECT_EQ(verdict("(2,3)", "2 < x < 4"), "no");
  EXPECT_EQ(verdict("101", "a+2z = 2z+a = 101"), "yes");
  EXPECT_EQ(verdict("a+2z = 101", "101"), "no");
}

TEST(Equivalence, WhatCanNotBeReadIsUnknown) {
  EXPECT_EQ(verdict("", "5"), "unknown");
  EXPECT_EQ(verdict("5", ""), "unknown");
  EXPECT_EQ(verdict("\\int_0^1 x \\, dx", "\\frac{1}{2}"), "unknown");
  EXPECT_EQ(verdict("\\frac{", "5"), "unknown");
  EXPECT_EQ(verdict("1/0", "5"), "unknown");
}

TEST(Equivalence, RaisedCharactersAreExponents) {
  EXPECT_EQ(verdict("10⁸", "100000000"), "yes");
  EXPECT_EQ(verdict("100000000", "10⁸"), "yes");
  EXPECT_EQ(verdict("10⁸", "10⁷"), "no");
  EXPECT_EQ(verdict("x⁻¹", "\\frac{1}{x}"), "yes");
  EXPECT_EQ(verdict("\\frac{1}{x}", "x⁻¹"), "yes");
  EXPECT_EQ(verdict("x⁻¹", "x"), "no");
  EXPECT_EQ(verdict("2²⁰", "1048576"), "yes");
  EXPECT_EQ(verdict("1.5 × 10⁻³", "0.0015"), "yes");
  EXPECT_EQ(verdict("x^n", "xⁿ"), "yes");
  EXPECT_EQ(verdict("x² + 1", "x^2+1"), "yes");
  EXPECT_EQ(verdict("8", "The answer is 2³."), "yes");
  EXPECT_EQ(verdict("81", "So the answer is 3⁴."), "yes");
}

TEST(Equivalence, OverIsAFraction) {
  EXPECT_EQ(verdict("{1 \\over 2}", "0.5"), "yes");
  EXPECT_EQ(verdict("1 \\over 2", "\\frac{1}{2}"), "yes");
  EXPECT_EQ(verdict("\\frac{1}{2}", "{1 \\over 3}"), "no");
  EXPECT_EQ(verdict("\\frac{x+1}{x-1}", "$x+1 \\over x-1$"), "yes");
  EXPECT_EQ(verdict("\\sqrt{1 \\over 4}", "1/2"), "yes");
  EXPECT_EQ(verdict("{1 \\over {2 \\over 3}}", "3/2"), "yes");
  EXPECT_EQ(verdict("x = {a \\over b}", "a/b"), "yes");
  EXPECT_EQ(verdict("(1 \\over 2, 3 \\over 4)", "(0.5, 0.75)"), "yes");
}

TEST(Equivalence, ReferencesThatAreNoAnswerAreUnknown) {
  for (const char* none :
       {"proof", "notfound", " Proof ", "NotFound", "\\boxed{proof}", "\\boxed{\\text{proof}}",
        "#### notfound", "$\\text{proof}$", "proof.", "not found", "N/A", "No answer"})
    for (const char* prediction : {"5", "proof", "notfound", "the proof is complete"})
      EXPECT_EQ(verdict(none, prediction), "unknown") << none << ", " << prediction;
  EXPECT_EQ(verdict("5", "proof"), "unknown");
}

TEST(Equivalence, APartOfTheAnswersIsNotTheAnswer) {
  EXPECT_EQ(verdict("A, C", "A"), "no");
  EXPECT_EQ(verdict("A", "A, C"), "no");
  EXPECT_EQ(verdict("A, C", "C and A"), "yes");
  EXPECT_EQ(verdict("AC", "(A), (C)"), "yes");
  EXPECT_EQ(verdict("A, C", "A, B, C"), "no");
  EXPECT_EQ(verdict("x=2 or x=3", "x=2"), "no");
  EXPECT_EQ(verdict("x=2", "x=2 or x=3"), "no");
  EXPECT_EQ(verdict("x=2 or x=3", "2"), "no");
  EXPECT_EQ(verdict("x=2 or x=3", "x=3 or x=2"), "yes");
  EXPECT_EQ(verdict("x=2 or x=3", "2, 3"), "yes");
}

TEST(Equivalence, ASpentBudgetIsUnknown) {
  const CheckLimits few{.steps = 5};
  EXPECT_EQ(check_answer("x^2+2x+1", "(x+1)^2"), Verdict::Yes);
  EXPECT_EQ(check_answer("x^2+2x+1", "(x+1)^2", few), Verdict::Unknown);
}

TEST(Equivalence, NumbersOfAnySizeAreExact) {
  const std::string digits(300, '7');
  EXPECT_EQ(verdict(digits, digits + ".0"), "yes");
  EXPECT_EQ(verdict(digits, digits.substr(0, 299) + "8"), "no");
  EXPECT_EQ(verdict("5^{1000000000}", "5^{999999999} \\cdot 5"), "yes");
  EXPECT_EQ(verdict("5^{1000000000}", "5^{1000000000} + 1"), "no");
  EXPECT_EQ(verdict("9^{9^{9^{9^9}}}", "9"), "unknown");
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const json& pair : labelled_pairs()) {
    texts.push_back(pair["gold"]);
    texts.push_back(pair["prediction"]);
  }
  return texts;
}

std::string mutated(std::string text, const std::vector<std::string>& texts, std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"\\frac",
                                                   "{",
                                                   "}",
                                                   "^",
                                                   "_",
                                                   "(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "\\sqrt",
                                                   "|",
                                                   "\\{",
                                                   "\\}",
                                                   ",",
                                                   "$",
                                                   "\\boxed{",
                                                   "!",
                                                   "-",
                                                   "\\pm",
                                                   "\\cup",
                                                   "99999999999",
                                                   "\\text{",
                                                   "%",
                                                   "=",
                                                   "<",
                                                   "&",
                                                   "\\\\",
                                                   "\\begin{pmatrix}",
                                                   "\\end{pmatrix}",
                                                   "/",
                                                   ":",
                                                   "\xe2\x88\x9a",
                                                   "\xff"};
  const auto pick = [&](size_t size) { return static_cast<size_t>(random()) % size; };
  for (size_t times = 1 + pick(5); times > 0; --times) {
    const size_t at = pick(text.size() + 1);
    switch (pick(4)) {
      case 0:
        text.erase(at, 1 + pick(4));
        break;
      case 1:
        text.insert(at, kPieces[pick(kPieces.size())]);
        break;
      case 2:
        text.insert(at, texts[pick(texts.size())].substr(0, 20));
        break;
      default: {
        const std::string part = text.substr(at, 1 + pick(10));
        for (size_t copies = pick(40); copies > 0 && text.size() < 2000; --copies)
          text.insert(at, part);
      }
    }
  }
  return text;
}

// The comparison ends and throws nothing, and no answer differs from itself.
TEST(Equivalence, HostileTextsAreAnsweredAndEqualThemselves) {
  const std::vector<std::string> texts = corpus();
  ASSERT_FALSE(texts.empty());
  std::mt19937 random(7);
  for (int count = 0; count < 20'000; ++count) {
    const std::string gold = mutated(texts[random() % texts.size()], texts, random);
    const std::string prediction = mutated(texts[random() % texts.size()], texts, random);
    check_answer(gold, prediction);
    ASSERT_NE(check_answer(gold, gold), Verdict::No) << gold;
  }
}

TEST(Equivalence, DepthAndLengthAreBounded) {
  for (const char* const piece :
       {"(",   "[",       "{",          "\\{",  "\\frac{", "\\sqrt{",
        "-",   "2^",      "\\boxed{",   "|",    "\\pm{6",  "1,",
        "!",   "\\text{", "\\left(",    "sin ", "a ",      "\\begin{pmatrix}",
        "x_{", "<think>", "answer is ", "$"}) {
    std::string deep;
    while (deep.size() < (1 << 20)) deep += piece;
    EXPECT_NE(check_answer(deep, deep), Verdict::No) << piece;
    EXPECT_NE(check_answer("5", deep), Verdict::Yes) << piece;
    check_answer(deep + "5", "\\boxed{5}");
  }
}

TEST(Equivalence, ThreadsShareNothing) {
  const std::vector<json> pairs = labelled_pairs();
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < wrong.size(); ++thread)
    threads.emplace_back([&, thread] {
      for (const json& pair : pairs)
        wrong[thread] += verdict(pair["gold"].get<std::string>(),
                                 pair["prediction"].get<std::string>()) != pair["label"];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(EquivalenceClasses, PoolAnswersInOtherForms) {
  const std::vector<std::string> answers = {"0.5", "3",  "\\frac{1}{2}", "",     "1/2",
                                            "x=3", "no", "3.0",          "50\\%"};
  EXPECT_EQ(equivalence_classes(answers), (std::vector<int>{0, 1, 0, -1, 0, 1, 2, 1, 0}));
  EXPECT_TRUE(equivalence_classes({}).empty());
}

TEST(EquivalenceClasses, KeepApartWhatDiffers) {
  const std::vector<std::string> answers = {"(1,2)", "(2,1)", "\\{1,2\\}", "12"};
  const std::vector<int> classes = equivalence_classes(answers);
  EXPECT_NE(classes[0], classes[1]);
  EXPECT_NE(classes[0], classes[3]);
}

}  // namespace
}  // namespace convoy::answers
