#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/layers/visualization/internal/plot_axis.h>
#include <keel/layers/visualization/internal/xml_text.h>
#include <keel/layers/visualization/visualization.h>

namespace keel {
namespace {

// Sizes in pixels.
constexpr double kPanelWidth = 440, kPanelHeight = 300, kTitleHeight = 36;
constexpr double kLeft = 66, kRight = 18, kTop = 34, kBottom = 46;  // margins of a panel
constexpr char kTrainColor[] = "#1f77b4", kValidationColor[] = "#d95f02";
constexpr size_t kMostDots = 40;  // lines with more points have no dots

struct Curve {
  const char* label;
  const char* color;
  std::vector<double> values;
};

struct Place {
  double x = 0, y = 0;
};

std::string number(double value) { return absl::StrFormat("%.1f", value); }

std::string text_at(Place at, const char* anchor, int size, const std::string& text,
                    const char* more = "") {
  return absl::StrCat("<text x='", number(at.x), "' y='", number(at.y), "' text-anchor='", anchor,
                      "' font-size='", size, "'", more, ">", xml_escaped(text), "</text>\n");
}

std::string line_from(Place a, Place b, const char* color) {
  return absl::StrCat("<line x1='", number(a.x), "' y1='", number(a.y), "' x2='", number(b.x),
                      "' y2='", number(b.y), "' stroke='", color, "'/>\n");
}

// Returns the names of the panels: options.names or, if empty, the loss and then all other names.
std::vector<std::string> panel_names(const History& history, const HistoryPlotOptions& options) {
  if (history.epochs().empty())
    throw ValueError("plot_history: the history has no epochs; train the model first");
  std::vector<std::string> all;
  for (const std::string& name : history.names()) {
    const std::string base = name.starts_with("val_") ? name.substr(4) : name;
    if (std::ranges::find(all, base) == all.end()) all.push_back(base);
  }
  std::ranges::stable_partition(all, [](const std::string& name) { return name == "loss"; });
  for (const std::string& name : options.names) {
    if (std::ranges::find(all, name) != all.end()) continue;
    throw ValueError("plot_history: no values are named '", name,
                     "'; the names are: ", absl::StrJoin(all, ", "));
  }
  return options.names.empty() ? all : options.names;
}

class Panel {
 public:
  Panel(const History& history, const std::string& name, Place corner, bool log_scale)
      : name_(name), corner_(corner), log_scale_(log_scale) {
    for (const int64_t epoch : history.epochs()) epochs_.push_back(static_cast<double>(epoch + 1));
    add_curve(history, name, "train", kTrainColor);
    add_curve(history, "val_" + name, "validation", kValidationColor);
  }

  std::string svg() const {
    const auto [low, high] = range();
    const PlotAxis x(PlotAxis::Scale::kInteger, epochs_.front(), epochs_.back(), 8);
    const PlotAxis y(log_scale_ ? PlotAxis::Scale::kLog : PlotAxis::Scale::kLinear, low, high, 5);
    std::string out =
        text_at({(left() + right()) / 2, top() - 12}, "middle", 14, name_, " font-weight='bold'");
    out += axes(x, y);
    for (const Curve& curve : curves_) out += drawn(curve, x, y);
    return out + legend();
  }

 private:
  double left() const { return corner_.x + kLeft; }
  double right() const { return corner_.x + kPanelWidth - kRight; }
  double top() const { return corner_.y + kTop; }
  double bottom() const { return corner_.y + kPanelHeight - kBottom; }

  void add_curve(const History& history, const std::string& name, const char* label,
                 const char* color) {
    if (history.contains(name)) curves_.push_back({label, color, history[name]});
  }

  bool shows(double value) const { return std::isfinite(value) && (!log_scale_ || value > 0); }

