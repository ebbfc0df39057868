// EngineTables: gives checkpoints access to the tables that a mid-level object holds in the
// embedding engine.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <keel/layers/embedding/tables/internal/engine_session.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>

namespace keel {

// Entries read and write the strategy's live engine, even if another object built it; see
// EngineSession::read.
class EngineTables final : public TrackedTables, public std::enable_shared_from_this<EngineTables> {
 public:
  explicit EngineTables(const EngineSession& session) : session_(session) {}

  // Returns the session of the engine.
  EngineSession& session() { return session_; }
  // Creates the engine; see EngineSession::build. Tables start with the values restored before.
  // Later calls do nothing.
  void build(const std::vector<Shape>& output_shapes);

  bool built() const override;
  std::vector<StateEntry> state_entries() override;

 private:
  StateEntry entry_before_build(int table, int part, const std::string& name);

  EngineSession session_;
  mutable std::mutex mutex_;  // guards the two members below; held while building
  bool built_ = false;
  std::map<std::string, Tensor> restored_;  // by entry name
};

}  // namespace keel
