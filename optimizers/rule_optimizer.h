// RuleOptimizer: makes an optimizer class from its options and its update rule.
#pragma once

#include <memory>
#include <utility>

#include <keel/framework/config/registry.h>
#include <keel/optimizers/optimizer.h>

namespace keel {

// An optimizer whose options select its update rule. `OptionsType` is an aggregate with the members
// of OptimizerOptions, `fields`, and two functions:
//   void check(const char* caller) const;            // throws ValueError for options out of range
//   std::shared_ptr<const UpdateRule> rule() const;  // returns the arithmetic of the update
template <ClassName kName, class OptionsType>
class RuleOptimizer final : public Optimizer {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  using Options = OptionsType;                           // the options of the constructor

  // Throws ValueError if an option is out of range.
  explicit RuleOptimizer(Options options)
      : Optimizer(kClassName, options.rule(), options), options_(std::move(options)) {
    options_.check(kClassName);
  }
  Config get_config() const override { return config_of(options_); }
  // Returns the options that the constructor received.
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

}  // namespace keel
