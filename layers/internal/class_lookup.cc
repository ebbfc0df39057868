#include <keel/layers/internal/class_lookup.h>

#include <algorithm>

#include <keel/layers/internal/naming.h>

namespace keel {
namespace {

constexpr ClassAlias kCommonAliases[] = {
    {"bce", "BinaryCrossentropy"},
    {"BCE", "BinaryCrossentropy"},
    {"ce", "AutoCrossentropy"},
    {"cosine_proximity", "CosineSimilarity"},
    {"crossentropy", "AutoCrossentropy"},
    {"kld", "KLDivergence"},
    {"KLD", "KLDivergence"},
    {"kullback_leibler_divergence", "KLDivergence"},
    {"mae", "MeanAbsoluteError"},
    {"MAE", "MeanAbsoluteError"},
    {"mape", "MeanAbsolutePercentageError"},
    {"MAPE", "MeanAbsolutePercentageError"},
    {"mse", "MeanSquaredError"},
    {"MSE", "MeanSquaredError"},
    {"msle", "MeanSquaredLogarithmicError"},
    {"MSLE", "MeanSquaredLogarithmicError"},
};

}  // namespace

std::string find_class(const std::vector<std::string>& classes,
                       std::span<const ClassAlias> more_aliases, const std::string& name) {
  for (const auto aliases : {more_aliases, std::span<const ClassAlias>(kCommonAliases)}) {
    const auto alias = std::ranges::find(aliases, name, &ClassAlias::first);
    if (alias != aliases.end()) return alias->second;
  }
  const auto found = std::ranges::find_if(classes, [&](const std::string& class_name) {
    return class_name == name || to_snake_case(class_name) == name;
  });
  return found == classes.end() ? "" : *found;
}

}  // namespace keel
