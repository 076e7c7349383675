// SPDX-License-Identifier: Apache-2.0
//
// Checks of answers per second of a core's time, over the labelled pairs: answers_bench tests/golden/answers/pairs.jsonl
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convoy/data/answers/equivalence.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: answers_bench PAIRS.jsonl\n");
    return 2;
  }
  std::ifstream file(arguments[1]);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    pairs.emplace_back(row["gold"], row["prediction"]);
  }
  // A model's text around the answer, of the length that reasoning has.
  std::string thought = "<think>";
  while (thought.size() < 8000)
    thought += "Then $x^2 = 4$ and so \\boxed{2} could be it, but wait. ";
  thought += "</think>\n";
  for (const bool with_text : {false, true}) {
    size_t checks = 0;
    size_t right = 0;
    const std::clock_t begin = std::clock();
    double seconds = 0;
    while (seconds < 3) {
      for (const auto& [gold, prediction] : pairs) {
        const convoy::answers::Verdict verdict = convoy::answers::check_answer(
            gold, with_text ? thought + "\\boxed{" + prediction + "}" : prediction);
        right += verdict == convoy::answers::Verdict::Yes;
        ++checks;
      }
      seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    }
    std::printf("%-24s %9.0f checks/s (%zu, %zu yes)\n",
                with_text ? "behind 8 KB of thoughts" : "bare answers",
                static_cast<double>(checks) / seconds, checks, right);
  }
}
