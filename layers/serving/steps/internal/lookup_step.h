// LookupStep: looks up rows in any number of tables in one pass.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/serving/steps/planner.h>

namespace keel {

// Looks up dense ids, and looks up and pools ragged and sparse ids. Writes each row to its
// destination in the workspace.
class LookupStep final : public PlanStep {
 public:
  // One lookup.
  struct Entry {
    PlanLookup lookup;
    PlanValue out;
    Layout layout;
    int64_t per_row;  // dense ids per row of the batch; 0 for ragged and sparse ids
  };
  // If `checks_when_run` is true, the ids are computed by an earlier step, so run() checks them;
  // otherwise check() does.
  LookupStep(std::vector<Entry> entries, bool checks_when_run);
  // Returns the number of floats of scratch memory that run() uses.
  int64_t scratch() const;

  // Throws ValueError, prefixed with the caller of the lookup, for an id outside its table and for
  // weights whose positions differ from those of the ids.
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
