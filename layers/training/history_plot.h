// Learning curves: a picture of a History.
#pragma once

#include <string>
#include <vector>

namespace keel {

class History;

struct HistoryPlotOptions {
  std::string title = {};
  std::vector<std::string> names = {};  // without "val_"; empty: all, the loss first
  bool log_scale = false;               // of the values; those that are not positive are left out
};

// An SVG document with a panel for each name: its values over the epochs, counted from 1, as a
// line, and those of the validation as another. ValueError, listing the names, for one that the
// history lacks, and for a history without epochs.
std::string history_svg(const History& history, const HistoryPlotOptions& options = {});

}  // namespace keel
