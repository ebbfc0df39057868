// Learning curves: plots a History as SVG.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <keel/layers/training/history.h>

namespace keel {

// Options of plot_history.
struct HistoryPlotOptions {
  std::string title = {};
  std::vector<std::string> names = {};  // without "val_"; empty: all names, the loss first
  bool log_scale = false;  // log scale of the values; values that are not positive are omitted
};

// Returns an SVG document with one panel per name. A panel shows the values over the epochs,
// counted from 1, as a line, and the validation values as a second line. Throws ValueError, listing
// the known names, for a name that the history does not have, and for a history without epochs.
std::string history_svg(const History& history, const HistoryPlotOptions& options = {});
// Writes history_svg() to a file. Throws the same errors, and IoError if the file cannot be
// written.
void plot_history(const History& history, const std::filesystem::path& path,
                  const HistoryPlotOptions& options = {});

}  // namespace keel
