#include <keel/framework/config/registry.h>

namespace keel {
namespace registry_internal {

ClassTraits LiteralTraits::traits() const {
  return {.package = package, .call = call, .ignored_keys = ignored_keys};
}

void Classes::add(const std::string& class_name, Maker maker, ClassTraits traits) {
  const std::lock_guard lock(mutex_);
  classes_[class_name] = {std::move(maker), std::move(traits)};
}

std::shared_ptr<const void> Classes::add_in_scope(const std::string& class_name, Maker maker) {
  const std::lock_guard lock(mutex_);
  const auto it = classes_.find(class_name);
  const auto before = it == classes_.end() ? std::nullopt : std::optional<Entry>(it->second);
  classes_[class_name] = {std::move(maker), ClassTraits{.package = ""}};
  return {this, [class_name, before](Classes* classes) {
            const std::lock_guard restoring(classes->mutex_);
            classes->classes_.erase(class_name);
            if (before) classes->classes_.emplace(class_name, *before);
          }};
}

void Classes::set_name(std::type_index type, const std::string& class_name) {
  const std::lock_guard lock(mutex_);
  names_.insert_or_assign(type, class_name);
}

std::shared_ptr<void> Classes::make(const std::string& name, const Config& config) const {
  // The maker is called without the lock, so that it may use the registry itself.
  Maker maker;
  {
    const std::lock_guard lock(mutex_);
    const auto it = classes_.find(name);
    if (it == classes_.end()) {
      throw ValueError("Registry: unknown ", what_, " class '", name,
                       "'; register it first, or link keel::keel, which has all classes of Keel");
    }
    maker = it->second.maker;
  }
  return maker(config);
}

std::vector<std::string> Classes::class_names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, entry] : classes_) out.push_back(name);
  return out;
}

std::optional<std::string> Classes::name_of(std::type_index type) const {
  const std::lock_guard lock(mutex_);
  const auto it = names_.find(type);
  return it == names_.end() ? std::nullopt : std::optional(it->second);
}

ClassTraits Classes::traits(const std::string& class_name) const {
  const std::lock_guard lock(mutex_);
  const auto it = classes_.find(class_name);
  return it == classes_.end() ? ClassTraits{.package = ""} : it->second.traits;
}

}  // namespace registry_internal

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
