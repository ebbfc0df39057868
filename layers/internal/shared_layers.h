// SharedLayerWriter and SharedLayerReader: layers that occur several times in one config, for
// example inside a wrapper and beside it. Like Keras, configs give each occurrence the same
// "shared_object_id".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <keel/framework/config/config.h>
#include <keel/layers/layer.h>

namespace keel {

inline constexpr char kSharedObjectId[] = "shared_object_id";

// While one is alive on this thread, serialize() numbers the layers that it writes. Inner scopes
// use the numbers of the outermost one.
class SharedLayerWriter {
 public:
  SharedLayerWriter();
  ~SharedLayerWriter();
  SharedLayerWriter(const SharedLayerWriter&) = delete;
  SharedLayerWriter& operator=(const SharedLayerWriter&) = delete;

  // Adds the number of a layer to its config, {"class_name", "config"}.
  void number(const Layer& layer, Config& config);
  // Returns the config without the numbers that occur once. In an inner scope, returns it
  // unchanged: another part of the outer config may contain the same layer.
  Config finish(Config config) const;

 private:
  using Numbers = std::unordered_map<const Layer*, int64_t>;
  static thread_local Numbers* outermost;

  Numbers own_;
  const bool is_outermost_;
};

// While one is alive on this thread, deserialize() returns the layer that it has made of an earlier
// config with the same number and class. Inner scopes use the layers of the outermost one.
class SharedLayerReader {
 public:
  SharedLayerReader();
  ~SharedLayerReader();
  SharedLayerReader(const SharedLayerReader&) = delete;
  SharedLayerReader& operator=(const SharedLayerReader&) = delete;

  // Returns the layer made of an earlier config, or null.
  std::shared_ptr<Layer> find(const Config& config) const;
  void add(const Config& config, const std::shared_ptr<Layer>& layer);

 private:
  using Layers = std::map<std::pair<int64_t, std::string>, std::shared_ptr<Layer>>;
  static thread_local Layers* outermost;

  Layers own_;
  const bool is_outermost_;
};

}  // namespace keel
