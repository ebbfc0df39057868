#include <keel/layers/internal/shared_layers.h>

#include <utility>

namespace keel {
namespace {

// Returns the number in the config of a layer, or null.
const Config* number_in(const Config& config) {
  if (!config.is_dict() || config.find("class_name") == nullptr) return nullptr;
  const Config* const number = config.find(kSharedObjectId);
  return number != nullptr && number->is_integer() ? number : nullptr;
}

void count(const Config& config, std::map<int64_t, int>& counts) {
  if (const Config* const number = number_in(config)) ++counts[number->integer()];
  if (config.is_list()) {
    for (const Config& item : config.items()) count(item, counts);
  } else if (config.is_dict()) {
    for (const auto& [_, value] : config.entries()) count(value, counts);
  }
}

Config without_single(const Config& config, const std::map<int64_t, int>& counts) {
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) out.push_back(without_single(item, counts));
    return out;
  }
  if (!config.is_dict()) return config;
  const Config* const number = number_in(config);
  const bool is_single = number != nullptr && counts.at(number->integer()) == 1;
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) {
    if (!is_single || key != kSharedObjectId) out.set(key, without_single(value, counts));
  }
  return out;
}

}  // namespace

thread_local SharedLayerWriter::Numbers* SharedLayerWriter::outermost = nullptr;

SharedLayerWriter::SharedLayerWriter() : is_outermost_(outermost == nullptr) {
  if (is_outermost_) outermost = &own_;
}

SharedLayerWriter::~SharedLayerWriter() {
  if (is_outermost_) outermost = nullptr;
}

void SharedLayerWriter::number(const Layer& layer, Config& config) {
  const auto [found, _] = outermost->try_emplace(&layer, std::ssize(*outermost));
  config.set(kSharedObjectId, found->second);
}

Config SharedLayerWriter::finish(Config config) const {
  if (!is_outermost_) return config;
  std::map<int64_t, int> counts;
  count(config, counts);
  return without_single(config, counts);
}

thread_local SharedLayerReader::Layers* SharedLayerReader::outermost = nullptr;

SharedLayerReader::SharedLayerReader() : is_outermost_(outermost == nullptr) {
  if (is_outermost_) outermost = &own_;
}

SharedLayerReader::~SharedLayerReader() {
  if (is_outermost_) outermost = nullptr;
}

std::shared_ptr<Layer> SharedLayerReader::find(const Config& config) const {
  const Config* const number = number_in(config);
  if (number == nullptr) return nullptr;
  const auto found = outermost->find({number->integer(), config["class_name"].string()});
  return found == outermost->end() ? nullptr : found->second;
}

void SharedLayerReader::add(const Config& config, const std::shared_ptr<Layer>& layer) {
  if (const Config* const number = number_in(config)) {
    outermost->try_emplace({number->integer(), config["class_name"].string()}, layer);
  }
}

}  // namespace keel
