// LookupStep: lookups in any number of tables in one pass, each row written where it is used.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/serving/steps/planner.h>

namespace keel {

class LookupStep final : public PlanStep {
 public:
  struct Entry {
    PlanLookup lookup;
    PlanValue out;
    Layout layout;
    int64_t per_row;  // of dense ids
  };
  // `checks_when_run`: the ids are no inputs of the model, and are checked once they are made.
  LookupStep(std::vector<Entry> entries, bool checks_when_run);
  // Floats of scratch memory that run() uses.
  int64_t scratch() const;

  // ValueError, as the lookups name themselves, for an id outside its table and for weights at
  // other positions than the ids.
  void check(const PlanCall& call) const override;
  void prefetch(const PlanCall& call) const override;
  void run(const PlanCall& call) const override;
  std::string what() const override;

 private:
  void check_entries(const PlanCall& call) const;

  std::vector<Entry> dense_, pooled_;
  const bool checks_when_run_;
};

}  // namespace keel
