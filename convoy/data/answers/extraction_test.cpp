// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/extraction.h"

#include <gtest/gtest.h>

namespace convoy::answers {
namespace {

TEST(Extraction, TakesTheLastBalancedBox) {
  EXPECT_EQ(extract_answer("so \\boxed{1}. No: \\boxed{\\frac{1}{2}} it is"), "\\frac{1}{2}");
  EXPECT_EQ(extract_answer("$\\boxed{\\{1, \\{2\\}\\}}$"), "\\{1, \\{2\\}\\}");
  EXPECT_EQ(extract_answer("\\fbox{7}"), "7");
  EXPECT_EQ(extract_answer("\\boxed 7 apples"), "7");
  EXPECT_EQ(extract_answer("\\boxed{ 7 }"), "7");
  EXPECT_EQ(extract_answer("it is \\boxed{7}, not \\boxed{8"), "7");
  EXPECT_EQ(extract_answer("the text was cut: \\boxed{7"), "7");
}

TEST(Extraction, JoinsBoxesOfOneAnswer) {
  EXPECT_EQ(extract_answer("$\\boxed{1}$ and $\\boxed{2}$"), "1, 2");
  EXPECT_EQ(extract_answer("$x = \\boxed{1}$, $y = \\boxed{2}$"), "1, 2");
  EXPECT_EQ(extract_answer("$\\boxed{1}$, \\text{ and } \\boxed{2}"), "1, 2");
  EXPECT_EQ(extract_answer("So \\boxed{71}. Wait, \\boxed{72}"), "72");
  EXPECT_EQ(extract_answer("\\boxed{70} was the first guess. However, $\\boxed{72}$"), "72");
  EXPECT_EQ(extract_answer("First \\boxed{\\frac12}. In decimals, \\boxed{0.5}"), "0.5");
  EXPECT_EQ(extract_answer("\\boxed{71} or rather \\boxed{72}"), "72");
  EXPECT_EQ(extract_answer("\\boxed{71}\n\n\\boxed{72}"), "72");
  EXPECT_EQ(extract_answer("\\boxed{5} ... so again \\boxed{5}"), "5");
  EXPECT_EQ(extract_answer("\\boxed{3}, but checking gives \\boxed{7}"), "7");
}

TEST(Extraction, BoxesComeBeforeMarksAndMarksBeforeWords) {
  EXPECT_EQ(extract_answer("The answer is 3. \\boxed{4}"), "4");
  EXPECT_EQ(extract_answer("The answer is 3.\n#### 5"), "5");
  EXPECT_EQ(extract_answer("2 + 3 = <<2+3=5>>5\n#### 1,234\n"), "1,234");
  EXPECT_EQ(extract_answer("First the answer is 3. Then the answer is 4."), "4");
}

TEST(Extraction, ReadsWhatIsAnnounced) {
  EXPECT_EQ(extract_answer("The final answer is $x^2$."), "$x^2$");
  EXPECT_EQ(extract_answer("**Answer:** 12"), "12");
  EXPECT_EQ(extract_answer("Answer = 12"), "12");
  EXPECT_EQ(extract_answer("**Final Answer**\n12"), "12");
  EXPECT_EQ(extract_answer("The answer to the question is 12."), "12");
  EXPECT_EQ(extract_answer("The answer is 3.5."), "3.5");
  EXPECT_EQ(extract_answer("The answer is (B)."), "(B)");
  EXPECT_EQ(extract_answer("Final Answer: The largest $n$ is 34."), "34");
}

TEST(Extraction, ReadsThroughProseAndMarkdown) {
  EXPECT_EQ(extract_answer("There are **9** ways"), "9 ways");
  EXPECT_EQ(extract_answer("It takes 36 minutes."), "36 minutes");
  EXPECT_EQ(extract_answer("The answer is 72 apples, out of 100."), "72 apples");
  EXPECT_EQ(extract_answer("2**3"), "2**3");
}

TEST(Extraction, ThoughtsDoNotCount) {
  EXPECT_EQ(extract_answer("<think>\\boxed{1}</think>It is \\boxed{2}"), "2");
  EXPECT_EQ(extract_answer("\\boxed{1} it may be</think>2"), "2");
  EXPECT_EQ(extract_answer("<think>\\boxed{1}"), "");
}

TEST(Extraction, BareAnswersAreTakenWhole) {
  for (const char* const answer :
       {"42", "x^2+1", "(1, 2)", "no solution", "$\\frac{1}{2}$", "12 apples"})
    EXPECT_EQ(extract_answer(answer), answer);
  EXPECT_EQ(extract_answer("42.\n"), "42");
  EXPECT_EQ(extract_answer("B. 42"), "B. 42");
}

TEST(Extraction, OfProseAModelsLastNumberCountsAndAReferencesDoesNot) {
  const char* const prose = "She had 5 apples and ate 2 of them, which leaves 3 for her friend";
  EXPECT_EQ(extract_answer(prose), "3");
  EXPECT_EQ(extract_answer("We see at once that the two angles together make $90^\\circ$."),
            "90^\\circ");
  EXPECT_EQ(extract_answer("Consider a point on the circle and draw a line through it."), "");
}

TEST(Extraction, PercentBehindABoxBelongsToIt) {
  EXPECT_EQ(extract_answer("$\\boxed{20}$ percent"), "20\\%");
  EXPECT_EQ(extract_answer("$\\boxed{20}$\\%"), "20\\%");
}

TEST(Extraction, ABoxThatIsOnlySpokenOfHoldsNothing) {
  EXPECT_EQ(extract_answer("So \\boxed{7}. I used \\boxed as you asked."), "7");
  EXPECT_EQ(extract_answer("So \\boxed{7}. It stands in \\boxed{} as you asked."), "7");
  EXPECT_EQ(extract_answer("In \\boxed{...} I write: \\boxed{7}, with \\fbox or \\boxed."), "7");
  EXPECT_EQ(extract_answer("$\\boxed x$ or $\\boxed 12$"), "x, 12");
}

TEST(Extraction, AReasonIsNoPartOfTheAnswer) {
  EXPECT_EQ(extract_answer("The correct option is (B) because 3 is prime."), "(B)");
  EXPECT_EQ(extract_answer("A is wrong since 2 < 3. So it's B."), "(B)");
  EXPECT_EQ(extract_answer("The answer is 5, since 2 + 3 = 5."), "5");
  EXPECT_EQ(extract_answer("Answer: B. The reason is that 3 is prime."), "B.");
}

TEST(Extraction, OtherLanguagesAnnounceAnswersToo) {
  EXPECT_EQ(extract_answer("因为3是质数，故选：B"), "B");
  EXPECT_EQ(extract_answer("所以答案是24小时。检验：1+1=2"), "24小时");
  EXPECT_EQ(extract_answer("Значит, 2+2=4. Ответ: 5 см."), "5 см");
  EXPECT_EQ(extract_answer("答案：１２"), "12");
}

}  // namespace
}  // namespace convoy::answers
