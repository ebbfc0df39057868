#include <mutex>

#include <keel/layers/internal/naming.h>
#include <keel/layers/losses/loss.h>

// Every loss that files may name. A new loss needs a header, a source with KEEL_REGISTER(Loss,
// MyLoss), a test, and a line in this list.
// clang-format off
#define KEEL_BUILTIN_LOSSES(X) \
  X(AutoCrossentropyLoss) \
  X(BinaryCrossentropyLoss) \
  X(BinaryFocalCrossentropyLoss) \
  X(CategoricalCrossentropyLoss) \
  X(CategoricalFocalCrossentropyLoss) \
  X(CategoricalGeneralizedCrossEntropyLoss) \
  X(CategoricalHingeLoss) \
  X(CircleLoss) \
  X(CosineSimilarityLoss) \
  X(DiceLoss) \
  X(HingeLoss) \
  X(HuberLoss) \
  X(KLDivergenceLoss) \
  X(ListMLELoss) \
  X(LogCoshLoss) \
  X(MeanAbsoluteErrorLoss) \
  X(MeanAbsolutePercentageErrorLoss) \
  X(MeanSquaredErrorLoss) \
  X(MeanSquaredLogarithmicErrorLoss) \
  X(PairwiseHingeLoss) \
  X(PairwiseLogisticLoss) \
  X(PairwiseMeanSquaredErrorLoss) \
  X(PairwiseSoftZeroOneLoss) \
  X(PoissonLoss) \
  X(SparseCategoricalCrossentropyLoss) \
  X(SquaredHingeLoss) \
  X(TverskyLoss)
// clang-format on

namespace keel {
namespace internal {

#define DECLARE(name) KEEL_DECLARE_REGISTRATION(Loss, name)
KEEL_BUILTIN_LOSSES(DECLARE)
#undef DECLARE

}  // namespace internal

namespace {

// Aliases that are not the class name in snake case.
std::string class_of_alias(const std::string& name) {
  static const std::pair<const char*, const char*> kAliases[] = {
      {"bce", "BinaryCrossentropy"},
      {"BCE", "BinaryCrossentropy"},
      {"ce", "AutoCrossentropy"},
      {"cosine_proximity", "CosineSimilarity"},
      {"crossentropy", "AutoCrossentropy"},
      {"huber_loss", "Huber"},
      {"kld", "KLDivergence"},
      {"KLD", "KLDivergence"},
      {"kullback_leibler_divergence", "KLDivergence"},
      {"logcosh", "LogCosh"},
      {"mae", "MeanAbsoluteError"},
      {"MAE", "MeanAbsoluteError"},
      {"mape", "MeanAbsolutePercentageError"},
      {"MAPE", "MeanAbsolutePercentageError"},
      {"mse", "MeanSquaredError"},
      {"MSE", "MeanSquaredError"},
      {"msle", "MeanSquaredLogarithmicError"},
      {"MSLE", "MeanSquaredLogarithmicError"},
  };
  for (const auto& [alias, class_name] : kAliases) {
    if (name == alias) return class_name;
  }
  return {};
}

std::string class_of(const std::string& name) {
  if (const std::string known = class_of_alias(name); !known.empty()) return known;
  for (const std::string& class_name : loss_registry().class_names()) {
    if (to_snake_case(class_name) == name) return class_name;
  }
  return name;  // a class, or unknown
}

// Returns the name of a function in Keras's files: a string, or {"class_name": "function",
// "config": name}.
std::string function_name(const Config& config) {
  return config.is_string() ? config.string() : config["config"].string();
}

}  // namespace

Registry<Loss>& loss_registry() {
  static Registry<Loss> registry("loss");
  static std::once_flag filled;
  std::call_once(filled, [] {
#define ADD(name) internal::register_##name(registry);
    KEEL_BUILTIN_LOSSES(ADD)
#undef ADD
  });
  return registry;
}

namespace losses {

LossHandle get(const std::string& name) {
  return {kAdopt, loss_registry().make(class_of(name), Config::dict())};
}

Config serialize(const Loss& loss) {
  return Config::dict({{"class_name", loss.class_name()}, {"config", loss.get_config()}});
}

LossHandle deserialize(const Config& config) {
  if (config.is_string()) return get(config.string());
  std::string class_name = config["class_name"].string();
  if (class_name == "function") return get(function_name(config));
  const Config* inner = config.find("config");
  Config parameters = inner == nullptr || inner->is_null() ? Config::dict() : *inner;
  if (class_name == "LossFunctionWrapper") class_name = class_of(function_name(parameters["fn"]));
  for (const char* unused : {"dtype", "fn"}) parameters.erase(unused);
  const Config* reduction = parameters.find("reduction");
  if (reduction != nullptr && reduction->is_null()) parameters.set("reduction", "none");
  return {kAdopt, loss_registry().make(class_name, parameters)};
}

}  // namespace losses
}  // namespace keel
