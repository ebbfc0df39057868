#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <ranges>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/layers/callbacks/internal/monitor.h>
#include <keel/savedmodel/checkpoint/saving_callbacks.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

struct Format {
  bool zeros = false;
  int width = 0;
  int precision = -1;
  char kind = 0;  // d, e, f, g, or none
};

// Reads at most 3 digits at `at`, which suffices for any number. Returns -1 if there are none.
int digits(const std::string& text, size_t& at) {
  int value = -1;
  for (int i = 0; i < 3 && at < text.size() && text[at] >= '0' && text[at] <= '9'; ++i, ++at) {
    value = std::max(value, 0) * 10 + (text[at] - '0');
  }
  return value;
}

Format parse_format(const std::string& text) {
  Format format;
  size_t at = 0;
  if (at < text.size() && text[at] == '0') {
    format.zeros = true;
    ++at;
  }
  format.width = std::max(0, digits(text, at));
  bool valid = true;
  if (at < text.size() && text[at] == '.') {
    ++at;
    format.precision = digits(text, at);
    valid = format.precision >= 0;
  }
  if (at < text.size()) format.kind = text[at++];
  const bool known = absl::StrContains("defg", format.kind);
  if (!valid || at != text.size() || (format.kind != 0 && !known)) {
    throw ValueError("ModelCheckpoint: '", text,
                     "' is not a valid number format; use for example '02d' or '.3f'");
  }
  return format;
}

std::string formatted(double value, const Format& format) {
  if (format.kind == 'd' && std::trunc(value) != value) {
    throw ValueError("ModelCheckpoint: format 'd' requires an integer, received ", value);
  }
  const int precision = format.kind == 'd' ? 0 : format.precision < 0 ? 6 : format.precision;
  const char kind = format.kind == 'd' ? 'f' : format.kind == 0 ? 'g' : format.kind;
  const std::string pattern = std::string(format.zeros ? "%0*.*" : "%*.*") + kind;
  std::array<char, 2048> buffer;
  std::snprintf(buffer.data(), buffer.size(), pattern.c_str(), format.width, precision, value);
  return buffer.data();
}

std::string replaced(const std::string& field, const Logs& values) {
  const size_t colon = field.find(':');
  const std::string name = field.substr(0, colon);
  const auto it = values.find(name);
  if (it == values.end()) {
    throw ValueError("ModelCheckpoint: '", name,
                     "' in the filepath is not in the logs; they have: ",
                     absl::StrJoin(std::views::keys(values), ", "));
  }
  if (colon != std::string::npos) {
    return formatted(it->second, parse_format(field.substr(colon + 1)));
  }
  const bool counts = name == "epoch" || name == "batch";
  return counts ? formatted(it->second, {.kind = 'd'}) : to_json(it->second);
}

void make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return;
  distribute::run_collectively(distribute::processes(), "ModelCheckpoint", [&] {
    if (distribute::processes().rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw IoError("ModelCheckpoint: ", folder.string(),
                    ": the folder cannot be created: ", error.message());
    }
  });
}

}  // namespace

std::string format_logs(const std::string& text, const Logs& values) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if (text[i] != '{' && text[i] != '}') {
      out += text[i];
    } else if (doubled) {
      out += text[i++];
    } else {
      const size_t end = text.find('}', i);
      if (text[i] == '}' || end == std::string::npos) {
        throw ValueError("ModelCheckpoint: unbalanced brace in '", text,
                         "'; write '{{' or '}}' for a brace");
      }
      out += replaced(text.substr(i + 1, end - i - 1), values);
      i = end;
    }
  }
  return out;
}

ModelCheckpointCallback::ModelCheckpointCallback(Options options)
    : options_(std::move(options)),
      monitor_(std::make_unique<Monitor>("ModelCheckpoint", options_.monitor, options_.mode)),
      best_(options_.initial_value_threshold) {
  if (options_.filepath.empty()) throw ValueError("ModelCheckpoint: filepath is required");
  if (options_.save_freq && *options_.save_freq < 1) {
    throw ValueError("ModelCheckpoint: save_freq must be positive, received ", *options_.save_freq);
  }
  if (options_.save_weights_only && !options_.filepath.ends_with(".weights.h5")) {
    throw ValueError("ModelCheckpoint: with save_weights_only the filepath must end in ",
                     "'.weights.h5', received '", options_.filepath, "'");
  }
}

ModelCheckpointCallback::~ModelCheckpointCallback() = default;

void ModelCheckpointCallback::on_train_begin() {
  if (options_.save_best_only) monitor_->begin(model());
  batches_ = 0;
}

bool ModelCheckpointCallback::is_to_be_saved(const Logs& logs, const std::string& path) {
  if (!options_.save_best_only) {
    if (options_.verbose > 0)
      print_line(absl::StrCat("\nEpoch ", epoch_ + 1, ": saving model to ", path));
    return true;
  }
  const std::optional<double> value = monitor_->value(logs, params());
  if (!value && options_.save_freq && !warned_ && distribute::processes().rank() == 0) {
    std::cerr
        << "ModelCheckpoint: nothing is saved, because '" << options_.monitor
        << "' is known only after an epoch, but save_freq saves after batches; unset save_freq\n";
    warned_ = true;
  }
  if (!value || std::isnan(*value)) return false;
  const bool better = !best_ || monitor_->is_better(*value, *best_);
  if (options_.verbose > 0) {
    const std::string head = absl::StrCat("\nEpoch ", epoch_ + 1, ": ", options_.monitor);
    const std::string before = best_ ? to_json(*best_) : "nothing";
    print_line(better ? absl::StrCat(head, " improved from ", before, " to ", to_json(*value),
                                     ", saving model to ", path)
                      : absl::StrCat(head, " did not improve from ", before));
  }
  if (better) best_ = value;
  return better;
}

void ModelCheckpointCallback::save(int64_t batch, const Logs& logs) {
  Logs values = logs;
  values["epoch"] = static_cast<double>(epoch_ + 1);
  values["batch"] = static_cast<double>(batch);
  const std::string path = format_logs(options_.filepath, values);
  const std::optional<double> before = best_;
  if (!is_to_be_saved(logs, path)) return;
  try {
    make_folder_of(path);
    if (options_.save_weights_only) {
      save_weights(model(), path);
    } else {
      save_model(model(), path, {.include_optimizer = options_.include_optimizer});
    }
  } catch (...) {
    // A model that was not saved must not count as the best.
    best_ = before;
    throw;
  }
}

Callback::State ModelCheckpointCallback::state() const {
  State out = {{"batches", Tensor::scalar(batches_)}};
  if (best_) out["best"] = Tensor::scalar(*best_);
  return out;
}

void ModelCheckpointCallback::set_state(const State& state) {
  batches_ = state_value("ModelCheckpoint", state, "batches").item<int64_t>();
  best_.reset();
  if (const auto it = state.find("best"); it != state.end()) best_ = it->second.item<double>();
}

void ModelCheckpointCallback::on_train_batch_end(int64_t batch, const Logs& logs) {
  if (!options_.save_freq || ++batches_ < *options_.save_freq) return;
  batches_ = 0;
  save(batch + 1, logs);
}

void ModelCheckpointCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  epoch_ = epoch;
  if (!options_.save_freq) save(0, logs);
}

}  // namespace keel
