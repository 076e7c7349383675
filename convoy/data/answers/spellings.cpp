// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/spellings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace convoy::answers {
namespace {

struct SpellingEntry {
  std::string_view spelling;
  Spelled spelled;
};

constexpr Spelled sign(std::string_view text) { return {TokenType::Sign, text}; }
constexpr Spelled letter(std::string_view text) { return {TokenType::Letter, text}; }
constexpr Spelled function(std::string_view text) { return {TokenType::Function, text}; }
constexpr Spelled word(std::string_view text) { return {TokenType::Word, text}; }
constexpr Spelled nothing() { return {TokenType::Sign, ""}; }

constexpr SpellingEntry kCommands[] = {
    {"frac", sign("frac")},
    {"dfrac", sign("frac")},
    {"tfrac", sign("frac")},
    {"nicefrac", sign("frac")},
    {"sfrac", sign("frac")},
    {"flatfrac", sign("frac")},
    {"cfrac", sign("frac")},
    {"over", sign("over")},
    {"sqrt", sign("sqrt")},
    {"binom", sign("binom")},
    {"dbinom", sign("binom")},
    {"tbinom", sign("binom")},
    {"sum", sign("sum")},
    {"prod", sign("prod")},
    {"cdot", sign("*")},
    {"times", sign("*")},
    {"ast", sign("*")},
    {"div", sign("/")},
    {"pm", sign("pm")},
    {"mp", sign("mp")},
    {"le", sign("<=")},
    {"leq", sign("<=")},
    {"leqslant", sign("<=")},
    {"leqq", sign("<=")},
    {"ge", sign(">=")},
    {"geq", sign(">=")},
    {"geqslant", sign(">=")},
    {"geqq", sign(">=")},
    {"lt", sign("<")},
    {"gt", sign(">")},
    {"ne", sign("!=")},
    {"neq", sign("!=")},
    {"approx", sign("approx")},
    {"simeq", sign("approx")},
    {"equiv", sign("equiv")},
    {"in", sign("in")},
    {"notin", sign("notin")},
    {"cup", sign("union")},
    {"cap", sign("intersection")},
    {"setminus", sign("setminus")},
    {"backslash", sign("setminus")},
    {"smallsetminus", sign("setminus")},
    {"mid", sign("|")},
    {"vert", sign("|")},
    {"lvert", sign("|")},
    {"rvert", sign("|")},
    {"colon", sign(":")},
    {"langle", sign("langle")},
    {"rangle", sign("rangle")},
    {"lfloor", sign("lfloor")},
    {"rfloor", sign("rfloor")},
    {"lceil", sign("lceil")},
    {"rceil", sign("rceil")},
    {"lbrace", sign("\\{")},
    {"rbrace", sign("\\}")},
    {"lbrack", sign("[")},
    {"rbrack", sign("]")},
    {"circ", sign("degree")},
    {"degree", sign("degree")},
    {"prime", sign("'")},
    {"infty", letter("infinity")},
    {"emptyset", sign("emptyset")},
    {"varnothing", sign("emptyset")},
    {"wedge", word("and")},
    {"land", word("and")},
    {"vee", word("or")},
    {"lor", word("or")},
    {"to", sign("implies")},
    {"rightarrow", sign("implies")},
    {"Rightarrow", sign("implies")},
    {"implies", sign("implies")},
    {"Longrightarrow", sign("implies")},
    {"iff", sign("implies")},
    {"Leftrightarrow", sign("implies")},
    {"therefore", nothing()},
    {"percent", sign("%")},
    {"pounds", word("pounds")},
    {"euro", word("euros")},
    {"AA", word("angstrom")},
    {"bmod", sign("mod")},
    {"mod", sign("mod")},
    {"pmod", sign("pmod")},
    {"pod", sign("pmod")},
    {"mathbb", sign("mathbb")},
    {"Bbb", sign("mathbb")},
    {"ldots", sign("dots")},
    {"dots", sign("dots")},
    {"cdots", sign("dots")},
    {"dotsc", sign("dots")},
    {"i", letter("i")},
    {"imath", letter("i")},
    {"ell", letter("ell")},
    {"angle", nothing()},
    {"triangle", nothing()},
    {"left", nothing()},
    {"right", nothing()},
    {"big", nothing()},
    {"Big", nothing()},
    {"bigg", nothing()},
    {"Bigg", nothing()},
    {"bigl", nothing()},
    {"bigr", nothing()},
    {"Bigl", nothing()},
    {"Bigr", nothing()},
    {"biggl", nothing()},
    {"biggr", nothing()},
    {"Biggl", nothing()},
    {"Biggr", nothing()},
    {"middle", nothing()},
    {"displaystyle", nothing()},
    {"textstyle", nothing()},
    {"scriptstyle", nothing()},
    {"limits", nothing()},
    {"quad", nothing()},
    {"qquad", nothing()},
    {"enspace", nothing()},
    {"thinspace", nothing()},
    {"mathstrut", nothing()},
    {"boxed", nothing()},
    {"fbox", nothing()},
    {"mathbf", nothing()},
    {"boldsymbol", nothing()},
    {"bm", nothing()},
    {"mathcal", nothing()},
    {"mathscr", nothing()},
    {"vec", nothing()},
    {"hat", nothing()},
    {"bar", nothing()},
    {"underline", nothing()},
    {"overrightarrow", nothing()},
    {"displaylimits", nothing()},
    {"rm", nothing()},
    {"bf", nothing()},
    {"it", nothing()},
    {"tt", nothing()},
    {"alpha", letter("alpha")},
    {"beta", letter("beta")},
    {"gamma", letter("gamma")},
    {"delta", letter("delta")},
    {"epsilon", letter("epsilon")},
    {"varepsilon", letter("epsilon")},
    {"zeta", letter("zeta")},
    {"eta", letter("eta")},
    {"theta", letter("theta")},
    {"vartheta", letter("theta")},
    {"iota", letter("iota")},
    {"kappa", letter("kappa")},
    {"lambda", letter("lambda")},
    {"mu", letter("mu")},
    {"nu", letter("nu")},
    {"xi", letter("xi")},
    {"pi", letter("pi")},
    {"rho", letter("rho")},
    {"sigma", letter("sigma")},
    {"tau", letter("tau")},
    {"phi", letter("phi")},
    {"varphi", letter("phi")},
    {"chi", letter("chi")},
    {"psi", letter("psi")},
    {"omega", letter("omega")},
    {"Gamma", letter("Gamma")},
    {"Delta", letter("Delta")},
    {"Theta", letter("Theta")},
    {"Lambda", letter("Lambda")},
    {"Sigma", letter("Sigma")},
    {"Phi", letter("Phi")},
    {"Psi", letter("Psi")},
    {"Omega", letter("Omega")},
};

constexpr SpellingEntry kWords[] = {
    {"sin", function("sin")},       {"cos", function("cos")},
    {"tan", function("tan")},       {"tg", function("tan")},
    {"cot", function("cot")},       {"ctg", function("cot")},
    {"sec", function("sec")},       {"csc", function("csc")},
    {"arcsin", function("arcsin")}, {"arccos", function("arccos")},
    {"arctan", function("arctan")}, {"arccot", function("arccot")},
    {"arctg", function("arctan")},  {"arcctg", function("arccot")},
    {"asin", function("arcsin")},   {"acos", function("arccos")},
    {"atan", function("arctan")},   {"sinh", function("sinh")},
    {"cosh", function("cosh")},     {"tanh", function("tanh")},
    {"log", function("log")},       {"ln", function("ln")},
    {"lg", function("log")},        {"exp", function("exp")},
    {"max", function("max")},       {"min", function("min")},
    {"gcd", function("gcd")},       {"lcm", function("lcm")},
    {"det", function("det")},       {"abs", function("abs")},
    {"floor", function("floor")},   {"ceil", function("ceil")},
    {"sqrt", sign("sqrt")},         {"cbrt", function("cbrt")},
    {"pi", letter("pi")},           {"theta", letter("theta")},
    {"alpha", letter("alpha")},     {"beta", letter("beta")},
    {"lambda", letter("lambda")},   {"inf", letter("infinity")},
    {"infty", letter("infinity")},  {"infinity", letter("infinity")},
    {"percent", sign("%")},         {"pct", sign("%")},
    {"percentage", sign("%")},      {"degrees", sign("degree")},
    {"degree", sign("degree")},     {"deg", sign("degree")},
    {"union", sign("union")},       {"mod", sign("mod")},
    {"modulo", sign("mod")},
};

constexpr SpellingEntry kCharacters[] = {
    {"−", sign("-")},
    {"–", sign("-")},
    {"—", sign("-")},
    {"×", sign("*")},
    {"·", sign("*")},
    {"⋅", sign("*")},
    {"∙", sign("*")},
    {"÷", sign("/")},
    {"⁄", sign("/")},
    {"±", sign("pm")},
    {"∓", sign("mp")},
    {"≤", sign("<=")},
    {"⩽", sign("<=")},
    {"≥", sign(">=")},
    {"≦", sign("<=")},
    {"≧", sign(">=")},
    {"∶", sign(":")},
    {"﹣", sign("-")},
    {"µ", letter("mu")},
    {"\xe2\x84\xa6", letter("Omega")},
    {"或者", word("or")},
    {"或", word("or")},
    {"以及", word("and")},
    {"和", word("and")},
    {"与", word("and")},
    {"及", word("and")},
    {"且", word("and")},
    {"⩾", sign(">=")},
    {"≠", sign("!=")},
    {"≈", sign("approx")},
    {"≡", sign("equiv")},
    {"∈", sign("in")},
    {"∉", sign("notin")},
    {"∪", sign("union")},
    {"∩", sign("intersection")},
    {"∖", sign("setminus")},
    {"√", sign("sqrt")},
    {"°", sign("degree")},
    {"º", sign("degree")},
    {"˚", sign("degree")},
    {"∘", sign("degree")},
    {"∅", sign("emptyset")},
    {"Ø", sign("emptyset")},
    {"∞", letter("infinity")},
    {"π", letter("pi")},
    {"α", letter("alpha")},
    {"β", letter("beta")},
    {"γ", letter("gamma")},
    {"δ", letter("delta")},
    {"ε", letter("epsilon")},
    {"θ", letter("theta")},
    {"λ", letter("lambda")},
    {"μ", letter("mu")},
    {"ρ", letter("rho")},
    {"σ", letter("sigma")},
    {"τ", letter("tau")},
    {"φ", letter("phi")},
    {"ω", letter("omega")},
    {"Δ", letter("Delta")},
    {"Ω", letter("Omega")},
    {"ℝ", sign("set R")},
    {"ℤ", sign("set Z")},
    {"ℕ", sign("set N")},
    {"ℚ", sign("set Q")},
    {"ℂ", sign("set C")},
    {"⌊", sign("lfloor")},
    {"⌋", sign("rfloor")},
    {"⌈", sign("lceil")},
    {"⌉", sign("rceil")},
    {"⟨", sign("langle")},
    {"⟩", sign("rangle")},
    {"…", sign("dots")},
    {"→", sign("implies")},
    {"⇒", sign("implies")},
    {"∧", word("and")},
    {"∨", word("or")},
    {"′", sign("'")},
    {"’", sign("'")},
    {"‘", sign("'")},
    {"“", nothing()},
    {"”", nothing()},
    {"\xc2\xa0", nothing()},
    {"\xe2\x80\x89", nothing()},
    {"\xe2\x80\xaf", nothing()},
    {"\xe2\x80\x8b", nothing()},
    {"\xef\xbb\xbf", nothing()},
    {"\xc3\x85", word("angstrom")},
    {"\xe2\x84\xab", word("angstrom")},
    {"¢", word("cents")},
    {"€", word("euros")},
    {"£", word("sterling")},
    {"¥", word("yuan")},
    {"₹", word("rupees")},
    {"²", sign("^2")},
    {"³", sign("^3")},
    {"½", sign("frac 1 2")},
    {"⅓", sign("frac 1 3")},
    {"⅔", sign("frac 2 3")},
    {"¼", sign("frac 1 4")},
    {"¾", sign("frac 3 4")},
    {"⅕", sign("frac 1 5")},
    {"⅛", sign("frac 1 8")},
    {"（", sign("(")},
    {"）", sign(")")},
    {"【", sign("[")},
    {"】", sign("]")},
    {"，", sign(",")},
    {"、", sign(",")},
    {"；", sign(";")},
    {"：", sign(":")},
    {"％", sign("%")},
    {"＝", sign("=")},
    {"。", sign(".")},
};

constexpr std::pair<std::string_view, char> kRaised[] = {
    {"⁰", '0'}, {"¹", '1'}, {"²", '2'}, {"³", '3'}, {"⁴", '4'}, {"⁵", '5'}, {"⁶", '6'},
    {"⁷", '7'}, {"⁸", '8'}, {"⁹", '9'}, {"⁺", '+'}, {"⁻", '-'}, {"ⁿ", 'n'}};

constexpr std::string_view kTextCommands[] = {
    "text",       "textbf", "textit",       "textrm", "texttt", "textsf",
    "textnormal", "mathrm", "mathit",       "mathsf", "mathtt", "mbox",
    "hbox",       "emph",   "operatorname", "unit",   "si"};

constexpr std::string_view kDropped[] = {"hspace", "vspace",   "phantom",  "tag",      "label",
                                         "color",  "hphantom", "vphantom", "textcolor"};

template <size_t kSize>
struct Table {
  std::array<SpellingEntry, kSize> entries;
  explicit Table(const SpellingEntry (&list)[kSize]) {
    std::copy(std::begin(list), std::end(list), entries.begin());
    std::sort(entries.begin(), entries.end(), [](const SpellingEntry& a, const SpellingEntry& b) {
      return a.spelling < b.spelling;
    });
  }
  const Spelled* find(std::string_view spelling) const {
    const auto found = std::lower_bound(entries.begin(), entries.end(), spelling,
                                        [](const SpellingEntry& entry, std::string_view wanted) {
                                          return entry.spelling < wanted;
                                        });
    return found != entries.end() && found->spelling == spelling ? &found->spelled : nullptr;
  }
};

}  // namespace

