#include <keel/savedmodel/serving/protocol/model_lookup.h>

#include <algorithm>
#include <charconv>

namespace keel::serving {

std::optional<int64_t> version_number(std::string_view text) {
  int64_t out = 0;
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (!digits || error != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

VersionHandle find_version(const ModelRepository& repository, const ModelTarget& target,
                           Code unknown_label) {
  const std::shared_ptr<const Catalog> catalog = repository.catalog();
  const ServedModel* const model = catalog->find(target.name);
  VersionHandle found;
  if (target.label && model != nullptr) {
    found = model->labelled(*target.label);
    if (found == nullptr) {
      throw ServeError(unknown_label, "Unrecognized servable version label: ", *target.label);
    }
  } else if (model != nullptr) {
    found = target.version ? model->version(*target.version) : model->latest();
  }
  if (found != nullptr) return found;
  if (target.version) {
    throw ServeError(Code::kNotFound, "Servable not found for request: Specific(", target.name,
                     ", ", *target.version, ")");
  }
  throw ServeError(Code::kNotFound, "Servable not found for request: Latest(", target.name, ")");
}

std::vector<VersionStatus> find_statuses(const ModelRepository& repository,
                                         const ModelTarget& target) {
  std::optional<ModelStatus> status = repository.status(target.name);
  if (!status || status->versions.empty()) {
    throw ServeError(Code::kNotFound, "Could not find any versions of model ", target.name);
  }
  std::optional<int64_t> wanted = target.version;
  if (target.label) {
    wanted = find_version(repository, target, Code::kInvalidArgument)->number();
  }
  if (!wanted) return std::move(status->versions);
  std::erase_if(status->versions,
                [&](const VersionStatus& version) { return version.number != *wanted; });
  if (status->versions.empty()) {
    throw ServeError(Code::kNotFound, "Could not find version ", *wanted, " of model ",
                     target.name);
  }
  return std::move(status->versions);
}

bool is_available(const ModelRepository& repository, const ModelTarget& target) {
  try {
    find_version(repository, target, Code::kNotFound);
    return true;
  } catch (const ServeError&) {
    const std::optional<ModelStatus> status = repository.status(target.name);
    const bool known = status && !target.label &&
                       (!target.version ||
                        std::ranges::any_of(status->versions, [&](const VersionStatus& version) {
                          return version.number == *target.version;
                        }));
    if (!known) throw;
    return false;
  }
}

}  // namespace keel::serving