  std::pair<double, double> range() const {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const Curve& curve : curves_) {
      for (const double value : curve.values) {
        if (!shows(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    if (low > high) return {log_scale_ ? 0.1 : 0, 1};
    return {low, high};
  }

  Place at(double epoch, double value, const PlotAxis& x, const PlotAxis& y) const {
    return {left() + x.position(epoch) * (right() - left()),
            bottom() - y.position(value) * (bottom() - top())};
  }

  std::string axes(const PlotAxis& x, const PlotAxis& y) const {
    std::string out;
    for (const AxisTick& tick : y.ticks()) {
      const double height = bottom() - y.position(tick.value) * (bottom() - top());
      out += line_from({left(), height}, {right(), height}, "#e6e6e6");
      out += text_at({left() - 8, height + 4}, "end", 12, tick.label);
    }
    for (const AxisTick& tick : x.ticks()) {
      const double place = left() + x.position(tick.value) * (right() - left());
      out += line_from({place, bottom()}, {place, bottom() + 5}, "#444444");
      out += text_at({place, bottom() + 19}, "middle", 12, tick.label);
    }
    out += line_from({left(), top()}, {left(), bottom()}, "#444444");
    out += line_from({left(), bottom()}, {right(), bottom()}, "#444444");
    return out + text_at({(left() + right()) / 2, bottom() + 37}, "middle", 12, "epoch");
  }

  // Draws a line through the epochs that have values, with dots if there are few.
  std::string drawn(const Curve& curve, const PlotAxis& x, const PlotAxis& y) const {
    std::string dots, points;
    size_t count = 0;
    for (size_t i = 0; i < epochs_.size(); ++i) {
      if (!shows(curve.values[i])) continue;
      const Place place = at(epochs_[i], curve.values[i], x, y);
      absl::StrAppend(&points, count++ == 0 ? "" : " ", number(place.x), ",", number(place.y));
      absl::StrAppend(&dots, "<circle cx='", number(place.x), "' cy='", number(place.y),
                      "' r='3' fill='", curve.color, "'/>\n");
    }
    const std::string line =
        absl::StrCat("<polyline points='", points, "' fill='none' stroke='", curve.color,
                     "' stroke-width='2' stroke-linejoin='round'/>\n");
    return (count > 1 ? line : "") + (count <= kMostDots ? dots : "");
  }

  // Places the legend in the corner that the curves usually leave free: losses fall, most metrics
  // rise.
  std::string legend() const {
    double first = 0, last = 0;
    for (const Curve& curve : curves_) {
      if (shows(curve.values.front())) first += curve.values.front();
      if (shows(curve.values.back())) last += curve.values.back();
    }
    const double width = 108, height = 8 + 18 * static_cast<double>(curves_.size());
    const double begin = right() - width - 6;
    const double above = last > first ? bottom() - height - 8 : top() + 6;
    std::string out = absl::StrCat(
        "<rect x='", number(begin), "' y='", number(above), "' width='", width, "' height='",
        height, "' fill='white' fill-opacity='0.85' ", "stroke='#cccccc' rx='3'/>\n");
    for (size_t i = 0; i < curves_.size(); ++i) {
      const double y = above + 14 + 18 * static_cast<double>(i);
      absl::StrAppend(&out, "<line x1='", number(begin + 8), "' y1='", number(y), "' x2='",
                      number(begin + 28), "' y2='", number(y), "' stroke='", curves_[i].color,
                      "' stroke-width='2'/>\n");
      out += text_at({begin + 35, y + 4}, "start", 12, curves_[i].label);
    }
    return out;
  }

  const std::string name_;
  const Place corner_;
  const bool log_scale_;
  std::vector<double> epochs_;
  std::vector<Curve> curves_;
};

}  // namespace

std::string history_svg(const History& history, const HistoryPlotOptions& options) {
  const std::vector<std::string> names = panel_names(history, options);
  const size_t columns = names.size() == 1 ? 1 : names.size() <= 4 ? 2 : 3;
  const size_t rows = (names.size() + columns - 1) / columns;
  const double above = options.title.empty() ? 0 : kTitleHeight;
  const double width = kPanelWidth * static_cast<double>(columns);
  const double height = kPanelHeight * static_cast<double>(rows) + above;
  std::string out = absl::StrCat("<svg xmlns='http://www.w3.org/2000/svg' width='", width,
                                 "' height='", height, "' viewBox='0 0 ", width, " ", height,
                                 "' font-family='Helvetica, Arial, sans-serif' fill='#222222'>\n",
                                 "<rect width='100%' height='100%' fill='white'/>\n");
  if (!options.title.empty()) {
    out += text_at({width / 2, 26}, "middle", 17, options.title, " font-weight='bold'");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t row = i / columns, column = i % columns;
    const Place corner = {kPanelWidth * static_cast<double>(column),
                          above + kPanelHeight * static_cast<double>(row)};
    out += Panel(history, names[i], corner, options.log_scale).svg();
  }
  return out + "</svg>\n";
}

void plot_history(const History& history, const std::filesystem::path& path,
                  const HistoryPlotOptions& options) {
  const std::string svg = history_svg(history, options);
  try {
    write_text_file(path.string(), svg);
  } catch (const IoError& error) {
    throw IoError("plot_history: cannot write the file ", error.what());
  }
}

}  // namespace keel
