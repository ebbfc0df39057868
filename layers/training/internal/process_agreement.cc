#include <keel/layers/training/internal/process_agreement.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <array>
#include <set>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/training/internal/trainer.h>

namespace keel {
namespace {

// The path of an option and its value: "Dropout (layer 3): rate" and "0.5".
using Setting = std::pair<std::string, std::string>;

// Names are not compared, and sublayers are compared on their own (add_layers).
bool is_compared(const std::string& key) {
  constexpr std::array kLeftOut = {"name", "layers", "input_layers", "output_layers",
                                   "build_config"};
  return std::ranges::find(kLeftOut, key) == kLeftOut.end();
}

void add_settings(const std::string& path, const Config& config, std::vector<Setting>& out) {
  if (config.is_dict()) {
    for (const auto& [key, value] : config.entries()) {
      if (is_compared(key))
        add_settings(absl::StrCat(path, path.back() == ' ' ? "" : ".", key), value, out);
    }
  } else if (config.is_list()) {
    size_t i = 0;
    for (const Config& item : config.items()) add_settings(str(path, '[', i++, ']'), item, out);
  } else {
    out.emplace_back(path, config.is_string() ? without_number(config.string()) : to_json(config));
  }
}

// The configs of these classes hold a vocabulary, which may be long.
bool has_vocabulary(const Layer& layer) {
  constexpr std::array kClasses = {"FeatureSpace", "IntegerLookup", "StringLookup",
                                   "TextVectorization"};
  return std::ranges::find(kClasses, layer.class_name()) != kClasses.end();
}

void add_layers(const Layer& layer, std::set<const Layer*>& seen, std::vector<Setting>& out) {
  if (!seen.insert(&layer).second) return;
  const std::string path = absl::StrCat(layer.class_name(), " (layer ", seen.size(), "): ");
  out.emplace_back(path + "trainable", layer.trainable() ? "true" : "false");
  try {
    if (!has_vocabulary(layer)) add_settings(path, layer.get_config(), out);
  } catch (const NotImplementedError&) {  // the class cannot be stored in files
  }
  for (const auto& sublayer : layer.sublayers()) add_layers(*sublayer, seen, out);
}

std::vector<Setting> settings_of(const Model& model, const Trainer& trainer,
                                 const FitOptions& options) {
  std::vector<Setting> out = {
      {"fit: epochs", absl::StrCat(options.epochs)},
      {"fit: initial_epoch", absl::StrCat(options.initial_epoch)},
      {"fit: batch_size", absl::StrCat(options.batch_size)},
      {"fit: steps_per_epoch",
       options.steps_per_epoch ? absl::StrCat(*options.steps_per_epoch) : "none"},
      {"fit: shuffle", options.shuffle ? "true" : "false"},
      {"fit: seed", options.seed ? absl::StrCat(*options.seed) : "none"}};
  try {
    add_settings("compile: ", trainer.config(), out);
  } catch (const NotImplementedError&) {  // an option is a function
  }
  std::set<const Layer*> seen;
  add_layers(model, seen, out);
  return out;
}

std::string joined_settings(const std::vector<Setting>& settings) {
  std::string out;
  for (const auto& [name, value] : settings) out += str(name, '\t', value, '\n');
  return out;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Returns "has <option> = <value>".
std::string described(const std::vector<std::string>& settings, size_t i) {
  if (i >= settings.size()) return "has no further option";
  const size_t tab = settings[i].find('\t');
  return absl::StrCat("has ", settings[i].substr(0, tab), " = ", settings[i].substr(tab + 1));
}

}  // namespace

void check_same_training(distribute::ProcessGroup& group, const char* caller, const Model& model,
                         const Trainer& trainer, const FitOptions& options) {
  if (group.size() == 1) return;
  const std::string local = joined_settings(settings_of(model, trainer, options));
  // Exchanges hashes first, so that the usual case costs a few bytes; the texts follow only if the
  // hashes differ.
  const auto hashes = distribute::gather_texts(group, "the options of fit",
                                               absl::StrCat(std::hash<std::string>()(local)));
  const auto other = std::ranges::find_if(hashes, [&](const auto& h) { return h != hashes[0]; });
  if (other == hashes.end()) return;
  const auto texts = distribute::gather_texts(group, "the differing options of fit", local);
  const std::vector<std::string> first = lines(texts[0]);
  const std::vector<std::string> second = lines(texts[other - hashes.begin()]);
  const auto at = std::ranges::mismatch(first, second).in1 - first.begin();
  throw ValueError(caller, ": rank ", other - hashes.begin(), " ", described(second, at),
                   ", rank 0 ", described(first, at),
                   "; all processes must train the same model with the same options");
}

}  // namespace keel
