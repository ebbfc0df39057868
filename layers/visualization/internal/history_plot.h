// Learning curves: a picture of a History.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <keel/layers/training/history.h>

namespace keel {

struct HistoryPlotOptions {
  std::string title = {};
  std::vector<std::string> names = {};  // without "val_"; empty: all, the loss first
  bool log_scale = false;               // of the values; those that are not positive are left out
};

// An SVG document with a panel for each name: its values over the epochs, counted from 1, as a
// line, and those of the validation as another. ValueError, listing the names, for one that the
// history lacks, and for a history without epochs.
std::string history_svg(const History& history, const HistoryPlotOptions& options = {});
// Writes history_svg() to a file. Throws what it throws, and IoError if the file cannot be written.
void plot_history(const History& history, const std::filesystem::path& path,
                  const HistoryPlotOptions& options = {});

}  // namespace keel