const Spelled* spelled_command(std::string_view name) {
  static const Table kTable(kCommands);
  return kTable.find(name);
}

const Spelled* spelled_word(std::string_view spelling) {
  static const Table kTable(kWords);
  return kTable.find(spelling);
}

const Spelled* spelled_character(std::string_view text, size_t& length) {
  for (const SpellingEntry& entry : kCharacters)
    if (text.starts_with(entry.spelling)) {
      length = entry.spelling.size();
      return &entry.spelled;
    }
  return nullptr;
}

char raised_character(std::string_view text, size_t& length) {
  for (const auto& [spelling, letter] : kRaised)
    if (text.starts_with(spelling)) {
      length = spelling.size();
      return letter;
    }
  return 0;
}

int circled_number(std::string_view word) {
  constexpr std::string_view kLead = "\xe2\x91";  // first bytes of ① to ⑳
  if (word.size() != 3 || !word.starts_with(kLead)) return 0;
  const int number = static_cast<unsigned char>(word[2]) - 0xa0 + 1;
  return number >= 1 && number <= 20 ? number : 0;
}

bool is_text_command(std::string_view name) {
  return std::find(std::begin(kTextCommands), std::end(kTextCommands), name) !=
         std::end(kTextCommands);
}

bool is_dropped_with_argument(std::string_view name) {
  return std::find(std::begin(kDropped), std::end(kDropped), name) != std::end(kDropped);
}

}  // namespace convoy::answers
