// SPDX-License-Identifier: Apache-2.0
//
// The table of units, and the rules for their names.
#include <algorithm>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/measure_unit.h"

namespace convoy::answers {
namespace {

using Powers = std::array<int8_t, 5>;

constexpr Powers kLength = {1, 0, 0, 0, 0};
constexpr Powers kArea = {2, 0, 0, 0, 0};
constexpr Powers kVolume = {3, 0, 0, 0, 0};
constexpr Powers kMass = {0, 1, 0, 0, 0};
constexpr Powers kTime = {0, 0, 1, 0, 0};
constexpr Powers kRate = {0, 0, -1, 0, 0};
constexpr Powers kSpeed = {1, 0, -1, 0, 0};
constexpr Powers kMoney = {0, 0, 0, 1, 0};
constexpr Powers kAngle = {0, 0, 0, 0, 1};
constexpr Powers kForce = {1, 1, -2, 0, 0};
constexpr Powers kPressure = {-1, 1, -2, 0, 0};
constexpr Powers kEnergy = {2, 1, -2, 0, 0};
constexpr Powers kPower = {2, 1, -3, 0, 0};
constexpr Powers kNone = {};
// Exponents of electric units, beside a power of the coulomb: 1 V is 1 J/C, 1 Ohm is 1 V/A.
constexpr Powers kOhm = {2, 1, -1, 0, 0};
constexpr Powers kHenry = {2, 1, 0, 0, 0};
constexpr Powers kFarad = {-2, -1, 2, 0, 0};
constexpr Powers kSiemens = {-2, -1, 1, 0, 0};
constexpr Powers kTesla = {0, 1, -1, 0, 0};
constexpr std::string_view kCharge = "coulomb";

struct UnitEntry {
  std::string_view names;  // each between spaces; a plural "s" of Latin words need not be listed
  Powers powers;
  int64_t above = 1;
  int64_t below = 1;
  std::string_view other = {};  // name of a dimension that is not in `powers`
  int other_power = 1;
};

constexpr UnitEntry kUnits[] = {
    {" m meter metre 米 м метр метра метров ", kLength},
    {" cm centimeter centimetre 厘米 公分 ㎝ см сантиметр сантиметра сантиметров ", kLength, 1,
     100},
    {" mm millimeter millimetre 毫米 ㎜ мм миллиметр миллиметра миллиметров ", kLength, 1, 1000},
    {" dm decimeter decimetre 分米 дм дециметр дециметра дециметров ", kLength, 1, 10},
    {" km kilometer kilometre 千米 公里 ㎞ км километр километра километров ", kLength, 1000},
    {" micrometer micrometre micron 微米 мкм ", kLength, 1, 1000000},
    {" nanometer nanometre 纳米 нм ", kLength, 1, 1000000000},
    {" angstrom ", kLength, 1, 10000000000},
    {" inch inches 英寸 дюйм дюйма дюймов ", kLength, 254, 10000},
    {" ft foot feet 英尺 фут фута футов ", kLength, 3048, 10000},
    {" yd yard 码 ", kLength, 9144, 10000},
    {" 里 华里 ", kLength, 500},
    {" 丈 ", kLength, 10, 3},
    {" 尺 ", kLength, 1, 3},
    {" 寸 ", kLength, 1, 30},
    {" furlong ", kLength, 201168, 1000},
    {" mi mile 英里 миля мили миль ", kLength, 1609344, 1000},
    {" ㎡ ", kArea},
    {" 亩 ", kArea, 2000, 3},
    {" 公顷 hectare ha га ", kArea, 10000},
    {" g gm gram gramme 克 г гр грамм грамма граммов ", kMass},
    {" kg kilogram kilo 千克 公斤 ㎏ кг килограмм килограмма килограммов ", kMass, 1000},
    {" mg milligram 毫克 мг ", kMass, 1, 1000},
    {" microgram 微克 мкг ", kMass, 1, 1000000},
    {" tonne 吨 т тонна тонны тонн ", kMass, 1000000},
    {" 斤 ", kMass, 500},
    {" 两 兩 ", kMass, 50},
    {" ц центнер центнера центнеров ", kMass, 100000},
    {" lb pound ", kMass, 45359237, 100000},
    {" oz ounce ", kMass, 45359237, 1600000},
    {" s sec second 秒 с сек секунда секунды секунд ", kTime},
    {" ms millisecond 毫秒 мс ", kTime, 1, 1000},
    {" microsecond 微秒 мкс ", kTime, 1, 1000000},
    {" min minute 分钟 分 мин минута минуты минут ", kTime, 60},
    {" h hr hour 小时 时 ч час часа часов ", kTime, 3600},
    {" day 天 日 день дня дней сутки суток ", kTime, 86400},
    {" 刻 刻钟 ", kTime, 900},
    {" fortnight ", kTime, 1209600},
    {" week 周 星期 неделя недели недель ", kTime, 604800},
    {" l liter litre 升 л литр литра литров ", kVolume, 1, 1000},
    {" ml milliliter millilitre cc 毫升 мл ", kVolume, 1, 1000000},
    {" mph ", kSpeed, 1609344, 3600000},
    {" kmph kmh kph ", kSpeed, 1000, 3600},
    {" mps ", kSpeed},
    {" dollar buck usd 美元 доллар доллара долларов ", kMoney, 100},
    {" cent penny pennies 美分 цент цента центов ", kMoney},
    {" degree deg 度 градус градуса градусов ", kAngle},
    {" newton 牛 牛顿 Н ньютон ", kForce, 1000},
    {" joule 焦 焦耳 Дж джоуль ", kEnergy, 1000},
    {" Nm ", kEnergy, 1000},
    {" kwh кВтч ", kEnergy, 3600000000},
    {" watt 瓦 瓦特 Вт ватт ", kPower, 1000},
    {" kilowatt 千瓦 кВт ", kPower, 1000000},
    {" pascal 帕 Па ", kPressure, 1000},
    {" hertz hz 赫兹 Гц герц ", kRate},
    {" celsius ℃ 摄氏度 ", kNone, 1, 1, "celsius"},
    {" fahrenheit ℉ ", kNone, 1, 1, "fahrenheit"},
    {" coulomb 库仑 Кл ", kNone, 1, 1, kCharge},
    {" farad ", kFarad, 1, 1000, kCharge, 2},
    {" kelvin К ", kNone, 1, 1, "kelvin"},
    {" mole mol 摩尔 моль ", kNone, 1, 1, "mole"},
    {" v volt 伏 伏特 В вольт ", kEnergy, 1000, 1, kCharge, -1},
    {" a amp ampere 安 安培 А ампер ", kRate, 1, 1, kCharge},
    {" ohm 欧 欧姆 Ом ом ", kOhm, 1000, 1, kCharge, -2},
    {" tesla 特斯拉 Тл ", kTesla, 1000, 1, kCharge, -1},
    {" henry henries ", kHenry, 1000, 1, kCharge, -2},
    {" weber ", kOhm, 1000, 1, kCharge, -1},
    {" siemens ", kSiemens, 1, 1000, kCharge, 2},
    {" becquerel ", kNone, 1, 1, "becquerel"},
    {" radian rad 弧度 рад радиан ", kNone, 1, 1, "radian"},
    {" sterling ", kNone, 1, 1, "sterling"},
    {" yuan rmb 元 块 人民币 ", kNone, 10, 1, "yuan"},
    {" 角 毛 jiao ", kNone, 1, 1, "yuan"},
    {" rupee rs ", kNone, 100, 1, "rupee"},
    {" paise paisa ", kNone, 1, 1, "rupee"},
    {" pence ", kNone, 1, 1, "pence"},
    {" euro eur 欧元 евро ", kNone, 1, 1, "euro"},
    {" yen 日元 ", kNone, 1, 1, "yen"},
    {" ruble rouble руб рубль рубля рублей ", kNone, 100, 1, "ruble"},
    {" коп копейка копейки копеек ", kNone, 1, 1, "ruble"},
    {" peso ", kNone, 1, 1, "peso"},
    {" franc ", kNone, 1, 1, "franc"},
    {" shekel ", kNone, 1, 1, "shekel"},
    {" year yr 年 岁 год года лет ", kNone, 1, 1, "year"},
    {" decade ", kNone, 10, 1, "year"},
    {" century centuries 世纪 век века веков ", kNone, 100, 1, "year"},
    {" month 月 个月 месяц месяца месяцев ", kNone, 1, 1, "month"},
    {" gallon gal ", kNone, 1, 1, "gallon"},
    {" quart ", kNone, 1, 1, "quart"},
    {" pint ", kNone, 1, 1, "pint"},
    {" cup ", kNone, 1, 1, "cup"},
    {" tablespoon tbsp ", kNone, 1, 1, "tablespoon"},
    {" teaspoon tsp ", kNone, 1, 1, "teaspoon"},
    {" ppm ", kNone, 1, 1, "ppm"},
    {" ppb ", kNone, 1, 1, "ppb"},
    {" ‰ permille promille ", kNone, 1, 1, "permille"},
    {" bp bps ", kNone, 1, 1, "basispoint"},
    {" 个 個 只 隻 ", kNone, 1, 1, "piece"},
    {" 双 雙 对 對 ", kNone, 2, 1, "piece"},
    {" 打 ", kNone, 12, 1, "piece"},
    {" ly ", kNone, 1, 1, "light-year"},
    {" hp ", kNone, 1, 1, "horsepower"},
    {" acre ", kNone, 1, 1, "acre"},
    {" ton ", kNone, 1, 1, "ton"},
};

// SI symbols that take a prefix; upper and lower case differ.
constexpr UnitEntry kSymbols[] = {
    {" m ", kLength},
    {" g ", kMass},
    {" s ", kTime},
    {" L l ", kVolume, 1, 1000},
    {" N ", kForce, 1000},
    {" J ", kEnergy, 1000},
    {" W ", kPower, 1000},
    {" Pa ", kPressure, 1000},
    {" Hz ", kRate},
    {" C ", kNone, 1, 1, kCharge},
    {" F ", kFarad, 1, 1000, kCharge, 2},
    {" K ", kNone, 1, 1, "kelvin"},
    {" mol ", kNone, 1, 1, "mole"},
    {" V ", kEnergy, 1000, 1, kCharge, -1},
    {" A ", kRate, 1, 1, kCharge},
    {" Omega ohm ", kOhm, 1000, 1, kCharge, -2},
    {" T ", kTesla, 1000, 1, kCharge, -1},
    {" H ", kHenry, 1000, 1, kCharge, -2},
    {" Wb ", kOhm, 1000, 1, kCharge, -1},
    {" S ", kSiemens, 1, 1000, kCharge, 2},
    {" Bq ", kNone, 1, 1, "becquerel"},
    {" Gy ", kNone, 1, 1, "gray"},
    {" Sv ", kNone, 1, 1, "sievert"},
    {" eV ", kNone, 1, 1, "electronvolt"},
    {" lm ", kNone, 1, 1, "lumen"},
    {" lx ", kNone, 1, 1, "lux"},
    {" cd ", kNone, 1, 1, "candela"},
    {" cal ", kNone, 1, 1, "calorie"},
    {" bar ", kNone, 1, 1, "bar"},
    {" atm ", kNone, 1, 1, "atmosphere"},
    {" rpm ", kNone, 1, 1, "rpm"},
    {" dB ", kNone, 1, 1, "decibel"},
};

struct Prefix {
  std::string_view name;
  int64_t above = 1;
  int64_t below = 1;
};
constexpr Prefix kPrefixes[] = {{"mu", 1, 1000000},  {"p", 1, 1000000000000}, {"n", 1, 1000000000},
                                {"u", 1, 1000000},   {"m", 1, 1000},          {"c", 1, 100},
                                {"k", 1000},         {"M", 1000000},          {"G", 1000000000},
                                {"T", 1000000000000}};

template <class Table>
std::optional<MeasureUnit> listed_unit(const Table& table, std::string_view word) {
  for (const UnitEntry& entry : table) {
    if (!is_listed(entry.names, word)) continue;
    MeasureUnit unit{entry.powers, entry.above, entry.below, {}, true};
    if (!entry.other.empty()) unit.others[std::string(entry.other)] = entry.other_power;
    return unit;
  }
  return std::nullopt;
}

std::optional<MeasureUnit> prefixed_symbol(std::string_view word) {
  if (is_listed(" pm us ", word)) return std::nullopt;  // "pm" is a time of day, "us" a word
  if (std::optional<MeasureUnit> unit = listed_unit(kSymbols, word)) return unit;
  for (const Prefix& prefix : kPrefixes) {
    if (!word.starts_with(prefix.name)) continue;
    const std::optional<MeasureUnit> unit = listed_unit(kSymbols, word.substr(prefix.name.size()));
    if (unit) return multiplied({{}, prefix.above, prefix.below, {}, true}, *unit);
  }
  return std::nullopt;
}

// Chinese units of several parts: 平方厘米 (square centimetre), 千米每小时 (kilometre per hour).
std::optional<MeasureUnit> chinese_unit(std::string_view word) {
  constexpr std::string_view kPer = "每";
  if (const size_t per = word.find(kPer); per != std::string_view::npos && per > 0) {
    const std::optional<MeasureUnit> above = unit_named(word.substr(0, per));
    const std::optional<MeasureUnit> below = unit_named(word.substr(per + kPer.size()));
    const std::optional<MeasureUnit> inverse = below ? raised(*below, -1) : std::nullopt;
    return above && inverse ? multiplied(*above, *inverse) : std::nullopt;
  }
  // Words for groups of things, such as a pair or a dozen: 双鞋 is a pair of shoes.
  for (const std::string_view group : {"双", "雙", "打"})
    if (word.starts_with(group)) return listed_unit(kUnits, group);
  for (const auto& [name, power] : {std::pair("平方", 2), {"立方", 3}})
    if (word.starts_with(name))
      if (const auto unit = listed_unit(kUnits, word.substr(std::string_view(name).size())))
        return raised(*unit, power);
  return std::nullopt;
}

bool scaled(int64_t& number, int64_t factor) {
  return !__builtin_mul_overflow(number, factor, &number);
}

}  // namespace

std::optional<MeasureUnit> multiplied(const MeasureUnit& a, const MeasureUnit& b) {
  MeasureUnit unit = a;
  for (size_t index = 0; index < unit.powers.size(); ++index)
    unit.powers[index] = static_cast<int8_t>(unit.powers[index] + b.powers[index]);
  if (!scaled(unit.above, b.above) || !scaled(unit.below, b.below)) return std::nullopt;
  for (const auto& [name, power] : b.others)
    if ((unit.others[name] += power) == 0) unit.others.erase(name);
  return unit;
}

std::optional<MeasureUnit> raised(const MeasureUnit& unit, int power) {
  MeasureUnit one = unit;
  if (power < 0) {
    std::swap(one.above, one.below);
    for (int8_t& exponent : one.powers) exponent = static_cast<int8_t>(-exponent);
    for (auto& [name, exponent] : one.others) exponent = -exponent;
  }
  std::optional<MeasureUnit> all = MeasureUnit{.known = unit.known};
  for (int count = 0; count < std::abs(power) && all; ++count) all = multiplied(*all, one);
  return all;
}

bool is_prefix(std::string_view word) {
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const Prefix& prefix) { return prefix.name == word; });
}

