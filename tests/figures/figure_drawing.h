// SPDX-License-Identifier: Apache-2.0
//
// Reads a figure back from its SVG text: which parts are drawn, and where.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "convoy/core/charts/svg_canvas.h"

namespace convoy::testing {

struct DrawnText {
  std::string part;  // class of the innermost group, such as "axes" or "legend"
  double left = 0, right = 0, top = 0, bottom = 0;
  std::string words;  // the text without tags
  bool upward = false;
};

struct DrawnCurve {
  std::string part;
  std::string seed;
  size_t panel = 0;  // 1, 2, ...; 0 outside of panels
  std::vector<charts::ChartPoint> points;
};

struct Drawing {
  double width = 0, height = 0;
  std::vector<DrawnText> texts;
  std::vector<DrawnCurve> curves;  // polylines, and markers by their first points

  const DrawnCurve* frame(size_t panel) const {
    for (const DrawnCurve& curve : curves)
      if (curve.part == "frame" && curve.panel == panel) return &curve;
    return nullptr;
  }
  std::string all_words() const {
    std::string all;
    for (const DrawnText& text : texts) all += text.words + "\n";
    return all;
  }
  size_t count(const std::string& part, const std::string& words) const {
    size_t count = 0;
    for (const DrawnText& text : texts) count += text.part == part && text.words == words ? 1 : 0;
    return count;
  }
};

class DrawingReader {
 public:
  explicit DrawingReader(const std::string& svg) : svg_(svg) {}

  Drawing read() {
    for (size_t at = svg_.find('<'); at != svg_.npos; at = svg_.find('<', at + 1)) {
      const size_t end = svg_.find('>', at);
      const std::string tag = svg_.substr(at, end - at + 1);
      if (tag.starts_with("<svg")) {
        const auto size = two_numbers(tag, "viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"");
        drawing_.width = size.x;
        drawing_.height = size.y;
      }
      if (tag.starts_with("<g")) open(tag);
      if (tag == "</g>") groups_.pop_back();
      if (tag.starts_with("<text"))
        add_text(tag, svg_.substr(end + 1, svg_.find("</text>", end) - end - 1));
      if (tag.starts_with("<polyline") || tag.starts_with("<path")) add_curve(tag);
    }
    return drawing_;
  }

 private:
  struct Group {
    std::string name, seed;
    double x = 0, y = 0;
  };

  // Returns the two numbers that `pattern` finds in `text`.
  static charts::ChartPoint two_numbers(const std::string& text, const std::string& pattern) {
    std::smatch found;
    std::regex_search(text, found, std::regex(pattern));
    return {std::stod(found[1]), std::stod(found[2])};
  }
  static std::string attribute(const std::string& tag, const std::string& name) {
    const size_t at = tag.find(" " + name + "=\"");
    if (at == tag.npos) return "";
    const size_t begin = at + name.size() + 3;
    return tag.substr(begin, tag.find('"', begin) - begin);
  }
  static double number(const std::string& tag, const std::string& name) {
    return std::stod(attribute(tag, name));
  }

  void open(const std::string& tag) {
    Group group = groups_.empty() ? Group{} : groups_.back();
    group.name = attribute(tag, "class");
    group.seed = attribute(tag, "data-seed");
    if (group.name == "panel") {
      const auto shift = two_numbers(tag, "translate\\(([-0-9.]+) ([-0-9.]+)\\)");
      group.x += shift.x;
      group.y += shift.y;
      ++panel_;
    }
    groups_.push_back(group);
  }
  Group group() const { return groups_.empty() ? Group{} : groups_.back(); }

  void add_text(const std::string& tag, const std::string& inside) {
    static const std::regex raised("<tspan dy=\"-[^>]*>([^<]*)</tspan>"), tags("<[^>]*>");
    const double size = number(tag, "font-size");
    const std::string with_powers = std::regex_replace(inside, raised, "^{$1}");
    std::string words = std::regex_replace(with_powers, tags, "");
    for (const auto& [entity, letter] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
      words = std::regex_replace(words, std::regex(entity), letter);
    const double length = charts::text_width(words, size, attribute(tag, "font-weight") == "bold");
    const std::string anchor = attribute(tag, "text-anchor");
    const double before = anchor == "end" ? length : anchor == "middle" ? length / 2 : 0;
    const double x = group().x + number(tag, "x"), y = group().y + number(tag, "y");
    DrawnText text{.part = group().name, .words = words, .upward = tag.find("rotate") != tag.npos};
    if (text.upward) {
      text.left = x - 0.75 * size;
      text.right = x + 0.25 * size;
      text.bottom = y + before;
      text.top = text.bottom - length;
    } else {
      text.left = x - before;
      text.right = text.left + length;
      text.top = y - 0.75 * size;
      text.bottom = y + 0.25 * size;
    }
    drawing_.texts.push_back(text);
  }

  void add_curve(const std::string& tag) {
    const bool is_path = tag.starts_with("<path");
    const std::string places = attribute(tag, is_path ? "d" : "points");
    static const std::regex moves("M(-?[0-9.]+),(-?[0-9.]+)"), pairs("(-?[0-9.]+),(-?[0-9.]+)");
    DrawnCurve curve{.part = group().name,
                     .seed = group().seed,
                     .panel = groups_.empty() ? 0 : panel_,
                     .points = {}};
    for (std::sregex_iterator found(places.begin(), places.end(), is_path ? moves : pairs), end;
         found != end; ++found)
      curve.points.push_back(
          {group().x + std::stod((*found)[1]), group().y + std::stod((*found)[2])});
    drawing_.curves.push_back(curve);
  }

  const std::string& svg_;
  Drawing drawing_;
  std::vector<Group> groups_;
  size_t panel_ = 0;
};

}  // namespace convoy::testing
