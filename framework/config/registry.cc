#include <keel/framework/config/registry.h>

namespace keel {

Config to_keras_object(const ClassTraits& traits, const std::string& kind,
                       const std::string& class_name, Config config) {
  const size_t package = class_name.find('>');
  if (package != std::string::npos) {
    return Config::dict({{"module", {}},
                         {"class_name", class_name.substr(package + 1)},
                         {"config", std::move(config)},
                         {"registered_name", class_name}});
  }
  const std::string from = traits.package.empty() ? "keras" : traits.package;
  return Config::dict(
      {{"module", from + "." + kind},
       {"class_name", class_name},
       {"config", std::move(config)},
       {"registered_name", from == "keras" ? Config() : Config(from + ">" + class_name)}});
}

}  // namespace keel