std::optional<MeasureUnit> unit_named(std::string_view word) {
  // mL and KG are accepted in any case, but single letters only as listed: n, v and M are
  // variables.
  if (word.size() == 1 && is_letter(word[0]) &&
      !is_listed(is_upper(word[0]) ? " L N J W V K C F T H A S " : " m g s h l ", word))
    return std::nullopt;
  if (word.size() <= 4 || word.ends_with("Omega"))
    if (std::any_of(word.begin(), word.end(), is_upper))
      if (std::optional<MeasureUnit> unit = prefixed_symbol(word)) return unit;
  const std::string low = lowered(word);
  if (low == "in" || low == "inches") return listed_unit(kUnits, "inch");
  for (const std::string_view name : {word, std::string_view(low)})
    if (std::optional<MeasureUnit> unit = listed_unit(kUnits, name)) return unit;
  if (low.size() >= 3 && low.back() == 's')
    if (auto unit = listed_unit(kUnits, std::string_view(low).substr(0, low.size() - 1)))
      return unit;
  if (std::optional<MeasureUnit> unit = prefixed_symbol(word)) return unit;
  return chinese_unit(word);
}

bool is_currency(std::string_view word) {
  const std::string low = lowered(word);
  return is_listed(" usd sterling yuan rupees rupee rs euros euro eur rmb yen rubles ", low);
}

}  // namespace convoy::answers
